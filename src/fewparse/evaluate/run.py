"""Run systems over items, side by side, and judge what they say."""

from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock
from typing import Any

from fewparse.domains.domain import Domain
from fewparse.domains.examples import EXAMPLES, read_examples
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
from fewparse.evaluate.records import Record, Records
from fewparse.evaluate.system import Prediction, Prompted, Reading, System
from fewparse.example import Example, Target
from fewparse.lm.adapter import Adapter
from fewparse.lm.model import LanguageModel
from fewparse.options import Options
from fewparse.parser import Parser
from fewparse.rerank import vote
from fewparse.search.settings import MAX_WIDTH
from fewparse.threads import work_through

Settings = Mapping[str, Mapping[str, Any]]
Split = str
"""`train`, `test`, or the name of another file of the domain's data."""
TRAIN, TEST = "train", "test"

DECODERS: dict[str, dict[str, Any]] = {
    "greedy": {"decoder": "greedy"},
    "beam 5": {"decoder": "beam", "width": 5},
    "speculative W=5": {"decoder": "speculative", "width": 5, "temperature": 0.5},
    "speculative W=10": {"decoder": "speculative", "width": 10, "temperature": 0.5},
}
"""The decoders of the paper's comparison."""

ABOUT_ALL_ITEMS = (BudgetExceeded, CorruptModel, ModelUnavailable, RuntimeMismatch)
ABOUT_ONE_ITEM = (ModelError, LimitExceeded)
"""Errors after which other items may do better: a server that fails now and then, a prompt or a parse too long."""
HOPELESS = 5


@dataclass
class Outcome:
    """What one system did on all items so far."""

    name: str
    records: list[Record] = field(default_factory=list)


After = Callable[[list[Outcome]], None]


def every_decoder() -> dict[str, dict[str, Any]]:
    """Each decoder under the domain's constraint, then without any."""
    free = {f"{name}, unconstrained": {**chosen, "constrained": False} for name, chosen in DECODERS.items()}
    return DECODERS | free


def prompted(domain: Domain, model: LanguageModel, settings: Settings) -> list[System]:
    """A parser for each setting, with all its candidates; those of one prompt should stand together."""
    reading = Reading()
    return [
        Prompted(
            name,
            Parser(domain, model, Options.resolve(domain, model.name, **{"n_best": 2 * MAX_WIDTH, **chosen})),
            reading,
        )
        for name, chosen in settings.items()
    ]


def held_out(domain: Domain, split: Split) -> tuple[Example, ...]:
    """The items of a split: the test set, training examples (beyond the pool where there are any), or a file."""
    if split == TRAIN:
        return domain.spare_examples or domain.examples
    if split == TEST:
        if not domain.test_examples:
            raise UsageError(
                f"the domain {domain.name} has no held-out examples (test.jsonl)",
                "Use --split train: each training example is then parsed without itself.",
            )
        return domain.test_examples
    files = split_files(domain)
    if split not in files:
        raise UnknownName("split", split, [TEST, TRAIN, *files])
    if not (items := read_examples(files[split])):
        raise DomainError("there are no examples", files[split])
    return items


def refuse_learned(domain: Domain, split: Split, target: Target, adapter: Adapter | None) -> None:
    """Training examples prove nothing about a model that was tuned on them."""
    told = adapter.provenance if adapter else None
    if split != TRAIN or told is None:
        return
    if not domain.spare_examples or told.data_sha256 != domain.data_sha256(target):
        raise UsageError(
            "the adapter may have learned the examples that it would be judged by",
            "Evaluate the test set, or without it: --adapter none",
        )


def split_files(domain: Domain) -> dict[str, Path]:
    """The files of items beside examples and test set, each a split under its own name."""
    others = {EXAMPLES, f"{TEST}.jsonl", domain.table.constraint.strings}
    return {path.stem: path for path in sorted(domain.data.glob("*.jsonl")) if path.name not in others}


def evaluate(
    domain: Domain,
    systems: Sequence[System],
    items: Sequence[Example],
    split: Split,
    records: Records | None = None,
    after: After = lambda outcomes: None,
) -> list[Outcome]:
    """Every item under every system, as many items at once as all systems serve; the outcomes are in order.

    A training example is never shown to itself. An item on which a model fails counts as wrong, and is asked again
    by the next run with the same records. `after` sees what there is so far, whenever there is more.
    """
    records = records if records is not None else Records()
    max_concurrency = min(
        (system.max_concurrency for system in systems if system.max_concurrency is not None), default=1
    )
    run = Run(systems, split, Judge(domain), records, after, max(HOPELESS, max_concurrency))
    try:
        work_through(list(enumerate(items)), run.parse, max_concurrency, run.stopping)
    except BudgetExceeded as error:
        again = "the same command with a larger budget carries on from there."
        raise BudgetExceeded(
            f"{error.message}; {run.done} of {len(items)} items are done",
            again.capitalize() if records.kept else f"Where results are kept (--out), {again}",
        ) from None
    finally:
        run.close()
    return run.outcomes


class Run:
    """What the threads of an evaluation share; only predictions are made outside its lock.

    A system is given up once the first so many items (`hopeless`) that it was asked have all failed for the same
    reason: a wrong key, say, or a server that is not there.
    """

    def __init__(
        self,
        systems: Sequence[System],
        split: Split,
        judge: Judge,
        records: Records,
        after: After,
        hopeless: int,
    ) -> None:
        self.outcomes = [Outcome(system.name) for system in systems]
        self.stopping = Event()
        self.done = 0
        self._systems = systems
        self._split = split
        self._judge = judge
        self._records = records
        self._after = after
        self._hopeless = hopeless
        self._finished: list[list[int]] = [[] for _ in systems]
        self._asked: list[list[str | None]] = [[] for _ in systems]
        self._lock = Lock()
        self._closed = False

    def parse(self, turn: tuple[int, Example]) -> None:
        """One item under every system, one after the other: what they all ask may be answered once."""
        number, item = turn
        without = [item] if self._split == TRAIN else []
        failed = False
        for which, system in enumerate(self._systems):
            with self._lock:
                found = self._records.find(system, item, without)
            if self.stopping.is_set():
                return
            answer = found or answered(system, item, without)
            with self._lock:
                if self._closed:
                    return
                record = self._judged(answer, item)
                if record is not found:
                    self._records.add(system, item, without, record)
                    self._asked[which].append(record.failure)
                self._keep(which, number, record)
                if isinstance(answer, FewparseError):
                    failed = True
                    self._give_up_if_hopeless(which, answer)
        with self._lock:
            self.done += not failed

    def close(self) -> None:
        """Take no more: what an interrupted run is still waiting for comes too late."""
        with self._lock:
            self._closed = True

    def _judged(self, answer: Record | Prediction | FewparseError, item: Example) -> Record:
        if isinstance(answer, FewparseError):
            return Record.failed(answer.message)
        return judged(answer, item, self._judge) if isinstance(answer, Prediction) else answer

    def _keep(self, which: int, number: int, record: Record) -> None:
        """Put a record where it belongs, whatever was finished before it."""
        place = bisect(self._finished[which], number)
        self._finished[which].insert(place, number)
        self.outcomes[which].records.insert(place, record)
        self._after(self.outcomes)

    def _give_up_if_hopeless(self, which: int, error: FewparseError) -> None:
        reasons = self._asked[which]
        if len(reasons) == self._hopeless and set(reasons) == {error.message}:
            raise error


def answered(system: System, item: Example, without: Sequence[Example]) -> Prediction | FewparseError:
    """What a system says, or why it can say nothing on this item; an error that is about all items is raised."""
    try:
        return system.predict(item, without)
    except ABOUT_ALL_ITEMS:
        raise
    except ABOUT_ONE_ITEM as error:
        return error


def judged(prediction: Prediction, item: Example, judge: Judge) -> Record:
    """What the candidates are worth, as they are ranked and as the model or a vote would rank them."""
    candidates = prediction.candidates
    alone = max(candidates, key=lambda c: c.model_score, default=None)
    voted = vote(candidates, judge.execute)
    return Record(
        outputs=tuple(c.text for c in candidates),
        programs=tuple(c.program for c in candidates),
        right=tuple(judge.is_correct(c.program, item.program) for c in candidates),
        exact=tuple(c.program == item.program for c in candidates),
        model_right=alone is not None and judge.is_correct(alone.program, item.program),
        vote_right=bool(voted) and judge.is_correct(voted[0].program, item.program),
        usage=prediction.usage,
        seconds=prediction.seconds,
        prompt_seconds=prediction.prompt_seconds,
        examples_dropped=prediction.examples_dropped,
    )
