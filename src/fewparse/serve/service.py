"""What the server does for requests, over HTTP and MCP: queues, deadlines, and the operations on its domains."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from fewparse.errors import FewparseError, UnknownName, UsageError
from fewparse.events import Listener, ignore
from fewparse.example import Parse
from fewparse.lm.model import LanguageModel
from fewparse.serve.domain import ServedDomain
from fewparse.serve.feedback import RecentParses
from fewparse.serve.limits import ServeLimits
from fewparse.serve.metrics import Metrics
from fewparse.serve.problems import Problem, problem_of
from fewparse.serve.requests import (
    ParseBase,
    ParseRequest,
    StreamRequest,
)
from fewparse.serve.scheduler import Scheduler, shutting_down
from fewparse.serve.telemetry import span

T = TypeVar("T")
GRAMMAR_THREADS = 2


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
        self.recent = RecentParses()
        self.draining = False
        self._streams = 0
        metrics.watch(self.searches, self.grammars)

    def drain(self) -> None:
        """Refuse new and waiting requests from now on, and finish those that run."""
        self.draining = True
        self.searches.drain()
        self.grammars.drain()

    def cancel(self) -> None:
        """End the work that runs as soon as possible."""
        self.searches.cancel()
        self.grammars.cancel()

    async def close(self) -> None:
        """End all work and return when the threads have ended."""
        self.drain()
        await asyncio.gather(*(asyncio.to_thread(lane.close) for lane in (self.searches, self.grammars)))

    def domain(self, name: str | None) -> ServedDomain:
        """Return a domain by its name, or the only one; raise an error if there is none."""
        if name is None and len(self.domains) == 1:
            return next(iter(self.domains.values()))
        if name is None:
            raise UsageError("the field `domain` is missing", f"Domains: {', '.join(self.domains)}.")
        if name not in self.domains:
            error = UnknownName("domain", name, self.domains)
            raise Problem(404, "unknown_domain", error.message, error.hint)
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

    async def on_grammar(self, client: str, work: Callable[[threading.Event], T], text: str) -> T:
        """Run work on a text of a request in a thread for grammars."""
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
