"""What the server does for requests, over HTTP and MCP: queues, deadlines, and the operations on its domains."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import TypeVar

from fewparse.constrain.state import Constraint
from fewparse.domains.domain import PLAIN
from fewparse.errors import DatabaseError, ExecutionError, FewparseError, UnknownName, UsageError
from fewparse.events import Listener, event_fields, ignore
from fewparse.example import Parse
from fewparse.grammar.analysis.derivation import DerivationTree, from_derivation
from fewparse.lm.model import LanguageModel
from fewparse.serve.completion import completions
from fewparse.serve.domain import ServedDomain
from fewparse.serve.limits import ServeLimits
from fewparse.serve.metrics import Metrics
from fewparse.serve.problems import Problem, problem_of, without_paths
from fewparse.serve.requests import (
    CheckRequest,
    CompleteRequest,
    ExecuteRequest,
    ParseBase,
    ParseRequest,
    StreamRequest,
    TranslateRequest,
)
from fewparse.serve.responses import (
    CheckResponse,
    CompleteResponse,
    ExecuteResponse,
    TranslateResponse,
    TreeNode,
)
from fewparse.serve.scheduler import Scheduler, shutting_down
from fewparse.serve.telemetry import span
from fewparse.vocabulary import BYTES

T = TypeVar("T")
GRAMMAR_THREADS = 2
MAX_TREE_DEPTH = 200


@dataclass(frozen=True)
class Parsed:
    """The result of one utterance: a parse, or the problem that prevented it."""

    utterance: str
    parse: Parse | None
    problem: Problem | None


class Service:
    """The domains of a server, one language model, and the queues of requests for them.

    Searches wait for the model; work on grammars has threads of its own, so that it does not wait for searches.
    """

    def __init__(
        self, domains: Sequence[ServedDomain], model: LanguageModel, limits: ServeLimits, metrics: Metrics
    ) -> None:
        self.domains = {domain.name: domain for domain in domains}
        if len(self.domains) < len(domains):
            raise UsageError("two of the domains have the same name", "Serve each of them once.")
        self.model, self.limits, self.metrics = model, limits, metrics
        self.searches = Scheduler(model.max_concurrency, limits.queue, "search")
        self.grammars = Scheduler(GRAMMAR_THREADS, limits.queue, "grammar")
        self.draining = False
        self._streams = 0
        metrics.watch(self.searches, self.grammars)

    def drain(self) -> None:
        """Refuse new and waiting requests from now on, and finish those that run."""
        self.draining = True
        self.searches.drain()
        self.grammars.drain()

    async def close(self) -> None:
        """End all work and return when the threads have ended."""
        self.drain()
        await asyncio.gather(*(asyncio.to_thread(lane.close) for lane in (self.searches, self.grammars)))

    def domain(self, name: str | None) -> ServedDomain:
        """Return a domain by its name, or the only one; raise `UsageError` if there is none."""
        if name is None and len(self.domains) == 1:
            return next(iter(self.domains.values()))
        if name is None:
            raise UsageError("the field `domain` is missing", f"Domains: {', '.join(self.domains)}.")
        if name not in self.domains:
            raise UnknownName("domain", name, self.domains)
        return self.domains[name]

    async def parse_all(self, request: ParseRequest, client: str) -> list[Parsed]:
        """Parse the utterances of a request, as many at a time as the model serves.

        If no utterance can be parsed, the problem of the first one is raised.
        """
        utterances = self.utterances_of(request)
        domain = self.domain(request.domain)
        at_once = asyncio.Semaphore(self.searches.slots)

        async def parse(utterance: str) -> Parsed:
            async with at_once:
                try:
                    return Parsed(utterance, await self.parse(domain, request, utterance, client), None)
                except Problem as problem:
                    return Parsed(utterance, None, problem)

        async with self.deadline(request.deadline), asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(parse(utterance)) for utterance in utterances]
        found = [task.result() for task in running]
        if all(each.problem is not None for each in found) and found[0].problem is not None:
            raise found[0].problem
        return found

    def utterances_of(self, request: ParseRequest) -> list[str]:
        """Return the utterances of a request; raise `UsageError` if they are not given once, or beyond limits."""
        if (request.utterance is None) == (request.utterances is None):
            raise UsageError("give either `utterance` or `utterances`")
        utterances = request.utterances or [request.utterance or ""]
        if len(utterances) > self.limits.utterances:
            message = f"{len(utterances)} utterances in one request; this server allows {self.limits.utterances}"
            raise Problem(413, "too_many_utterances", message, "Send them in several requests.")
        return utterances

    def check_lengths(self, *texts: str) -> None:
        """Raise `Problem` for an utterance or a context that is too long."""
        for text in texts:
            if len(text) > self.limits.utterance_chars:
                message = f"a text has {len(text):,} characters; the limit is {self.limits.utterance_chars:,}"
                raise Problem(413, "text_too_long", message, "Send a shorter text.")

    async def parse(
        self,
        domain: ServedDomain,
        request: ParseBase,
        utterance: str,
        client: str,
        emit: Listener = ignore,
        on_start: Callable[[], None] = lambda: None,
    ) -> Parse:
        """Wait for the model and parse one utterance; `emit` is called in the thread of the search."""
        self.check_lengths(utterance, request.context)

        def work(cancel: threading.Event) -> Parse:
            parser = domain.parser(request.options)
            check_context(parser.template.has_context, request.context)
            return parser.parse(utterance, request.context, emit, cancel=cancel)

        with self.metrics.parse(domain.name) as record, span("fewparse.parse", domain=domain.name):
            parse = await self._run(self.searches, client, work, on_start)
            record(parse)
            return parse

    def open_stream(self, request: StreamRequest) -> ServedDomain:
        """Check a request for a stream of events, and count the stream until `close_stream` is called."""
        domain = self.domain(request.domain)
        self.check_lengths(request.utterance, request.context)
        if self.draining:
            raise shutting_down()
        if self._streams >= self.limits.streams or self.searches.full:
            raise self.searches.overloaded()
        self._streams += 1
        self.metrics.streams.set(self._streams)
        return domain

    def close_stream(self) -> None:
        """Count a stream as closed."""
        self._streams -= 1
        self.metrics.streams.set(self._streams)

    @asynccontextmanager
    async def deadline(self, requested: float | None) -> AsyncIterator[None]:
        """Raise `Problem` if the body takes longer than the deadline of a request or that of the server."""
        seconds = min(requested or self.limits.deadline, self.limits.deadline)
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError:
            hint = "Send fewer utterances, or try again when the server is less busy."
            message = f"the request was not finished within {seconds:g} seconds"
            raise Problem(504, "deadline_exceeded", message, hint) from None

    async def execute(self, request: ExecuteRequest, client: str) -> ExecuteResponse:
        """Execute a program; an error of the program is a field of the response."""
        domain = self.domain(request.domain)
        domain.check_execution()

        def work(_: threading.Event) -> ExecuteResponse:
            answer, error = None, None
            try:
                answer = domain.domain.execute(request.program)
            except DatabaseError:
                raise
            except ExecutionError as failed:
                error = without_paths(failed.message)
            return ExecuteResponse(domain=domain.name, program=request.program, answer=answer, error=error)

        return await self._on_grammar(client, work, request.program)

    async def check(self, request: CheckRequest, client: str) -> CheckResponse:
        """Return whether a text is well-formed."""
        domain = self.domain(request.domain)
        target = domain.target_of(request.target)

        def work(_: threading.Event) -> CheckResponse:
            found = domain.verdict(request.text, target)
            return CheckResponse.model_validate(
                found._asdict() | {"domain": domain.name, "target": target, "expected": list(found.expected)}
            )

        return await self._on_grammar(client, work, request.text)

    async def translate(self, request: TranslateRequest, client: str) -> TranslateResponse:
        """Translate a canonical utterance to a program, or a program to canonical utterances."""
        domain = self.domain(request.domain)

        def work(_: threading.Event) -> TranslateResponse:
            translator = domain.domain.scored_translator()
            if translator is None:
                raise UsageError(f"the domain {domain.name} has no synchronous grammar: nothing can be translated")
            text = request.text
            if request.to == "utterance":
                text = domain.domain.constraint_kind.canonical_program(text)
            translate = translator.to_program if request.to == "program" else translator.to_utterance
            found = translate(text, request.alternatives + 1)
            tree = from_derivation(found.k_best[0]) if request.tree and found.k_best else None
            return TranslateResponse(
                domain=domain.name,
                input=request.text,
                output=found.texts[0] if found.texts else None,
                alternatives=list(found.texts[1:]),
                derivations=found.derivation_count,
                error=found.error,
                tree=None if tree is None else tree_node(tree),
            )

        return await self._on_grammar(client, work, request.text)

    async def complete(self, request: CompleteRequest, client: str) -> CompleteResponse:
        """Return what may follow the start of an output, according to its constraint."""
        domain = self.domain(request.domain)
        target = domain.target_of(request.target)
        self.check_lengths(request.utterance)

        def work(_: threading.Event) -> CompleteResponse:
            constraint: Constraint = domain.domain.constraint(BYTES, target, request.utterance, PLAIN)
            valid, accepted, found = completions(constraint, request.text, request.limit)
            return CompleteResponse(
                domain=domain.name,
                target=target,
                valid=valid,
                accepted=accepted and valid == len(request.text),
                completions=found,
            )

        return await self._on_grammar(client, work, request.text)

    async def _on_grammar(self, client: str, work: Callable[[threading.Event], T], text: str) -> T:
        if len(text) > self.limits.text_chars:
            message = f"the text has {len(text):,} characters; the limit is {self.limits.text_chars:,}"
            raise Problem(413, "text_too_long", message, "Send a shorter text.")
        async with self.deadline(None):
            return await self._run(self.grammars, client, work)

    async def _run(
        self,
        lane: Scheduler,
        client: str,
        work: Callable[[threading.Event], T],
        on_start: Callable[[], None] = lambda: None,
    ) -> T:
        try:
            return await lane.run(client, work, on_start)
        except FewparseError as error:
            raise problem_of(error) from error


def check_context(shown: bool, context: str) -> None:
    """Raise `UsageError` for a context that the prompt does not show."""
    if context and not shown:
        raise UsageError("the prompt of this domain does not show a context", "Omit `context`.")


def tree_node(tree: DerivationTree, parent: str | None = None, depth: int = 0) -> TreeNode:
    """Return a derivation for a response; what is nested very deeply is left out."""
    children: list[TreeNode | str] = []
    for child in tree.children:
        if isinstance(child, str):
            children.append(child)
        else:
            children.append(
                "..." if depth > MAX_TREE_DEPTH else tree_node(child, tree.translation or parent, depth + 1)
            )
    return TreeNode(label=tree.label, translation=tree.annotation(parent), children=children)


def parse_fields(parse: Parse, details: bool) -> dict[str, object]:
    """Return a parse as the fields of a response, without paths."""
    fields = parse.as_dict() | {"model": public_model_name(parse.model)}
    if fields["answer_error"]:
        fields["answer_error"] = without_paths(fields["answer_error"])
    if details:
        fields["details"] = {
            "examples": [asdict(example) for example in parse.examples],
            "prompt": parse.prompt.text,
            "trace": [event_fields(event) for event in parse.trace],
        }
    return fields


def public_model_name(name: str) -> str:
    """Return the name of a model without the path of its file."""
    return without_paths(name.replace("gguf:", "gguf: ").replace("hf:", "hf: ")).replace(": ", ":")
