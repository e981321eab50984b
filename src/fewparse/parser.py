"""The parser, from an utterance to a program; `Parser.parse` runs all steps in order."""

import os
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from fewparse.components import (
    check_components,
    check_request,
    check_score,
    check_vocabulary,
    name_of,
)
from fewparse.concurrent_parser import ConcurrentParser
from fewparse.confidence.assess import Assessment, Assessor
from fewparse.confidence.readings import run
from fewparse.constrain.excluded_numbers import excluded_numbers
from fewparse.constrain.state import Constraint, LeadConstraint
from fewparse.constrain.unconstrained import Unconstrained
from fewparse.domains.domain import Domain
from fewparse.errors import IllFormedOutput, ParseCancelled, UsageError
from fewparse.events import Event, Listener, Prompted, ignore, tee
from fewparse.example import Candidate, Example, Parse
from fewparse.lm.load import EMBEDDED, NamedModel, open_model, with_adapter
from fewparse.lm.model import LanguageModel
from fewparse.lm.usage import Usage
from fewparse.lm.weights import Progress
from fewparse.memory import TRIMMER
from fewparse.options import (
    CommonOptions,
    FromDomainOptions,
    Options,
    load_with_options,
    prepare,
)
from fewparse.prompt import Prompt
from fewparse.prompt_builder import PromptBuilder
from fewparse.rerank import Reranker, alignment_of, vote
from fewparse.retrieve.retriever import Retriever
from fewparse.retry import RetryPolicy
from fewparse.search.decode import decode
from fewparse.search.hypothesis import Hypothesis
from fewparse.search.settings import SearchSettings
from fewparse.vocabulary import BYTES

if TYPE_CHECKING:
    from fewparse.client import RemoteParser, RequestOptions
    from fewparse.lm.http.load import RemoteSettings

CANCEL_CHECK_SECONDS = 0.1


class Parser(ConcurrentParser):
    """Parses utterances of a domain into well-formed programs with a language model.

    `model` and `retriever` are names or objects; without a retriever, the domain's is used. `retriever` ranks the
    utterances of `domain.examples`; `constraint` is on outputs, compiled for the model's vocabulary, and replaces
    the domain's; `reranker` scores candidates. `retriever_model` is that of a retriever that needs one, by default
    `model`; one given by name is opened when it is needed, and closed by `close_retriever_model`. With `features`,
    parses have the features of their confidence even if it is not calibrated. `remote` are the settings of models
    behind a server; `progress` is called while weights are downloaded.

    Options are given by name, such as `width=10`, or all of them, resolved, as `options`. By name, warnings tell
    what the model cannot serve, and whether the domain is calibrated for other settings only; so do `notes`.
    """

    def __init__(
        self,
        domain: Domain,
        model: str | LanguageModel = EMBEDDED,
        options: Options | None = None,
        *,
        retriever: str | Retriever | None = None,
        retriever_model: str | LanguageModel | NamedModel | None = None,
        constraint: Constraint | None = None,
        reranker: Reranker | None = None,
        features: bool = False,
        remote: "RemoteSettings | None" = None,
        progress: Progress | None = None,
        **given: Unpack[CommonOptions],
    ) -> None:
        check_components(domain, model, options, retriever, retriever_model, constraint, reranker)
        resolved_here = options is None
        if options is None:
            named = model if isinstance(model, str) else model.name
            domain, options = prepare(
                domain,
                named,
                constraint is None,
                retriever=name_of(retriever),
                retriever_model=name_of(retriever_model),
                **given,
            )
        elif given or isinstance(retriever, str):
            raise UsageError("options are given by name and as `options`", "Give one of them.")
        opened = open_model(model, progress, remote) if isinstance(model, str) else model
        check_vocabulary(constraint, opened)
        self.domain = domain
        self.model = with_adapter(opened, options.adapter)
        requested = options.search.decoder
        if constraint is not None and options.server_grammar is None:  # a server would use that of the domain
            options = replace(options, server_grammar=False)
        self.options = options = options.for_model(self.model, domain)
        ranking = options.retriever_model if retriever_model is None else retriever_model
        self.retriever_model = NamedModel(ranking, progress, remote) if isinstance(ranking, str) else ranking
        self.template = domain.template(options.prompt)
        ranker = None if isinstance(retriever, str) else retriever
        parts = {"retriever": ranker, "constraint": constraint, "reranker": reranker}
        replaced = next((name for name, part in parts.items() if part is not None), None)
        self.assessor = Assessor(domain, self.model, options, features, replaced)
        self._settings = replace(options.search, stop=self.template.stop.encode())
        self.notes = tuple(filter(None, (options.note_on(self.model, requested), self.assessor.note)))
        self._slots = threading.Semaphore(self.model.max_concurrency)
        self._pid = os.getpid()
        self._prompts = PromptBuilder(domain, self.model, options, self.template, ranker, self.retriever_model)
        self._given_constraint = None if constraint is None else LeadConstraint(constraint, self.template.lead)
        self._given_reranker = reranker
        for note in filter(None, (options.adapter_note, *self.notes) if resolved_here else ()):
            warnings.warn(note, stacklevel=2)

    @classmethod
    def from_domain(
        cls,
        domain: str | Path | Domain,
        model: str | LanguageModel = EMBEDDED,
        *,
        retriever: str | Retriever | None = None,
        retriever_model: str | LanguageModel | None = None,
        constraint: str | Constraint | None = None,
        reranker: Reranker | None = None,
        remote: "RemoteSettings | None" = None,
        progress: Progress | None = None,
        **options: Unpack[FromDomainOptions],
    ) -> "Parser":
        """Load a domain by its name or folder, with the options for that, and create its parser.

        The kind of `constraint` may be given by its name. The others are the arguments of `Parser`.
        """
        loaded, parser_options = load_with_options(domain, constraint=name_of(constraint), **options)
        return cls(
            loaded,
            model,
            retriever=retriever,
            retriever_model=retriever_model,
            constraint=None if isinstance(constraint, str) else constraint,
            reranker=reranker,
            remote=remote,
            progress=progress,
            **parser_options,
        )

    @classmethod
    def from_url(
        cls,
        url: str,
        domain: str | None = None,
        *,
        api_key: str | None = None,
        retry: RetryPolicy | None = None,
        **options: "Unpack[RequestOptions]",
    ) -> "RemoteParser":
        """Return a parser that asks a server, `fewparse serve`, at an address; its parses are the same.

        `domain` may be omitted if the server has only one; `api_key` is that of $FEWPARSE_API_KEY by default.
        """
        from fewparse.client import RemoteParser

        return RemoteParser(url, domain, api_key=api_key, retry=retry, **options)

    def parse(
        self,
        utterance: str,
        context: str = "",
        emit: Listener = ignore,
        without: Sequence[Example] = (),
        cancel: threading.Event | None = None,
    ) -> Parse:
        """Parse one utterance: retrieve, prompt, search, rerank, translate, execute.

        `emit` receives the prompt and the events of the search. Examples in `without` are not used. Once `cancel`
        is set, in any thread, `ParseCancelled` is raised before the next call of the model.
        """
        check_request(utterance, context, without)
        usage, trace = Usage(), list[Event]()
        with self._slot(cancel):
            examples, prompt = self.prompt(utterance, context, without, usage)
            emit(Prompted(tuple((e.utterance, e.output(self.options.target)) for e in examples), prompt.text))
            constraint = self._constraint(utterance)
            settings = self._settings_for(utterance)
            found = decode(self.model, prompt, constraint, settings, usage, tee(trace.append, emit), cancel)
        ranked = self._candidates(utterance, found, constraint, without)
        notes = self._notes(utterance, ranked, constraint)
        del found, constraint  # their parser states
        TRIMMER.trim()
        best = ranked[0] if ranked else None
        available = len(self.domain.examples) - sum(self._copies[key] for key in {e.key for e in without})
        assessed = self.assessor.assess(utterance, ranked, trace, without)
        answer, answer_error = self._answer(best.program if best else None, assessed)
        return Parse(
            utterance=utterance,
            target=self.options.target,
            output=best.text if best else None,
            program=best.program if best else None,
            answer=answer,
            answer_error=answer_error,
            failure=None if best else f"nothing was finished within {self._settings.limit}",
            candidates=ranked[: self.options.n_best],
            examples=examples,
            examples_dropped=min(self.options.examples, available) - len(examples),
            prompt=prompt,
            trace=tuple(trace),
            usage=usage,
            model=self.model.name,
            confidence=assessed.confidence,
            decision=assessed.decision,
            question=assessed.question,
            features=assessed.features,
            notes=notes,
        )

    def prompt(
        self, utterance: str, context: str = "", without: Sequence[Example] = (), usage: Usage | None = None
    ) -> tuple[tuple[Example, ...], Prompt]:
        """Return the examples that fit into the context, best first, and the prompt with them."""
        return self._prompts.build(utterance, context, without, usage or Usage())

    def similarities(self, utterance: str, others: Sequence[str]) -> list[float] | None:
        """Return how similar the retriever finds utterances of the pool; None if it does not say."""
        return self._prompts.similarities(utterance, others)

    def close_retriever_model(self) -> None:
        """Close the model of the retriever if it was opened by its name; it is opened again when it is needed."""
        if isinstance(self.retriever_model, NamedModel):
            self.retriever_model.close()

    @contextmanager
    def _slot(self, cancel: threading.Event | None) -> Iterator[None]:
        """Wait until the model can serve another parse."""
        if os.getpid() != self._pid:  # a forked process: the slots of parses under way in the other are taken
            self._slots, self._pid = threading.Semaphore(self.model.max_concurrency), os.getpid()
        while not self._slots.acquire(timeout=None if cancel is None else CANCEL_CHECK_SECONDS):
            if cancel is not None and cancel.is_set():
                raise ParseCancelled
        try:
            yield
        finally:
            self._slots.release()

    @property
    def max_concurrency(self) -> int:
        """How many parses the model serves at a time."""
        return self.model.max_concurrency

    def _settings_for(self, utterance: str) -> SearchSettings:
        """Return the search settings; with `server_grammar`, including the grammar for this utterance."""
        if not self.options.server_grammar:
            return self._settings
        notation = self.model.grammar_notation
        grammar = self.domain.server_grammar(self.options.target, utterance, self.template, notation)
        return replace(self._settings, grammar=grammar)

    def _constraint(self, utterance: str) -> Constraint:
        if self._given_constraint is not None:
            return self._given_constraint
        if self.options.constrained and self.domain.constraint_kind.depends_on_utterance:
            return self._build_constraint(utterance)
        return self._shared_constraint

    @cached_property
    def _shared_constraint(self) -> Constraint:
        return self._build_constraint("")

    def _build_constraint(self, utterance: str) -> Constraint:
        vocabulary = self.model.vocabulary or BYTES
        if not self.options.constrained:
            return LeadConstraint(Unconstrained(vocabulary), self.template.lead)
        return self.domain.constraint(vocabulary, self.options.target, utterance, self.template)

    def _candidates(
        self, utterance: str, found: Sequence[Hypothesis], constraint: Constraint, without: Sequence[Example]
    ) -> tuple[Candidate, ...]:
        """Return the outputs, best first; each is checked against the constraint once more."""
        candidates = []
        bonus = self._rerank_bonus(utterance, without)
        for hypothesis in found:
            if not constraint.accepts(hypothesis.text):
                raise IllFormedOutput(f"the search returned {hypothesis.text!r}, which the constraint rejects")
            text = self.template.without_lead(hypothesis.text.decode(errors="replace"))
            score = hypothesis.score + bonus(text)
            program = self.domain.program_of(text, self.options.target)
            counted = hypothesis.share is not None
            logprobs = (None, None) if counted else (hypothesis.logprob, hypothesis.least_logprob)
            candidates.append(Candidate(text, score, program, hypothesis.score, *logprobs))
        if self.options.vote:
            return vote(candidates, self.domain.execute)
        if any(hypothesis.share is not None for hypothesis in found):
            return vote(candidates)
        return tuple(sorted(candidates, key=lambda c: -c.score))

    def _rerank_bonus(self, utterance: str, without: Sequence[Example]) -> Callable[[str], float]:
        """Return the weighted reranking score of an output as a function."""
        weight = self.options.rerank
        if self._given_reranker is not None:
            reranker, weight = self._given_reranker, weight or 1.0
        elif weight:
            reranker = self._estimate_alignment(without) if without else self._alignment
        else:
            return lambda output: 0.0
        return lambda output: weight * check_score(output, reranker.score(utterance, output))

    @cached_property
    def _copies(self) -> Counter[tuple[str, str, str]]:
        """How many examples there are of each key."""
        return Counter(example.key for example in self.domain.examples)

    @cached_property
    def _alignment(self) -> Reranker:
        return self._estimate_alignment(())

    def _estimate_alignment(self, without: Sequence[Example]) -> Reranker:
        excluded = {example.key for example in without}
        used = (example for example in self.domain.examples if example.key not in excluded)
        return alignment_of(tuple((example.utterance, example.output(self.options.target)) for example in used))

    def _notes(self, utterance: str, ranked: Sequence[Candidate], constraint: Constraint) -> tuple[str, ...]:
        """Return what a user should know about the candidates."""

        def accepts(text: str) -> bool:
            return constraint.accepts(self.template.with_lead(text).encode())

        return tuple(excluded_numbers(utterance, [candidate.text for candidate in ranked], accepts))

    def _answer(self, program: str | None, assessed: Assessment) -> tuple[Any, str | None]:
        """Return the answer; a program that is executed on request only is not before it is confirmed."""
        if program is None or not self.options.execute or not self.domain.has_executor:
            return None, None
        if not self.domain.executes and assessed.decision in ("confirm", "decline"):
            return None, None
        outcome = assessed.outcome or run(program, self.domain.execute)
        return outcome.answer, outcome.error
