"""Parse held-out training examples with configurations, and find the weights of reranking that make them right."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any

from fewparse.domains.check import words
from fewparse.domains.domain import Domain
from fewparse.domains.load import SETTINGS
from fewparse.errors import BudgetExceeded, ModelError
from fewparse.evaluate.metrics import Judge
from fewparse.evaluate.record_lines import Record
from fewparse.evaluate.records import Records
from fewparse.evaluate.run import ABORT_AFTER, Listener, Progress, run_evaluation
from fewparse.evaluate.system import ParserSystem, Prediction, PromptPrefill
from fewparse.example import Candidate, Example
from fewparse.lm.load import NamedModel, model_identity
from fewparse.lm.model import LanguageModel
from fewparse.optimize.budget import Budget, OutOfTime
from fewparse.optimize.parts import Part, Parts
from fewparse.optimize.search import Add, Outcome
from fewparse.optimize.space import Configuration
from fewparse.options import NO_ADAPTER, Options, ParserOptions
from fewparse.parser import Parser
from fewparse.rerank import Alignment, vote
from fewparse.retrieve.retriever import Pool, Retriever, open_retriever
from fewparse.search.decoder import DECODERS
from fewparse.search.settings import MAX_WIDTH

PREDICTED_FROM = {"description", "executor", "execute", "normal_form", "accepted", "database"}
"""The keys of domain.toml on which predictions or their correctness depend, besides those that are options."""


class HeldOutAlignment:
    """The reranker of a domain that was estimated without the examples that repeat the utterance to be parsed."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        self._pairs = [(words(utterance), utterance, output) for utterance, output in pairs]
        self._without = lru_cache(maxsize=8)(self._estimate)

    def score(self, utterance: str, output: str) -> float:
        """Return the score of an output by the word alignment."""
        return self._without(words(utterance)).score(utterance, output)

    def _estimate(self, excluded: str) -> Alignment:
        return Alignment((utterance, output) for key, utterance, output in self._pairs if key != excluded)


class HeldOutSystem:
    """A configuration as a system: examples that repeat the utterance of an item are not used for it."""

    max_concurrency: int | None

    def __init__(
        self, configuration: Configuration, parser: Parser, prefill: PromptPrefill, budget: Budget
    ) -> None:
        self.name = configuration.label
        self.max_concurrency = parser.model.max_concurrency
        self._system = ParserSystem(self.name, parser, prefill)
        self._budget = budget
        self._repeated: dict[str, list[Example]] = {}
        for example in parser.domain.examples:
            self._repeated.setdefault(words(example.utterance), []).append(example)
        # The settings that are searched are written to domain.toml: its other content must identify the records.
        known = {**self._system.settings, "identity": model_identity(parser.model)}
        files = {path: digest for path, digest in known["files"].items() if path != SETTINGS}
        table = parser.domain.table
        kept = table.model_dump(mode="json", include=PREDICTED_FROM) | {"fold": table.retrieve.fold}
        self.settings: Mapping[str, Any] = {**known, "files": files, "table": kept, "aim": "optimize"}

    def predict(self, item: Example, without: Sequence[Example]) -> Prediction:
        """Return the prediction of the parser; raise `OutOfTime` if the budget is spent."""
        self._budget.check()
        excluded = dict.fromkeys([*without, *self._repeated.get(words(item.utterance), ())])
        return self._system.predict(item, list(excluded))


class HeldOutScorer:
    """Parses the items of parts with configurations, resuming from records.

    Each configuration is parsed once, at a weight of reranking of 1: the candidates of a search do not depend on
    the weight, so that all of `weights` are evaluated on the candidates of the record. `listener` is called after
    each record. `stopped` says why there was no more time, if it was not the budget of time.
    """

    def __init__(
        self,
        domain: Domain,
        model: LanguageModel,
        parts: Parts,
        options: Options,
        weights: Sequence[float],
        records: Records,
        budget: Budget,
        retriever_model: LanguageModel | NamedModel | None = None,
        listener: Listener = lambda progress: None,
    ) -> None:
        self._listener = listener
        self._domain = domain
        self._model = model
        self._parts = parts
        self._items = parts.items
        self._options = options
        self._weights = weights
        self._records = records
        self._budget = budget
        self._retriever_model = retriever_model
        self._judge = Judge(domain)
        self._prefill = PromptPrefill()
        self._domains: dict[object, Domain] = {}
        self._retrievers: dict[object, Retriever] = {}
        self._alignments: dict[object, HeldOutAlignment] = {}
        self._systems: dict[tuple[Configuration, int], HeldOutSystem] = {}
        self._prompt_keys: dict[str, object] = {}
        self._evaluated: object = None
        self._failures: Counter[str] = Counter()
        self.stopped: str | None = None

    @property
    def max_concurrency(self) -> int:
        """How many items the model serves at the same time."""
        return self._model.max_concurrency

    def score(self, configurations: Sequence[Configuration], items: Sequence[int], add: Add) -> None:
        """Parse items, given by their indices, and add the outcomes; the time of those in the records counts."""
        ordered = sorted(configurations, key=lambda each: str(each.prompt_key))  # which share the prefill
        by_part: dict[int, list[int]] = {}
        for index in items:
            by_part.setdefault(self._items[index][0], []).append(index)
        self._evaluated = None
        for number, indices in by_part.items():
            part = self._parts.parts[number]
            systems = [self._system(each, number) for each in ordered]
            examples = [self._items[index][1] for index in indices]
            try:
                results = run_evaluation(self._domain, systems, examples, part.split, self._records, self._after)
            except BudgetExceeded as error:
                self.stopped = error.message
                raise OutOfTime from None
            for configuration, result in zip(ordered, results, strict=True):
                for index, record in zip(indices, result.records, strict=True):
                    add(configuration, index, self._outcome(configuration, record))

    def _after(self, progress: Progress) -> None:
        """Count the time of a record of an earlier run; raise an error if every parse fails with it.

        The time of a prompt that several configurations share is in the records of all of them, and counted once.
        """
        self._listener(progress)
        record, prompt = progress.record, self._prompt_keys[progress.result.name]
        shared, self._evaluated = prompt == self._evaluated, prompt
        if not progress.new:
            self._budget.charge(record.seconds + (0.0 if shared else record.prompt_seconds))
        elif record.failure is None:
            self._failures.clear()
        else:
            self._failures[record.failure] += 1
            if self._failures[record.failure] >= max(ABORT_AFTER, self.max_concurrency):
                raise ModelError(record.failure, "The same command continues the search.")

    def _outcome(self, configuration: Configuration, record: Record) -> Outcome:
        execute = self._judge.execute if self._options.vote else None
        votes = self._options.vote or not DECODERS[configuration.decoder].needs_logprobs
        correct = tuple(correct_at(record, weight, votes, execute) for weight in self._weights)
        return Outcome(correct, record.seconds + record.prompt_seconds)

    def _system(self, configuration: Configuration, number: int) -> HeldOutSystem:
        key = configuration, number
        if key not in self._systems:
            parser = self._parser(configuration, number)
            self._systems[key] = HeldOutSystem(configuration, parser, self._prefill, self._budget)
            self._prompt_keys[configuration.label] = configuration.prompt_key
        return self._systems[key]

    def _parser(self, configuration: Configuration, number: int) -> Parser:
        """Return the parser of a configuration for a part; parsers share what does not differ between them."""
        part = self._parts.parts[number]
        domain = self._domain_for(configuration, number, part)
        searched = asdict(configuration)
        del searched["merge"]
        given: ParserOptions = {
            **searched,  # type: ignore[typeddict-item]
            "adapter": NO_ADAPTER if part.adapter is None else part.adapter.path,
            "rerank": 1.0,
            "vote": False,
            "execute": False,
            "n_best": 2 * MAX_WIDTH,
        }
        options = Options.resolve(domain, self._model.name, **given)
        retriever_model = self._retriever_model or self._model
        by_name = number, configuration.target, configuration.retriever
        if by_name not in self._retrievers and options.examples:
            pool = Pool([e.utterance for e in domain.examples], retriever_model, options.search.seed)
            fold = domain.fold if options.fold else None
            self._retrievers[by_name] = open_retriever(configuration.retriever, pool, fold)
        by_target = number, configuration.target
        if by_target not in self._alignments:
            pairs = [(e.utterance, e.output(configuration.target)) for e in domain.examples]
            self._alignments[by_target] = HeldOutAlignment(pairs)
        return Parser(
            domain,
            self._model,
            options,
            retriever=self._retrievers.get(by_name),
            retriever_model=retriever_model,
            reranker=self._alignments[by_target],
        )

    def _domain_for(self, configuration: Configuration, number: int, part: Part) -> Domain:
        """Return the domain of a part for a target and a merge level, loaded once."""
        key = number, configuration.target, configuration.merge
        if key not in self._domains:
            domain, constraint = part.domain, part.domain.table.constraint
            if configuration.merge not in (None, constraint.merge):
                changed = constraint.model_copy(update={"merge": configuration.merge})
                domain = replace(domain, table=domain.table.model_copy(update={"constraint": changed}))
            self._domains[key] = domain.for_target(configuration.target)
        return self._domains[key]


def correct_at(record: Record, weight: float, votes: bool, execute: Callable[[str], Any] | None) -> bool:
    """Return whether the candidate is correct that is best at a weight of reranking, or by vote.

    The record is of a parse at the weight 1.
    """
    scores = [m + weight * (s - m) for s, m in zip(record.scores, record.model_scores, strict=True)]
    best = max(range(len(scores)), key=lambda i: scores[i], default=None)
    if best is None or not votes:
        return best is not None and record.correct[best]
    rows = zip(record.outputs, scores, record.programs, record.model_scores, strict=True)
    voted = vote([Candidate(*row) for row in rows], execute)
    return record.correct[record.outputs.index(voted[0].text)]
