"""Parser: the whole way of an utterance, on one screen."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from fewparse.constrain.state import Constraint
from fewparse.constrain.unconstrained import Unconstrained
from fewparse.domains.domain import Domain
from fewparse.domains.load import load_domain
from fewparse.errors import ContextOverflow, ExecutionError, IllFormedOutput, UsageError
from fewparse.example import Candidate, Example, Parse, check_utterance
from fewparse.lm.load import EMBEDDED, open_model, with_adapter
from fewparse.lm.model import LanguageModel
from fewparse.lm.usage import Usage
from fewparse.options import Options
from fewparse.prompt import Pair, Prompt
from fewparse.rerank import Alignment, vote
from fewparse.retrieve.arrange import arrange, fit
from fewparse.retrieve.retriever import Retriever, open_retriever
from fewparse.search.decode import decode
from fewparse.search.events import Event, Listener, ignore
from fewparse.search.hypothesis import Hypothesis
from fewparse.search.settings import Settings
from fewparse.vocabulary import BYTES


class Parser:
    """Turns utterances of a domain into well-formed programs with a language model."""

    def __init__(self, domain: Domain, model: LanguageModel, options: Options) -> None:
        self.domain = domain.for_target(options.target)
        self.model = with_adapter(model, options.adapter)
        self.options = options
        self._template = domain.template(options.prompt)
        self._settings = replace(options.search, stop=self._template.stop.encode())
        if options.server_grammar and not self.model.supports_grammar:
            raise UsageError(f"{model.name} takes no grammar", "Leave --server-grammar out.")
        self._turns = threading.Semaphore(self.model.max_concurrency)

    @classmethod
    def from_domain(
        cls, domain: str | Path | Domain, model: str | LanguageModel = EMBEDDED, **options: Any
    ) -> "Parser":
        """A parser for a bundled domain's name or a domain folder; options as in `Options`."""
        domain = domain if isinstance(domain, Domain) else load_domain(domain)
        settled = Options.resolve(domain, model if isinstance(model, str) else model.name, **options)
        domain.check(settled.target, settled.prompt)
        return cls(domain, open_model(model) if isinstance(model, str) else model, settled)

    def parse(
        self, utterance: str, context: str = "", emit: Listener = ignore, without: Sequence[Example] = ()
    ) -> Parse:
        """Retrieve, prompt, search, translate, execute. `without` are examples that must not help."""
        check_utterance(utterance)
        usage, trace = Usage(), list[Event]()
        with self._turns:
            examples, prompt = self.prompt(utterance, context, without, usage)
            constraint = self._constraint(utterance)
            settings = self._settings_for(utterance)
            found = decode(self.model, prompt, constraint, settings, usage, tee(trace.append, emit))
        candidates = self._candidates(utterance, found, constraint, without)[: self.options.n_best]
        best = candidates[0] if candidates else None
        hidden = {example.key for example in without}
        available = sum(example.key not in hidden for example in self.domain.examples)
        answer, answer_error = self._answer(best.program if best else None)
        return Parse(
            utterance=utterance,
            target=self.options.target,
            output=best.text if best else None,
            program=best.program if best else None,
            answer=answer,
            answer_error=answer_error,
            failure=None if best else f"nothing was finished within {self._settings.max_tokens} tokens",
            candidates=candidates,
            examples=examples,
            examples_dropped=min(self.options.examples, available) - len(examples),
            prompt=prompt,
            trace=tuple(trace),
            usage=usage,
            model=self.model.name,
        )

    def parse_many(self, utterances: Iterable[str]) -> Iterator[Parse]:
        """Parses in the order of the utterances, as many at once as the model serves to advantage."""
        if self.model.max_concurrency == 1:
            yield from map(self.parse, utterances)
            return
        with ThreadPoolExecutor(self.model.max_concurrency) as pool:
            yield from pool.map(self.parse, utterances)

    async def aparse(self, utterance: str, context: str = "") -> Parse:
        """`parse`, in a thread of its own."""
        return await asyncio.to_thread(self.parse, utterance, context)

    async def aparse_many(self, utterances: Iterable[str]) -> AsyncIterator[Parse]:
        """`parse_many`, for `async for`."""
        for parse in await asyncio.gather(*map(self.aparse, utterances)):
            yield parse

    def prompt(
        self, utterance: str, context: str = "", without: Sequence[Example] = (), usage: Usage | None = None
    ) -> tuple[tuple[Example, ...], Prompt]:
        """The examples that fit, best first, and the prompt they make."""
        pool = self.domain.examples
        wanted = self.options.examples
        ranked = self._retriever.rank(utterance, usage or Usage()) if wanted else []
        hidden = {example.key for example in without}
        best_first = [pool[i] for i in ranked if pool[i].key not in hidden][:wanted]
        room = self.model.context_length - self._settings.max_tokens

        def render(examples: Sequence[Example]) -> Prompt:
            ordered = arrange(examples, self.options.order, self._settings.seed)
            pairs = [Pair(e.utterance, e.output(self.options.target), e.context) for e in ordered]
            return self._template.render(pairs, utterance, context)

        used = fit(best_first, lambda examples: self.model.prompt_length(render(examples)) <= room)
        prompt = render(used)
        if (length := self.model.prompt_length(prompt)) > room:
            raise ContextOverflow(length + self._settings.max_tokens, self.model.context_length)
        return tuple(used), prompt

    @cached_property
    def _retriever(self) -> Retriever:
        utterances = [example.utterance for example in self.domain.examples]
        fold = self.domain.fold if self.options.fold else None
        return open_retriever(self.options.retriever, utterances, self.model, self._settings.seed, fold)

    def _settings_for(self, utterance: str) -> Settings:
        """How to search; a server that keeps samples to a grammar is given the one for this utterance."""
        if not self.options.server_grammar:
            return self._settings
        grammar = self.domain.server_grammar(self.options.target, self._template.lead, utterance)
        return replace(self._settings, grammar=grammar)

    def _constraint(self, utterance: str) -> Constraint:
        if self.options.constrained and self.domain.constraint_depends_on_utterance:
            return self._compile(utterance)
        return self._shared_constraint

    @cached_property
    def _shared_constraint(self) -> Constraint:
        return self._compile("")

    def _compile(self, utterance: str) -> Constraint:
        vocabulary = self.model.vocabulary or BYTES
        if not self.options.constrained:
            return Unconstrained(vocabulary, self._template.lead.encode())
        return self.domain.constraint(vocabulary, self.options.target, self._template.lead, utterance)

    def _candidates(
        self, utterance: str, found: Sequence[Hypothesis], constraint: Constraint, without: Sequence[Example]
    ) -> tuple[Candidate, ...]:
        """The outputs, best first, checked once more: nothing ill-formed leaves here."""
        candidates = []
        bonus = self._explanation(utterance, without)
        for hypothesis in found:
            if not constraint.accepts(hypothesis.text):
                raise IllFormedOutput(f"the search returned {hypothesis.text!r}, which the constraint refuses")
            text = hypothesis.text.decode(errors="replace").removeprefix(self._template.lead)
            score = hypothesis.score + bonus(text)
            program = self.domain.program_of(text, self.options.target)
            candidates.append(Candidate(text, score, program, hypothesis.score))
        if self.options.vote:
            return vote(candidates, self.domain.execute)
        return tuple(sorted(candidates, key=lambda c: -c.score))

    def _explanation(self, utterance: str, without: Sequence[Example]) -> Callable[[str], float]:
        """What an output gains by how well it explains the utterance."""
        if not (weight := self.options.rerank):
            return lambda output: 0.0
        alignment = self._aligned(without) if without else self._alignment
        return lambda output: weight * alignment.score(utterance, output)

    @cached_property
    def _alignment(self) -> Alignment:
        return self._aligned(())

    def _aligned(self, without: Sequence[Example]) -> Alignment:
        hidden = {example.key for example in without}
        taught = (example for example in self.domain.examples if example.key not in hidden)
        return Alignment((example.utterance, example.output(self.options.target)) for example in taught)

    def _answer(self, program: str | None) -> tuple[Any, str | None]:
        if program is None or self.domain.executor is None:
            return None, None
        try:
            return self.domain.execute(program), None
        except ExecutionError as error:
            return None, str(error)


def tee(*listeners: Callable[[Event], None]) -> Listener:
    """One listener that tells several."""

    def emit(event: Event) -> None:
        for listener in listeners:
            listener(event)

    return emit
