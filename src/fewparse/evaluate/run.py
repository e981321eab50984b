"""Run several systems on the same items, and judge their predictions."""

from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock
from typing import NamedTuple

from fewparse.domains.domain import Domain
from fewparse.domains.examples import EXAMPLES, OUT_OF_SCOPE, OUT_OF_SCOPE_TEST
from fewparse.errors import (
    BudgetExceeded,
    CorruptModel,
    DomainError,
    FewparseError,
    LimitExceeded,
    ModelError,
    ModelUnavailable,
    RuntimeMismatch,
    UnknownName,
    UsageError,
)
from fewparse.evaluate.metrics import Judge
from fewparse.evaluate.record_lines import Record
from fewparse.evaluate.records import Records
from fewparse.evaluate.system import ParserSystem, Prediction, PromptPrefill, System, SystemIdentity
from fewparse.example import Example, Target
from fewparse.lm.adapter import Adapter
from fewparse.lm.load import NamedModel
from fewparse.lm.model import LanguageModel
from fewparse.options import Options, ParserOptions
from fewparse.parser import Parser
from fewparse.rerank import vote
from fewparse.search.decoder import DECODERS as SEARCHES
from fewparse.search.settings import MAX_WIDTH
from fewparse.threads import run_concurrently

Settings = Mapping[str, ParserOptions]
Split = str
"""`train`, `test`, or the name of another file of the domain's data."""
TRAIN, TEST = "train", "test"

DECODERS: dict[str, ParserOptions] = {
    "greedy": {"decoder": "greedy"},
    "beam 5": {"decoder": "beam", "width": 5},
    "speculative W=5": {"decoder": "speculative", "width": 5, "temperature": 0.5},
    "speculative W=10": {"decoder": "speculative", "width": 10, "temperature": 0.5},
}
"""The decoders of the paper's comparison."""

FATAL_ERRORS = (BudgetExceeded, CorruptModel, ModelUnavailable, RuntimeMismatch)
ITEM_ERRORS = (ModelError, LimitExceeded)
"""Errors after which other items may succeed: a server error, a prompt or a parse that is too long."""
ABORT_AFTER = 5
"""A run is aborted if so many items of a system in a row, or as many as run at once, fail with the same error."""


@dataclass
class SystemResult:
    """The records of one system, in the order of the items."""

    name: str
    records: list[Record] = field(default_factory=list)


class Progress(NamedTuple):
    """A record that was added: the results of its system so far, and whether it is new or was in the records."""

    result: SystemResult
    record: Record
    new: bool


Listener = Callable[[Progress], None]


def every_decoder(model: LanguageModel) -> dict[str, ParserOptions]:
    """Return the settings of each decoder that a model can serve, under the domain's constraint, then without."""
    usable = {name: given for name, given in DECODERS.items() if SEARCHES[str(given["decoder"])].can_use(model)}
    free: dict[str, ParserOptions] = {
        f"{name}, unconstrained": {**options, "constrained": False} for name, options in usable.items()
    }
    return usable | free


def parser_systems(
    domain: Domain,
    model: LanguageModel,
    settings: Settings,
    retriever_model: LanguageModel | NamedModel | None = None,
    features: bool = False,
) -> list[System]:
    """Return a system for each setting; settings with the same prompt should be adjacent, to share its prefill.

    `retriever_model` is the model of retrievers that need one, shared by all systems: by default, `model`. With
    `features`, their records have the features of the confidence.
    """
    resolved: dict[str, Options] = {}
    for name, given in settings.items():
        all_candidates: ParserOptions = {"n_best": 2 * MAX_WIDTH, **given}
        resolved[name] = Options.resolve(domain, model.name, **all_candidates)
    prefill = PromptPrefill()

    def parser(options: Options) -> Parser:
        targeted = domain.for_target(options.target)
        return Parser(targeted, model, options, retriever_model=retriever_model, features=features)

    return [ParserSystem(name, parser(options), prefill) for name, options in resolved.items()]


def load_split(domain: Domain, split: Split) -> tuple[Example, ...]:
    """Return the items of a split: the test set, training examples (those beyond the pool, if any), or a file.

    Raises `UnknownName` for an unknown split, `UsageError` or `DomainError` for an empty one.
    """
    if split == TRAIN:
        if not (items := domain.spare_examples or domain.examples):
            raise UsageError(f"the domain {domain.name} has no examples", f"Write some into {EXAMPLES}.")
        return items
    if split == TEST:
        if not domain.test_examples:
            raise UsageError(
                f"the domain {domain.name} has no held-out examples (test.jsonl)",
                "Use --split train: each training example is then parsed without itself in the prompt.",
            )
        return domain.test_examples
    files = split_files(domain)
    if split not in files:
        raise UnknownName("split", split, [TEST, TRAIN, *files])
    if not (items := domain.read_examples(files[split].name)):
        raise DomainError("there are no examples", files[split])
    return items


def check_not_tuned_on(domain: Domain, split: Split, target: Target, adapter: Adapter | None) -> None:
    """Raise `UsageError` if the adapter may have been tuned on the items of the split."""
    provenance = adapter.provenance if adapter else None
    if split != TRAIN or provenance is None:
        return
    if not domain.spare_examples or provenance.data_sha256 != domain.data_sha256(target):
        raise UsageError(
            "the adapter may have been tuned on the examples to be parsed",
            "Evaluate the test set, or the model without the adapter: --adapter none",
        )


def split_files(domain: Domain) -> dict[str, Path]:
    """Return the data files besides examples and test set, by the names of their splits."""
    others = {EXAMPLES, f"{TEST}.jsonl", OUT_OF_SCOPE, OUT_OF_SCOPE_TEST, domain.table.constraint.strings}
    return {path.stem: path for path in sorted(domain.data.glob("*.jsonl")) if path.name not in others}


def run_evaluation(
    domain: Domain,
    systems: Sequence[System],
    items: Sequence[Example],
    split: Split,
    records: Records | None = None,
    listener: Listener = lambda progress: None,
) -> list[SystemResult]:
    """Run every system on every item, with as many items at the same time as all systems allow.

    An item on which a system fails counts as wrong; the next run with the same records retries it. `listener` is
    called after each record. Raises the error if several items of a system in a row all fail with the same one,
    `BudgetExceeded` if the budget is spent, and `ResultsError` if the records cannot be written or another
    evaluation writes them.
    """
    records = records if records is not None else Records()
    max_concurrency = min(
        (system.max_concurrency for system in systems if system.max_concurrency is not None), default=1
    )
    recorder = Recorder(systems, split, records, listener, max(ABORT_AFTER, max_concurrency))
    run = Run(systems, Judge(domain), recorder)
    with records.locked():
        try:
            run_concurrently(list(enumerate(items)), run.parse, max_concurrency, run.stopping)
        except BudgetExceeded as error:
            resume = "the same command with a larger budget resumes the run."
            to_folder = f"If results are written to a folder (--out), {resume}"
            raise BudgetExceeded(
                f"{error.message}; {run.done} of {len(items)} items are done",
                resume.capitalize() if records.has_file else to_folder,
            ) from None
        finally:
            run.close()
    return recorder.results


class Recorder:
    """Adds the outcomes of systems on items to the records, and calls the listener; not thread-safe.

    An error of a system is raised if its last `abort_after` items that were not in the records all failed with
    it, such as a wrong key or a server that is not running.
    """

    def __init__(
        self,
        systems: Sequence[SystemIdentity],
        split: Split,
        records: Records,
        listener: Listener,
        abort_after: int,
    ) -> None:
        self.results = [SystemResult(system.name) for system in systems]
        self.split = split
        self._systems = systems
        self._records = records
        self._listener = listener
        self._abort_after = abort_after
        self._finished: list[list[int]] = [[] for _ in systems]
        self._new_failures: list[list[str | None]] = [[] for _ in systems]

    def find(self, index: int, item: Example) -> Record | None:
        """Return the record of a system, by its index, on an item."""
        return self._records.find(self._systems[index], item, excluded(item, self.split))

    def add(self, index: int, number: int, item: Example, outcome: Record | FewparseError, new: bool) -> None:
        """Add the outcome of a system, by its index, on the item with this number; write it if it is new."""
        record = Record.failed(outcome.message) if isinstance(outcome, FewparseError) else outcome
        if new:
            self._records.add(self._systems[index], item, excluded(item, self.split), record)
            self._new_failures[index].append(record.failure)
        position = bisect(self._finished[index], number)
        self._finished[index].insert(position, number)
        self.results[index].records.insert(position, record)
        self._listener(Progress(self.results[index], record, new))
        if isinstance(outcome, FewparseError):
            last = self._new_failures[index][-self._abort_after :]
            if len(last) == self._abort_after and set(last) == {outcome.message}:
                raise outcome


class Run:
    """The state shared by the threads of an evaluation; everything except predicting happens under its lock."""

    def __init__(self, systems: Sequence[System], judge: Judge, recorder: Recorder) -> None:
        self.stopping = Event()
        self.done = 0
        self._systems = systems
        self._judge = judge
        self._recorder = recorder
        self._lock = Lock()
        self._closed = False

    def parse(self, numbered_item: tuple[int, Example]) -> None:
        """Run all systems on one item, one after another, so that they can share cached requests."""
        number, item = numbered_item
        without = excluded(item, self._recorder.split)
        failed = False
        for index, system in enumerate(self._systems):
            with self._lock:
                found = self._recorder.find(index, item)
            if self.stopping.is_set():
                return
            outcome = found or predict(system, item, without)
            with self._lock:
                if self._closed:
                    return
                if isinstance(outcome, Prediction):
                    outcome = judged(outcome, item, self._judge)
                failed = failed or isinstance(outcome, FewparseError)
                self._recorder.add(index, number, item, outcome, new=outcome is not found)
        with self._lock:
            self.done += not failed

    def close(self) -> None:
        """Ignore predictions that arrive after the end of an interrupted run."""
        with self._lock:
            self._closed = True


def excluded(item: Example, split: Split) -> list[Example]:
    """Return the examples that are not used for an item: a training example is never in its own prompt."""
    return [item] if split == TRAIN else []


def predict(system: System, item: Example, without: Sequence[Example]) -> Prediction | FewparseError:
    """Return the prediction, or the error if it concerns only this item; raise other errors."""
    try:
        return system.predict(item, without)
    except FATAL_ERRORS:
        raise
    except ITEM_ERRORS as error:
        return error


def judged(prediction: Prediction, item: Example, judge: Judge) -> Record:
    """Return the record of a prediction: correctness as ranked, by model score alone, and by vote."""
    candidates = prediction.candidates
    before_reranking = max(candidates, key=lambda c: c.model_score, default=None)
    voted = vote(candidates, judge.execute)
    return Record(
        outputs=tuple(c.text for c in candidates),
        programs=tuple(c.program for c in candidates),
        correct=tuple(judge.is_correct(c.program, item.program) for c in candidates),
        exact_match=tuple(c.program == item.program for c in candidates),
        scores=tuple(c.score for c in candidates),
        model_scores=tuple(c.model_score for c in candidates),
        correct_before_reranking=before_reranking is not None
        and judge.is_correct(before_reranking.program, item.program),
        correct_by_vote=bool(voted) and judge.is_correct(voted[0].program, item.program),
        usage=prediction.usage,
        seconds=prediction.seconds,
        prompt_seconds=prediction.prompt_seconds,
        examples_dropped=prediction.examples_dropped,
        trace=prediction.trace,
        features=None if prediction.features is None else dict(prediction.features),
    )
