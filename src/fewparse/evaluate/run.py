"""Run systems over items, side by side, and judge what they say."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fewparse.domains.domain import Domain
from fewparse.domains.examples import EXAMPLES, read_examples
from fewparse.errors import DomainError, UnknownName, UsageError
from fewparse.evaluate.metrics import Judge
from fewparse.evaluate.records import Record, Records
from fewparse.evaluate.system import Prediction, Prompted, Reading, System
from fewparse.example import Example
from fewparse.lm.model import LanguageModel
from fewparse.parser import Parser
from fewparse.search.settings import MAX_WIDTH
from fewparse.vote import vote

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


@dataclass
class Outcome:
    """What one system did on all items so far."""

    name: str
    records: list[Record] = field(default_factory=list)


def every_decoder() -> dict[str, dict[str, Any]]:
    """Each decoder under the domain's constraint, then without any."""
    free = {f"{name}, unconstrained": {**chosen, "constrained": False} for name, chosen in DECODERS.items()}
    return DECODERS | free


def prompted(domain: Domain, model: LanguageModel, settings: Settings) -> list[System]:
    """A parser for each setting, with all its candidates; those of one prompt should stand together."""
    reading = Reading(model)
    return [
        Prompted(name, Parser.from_domain(domain, model, **{"n_best": 2 * MAX_WIDTH, **chosen}), reading)
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
    after: Callable[[list[Outcome]], None] = lambda outcomes: None,
) -> list[Outcome]:
    """Every item under every system. A training example is never shown to itself."""
    records = records if records is not None else Records()
    judge = Judge(domain)
    outcomes = [Outcome(system.name) for system in systems]
    for item in items:
        without = [item] if split == TRAIN else []
        for system, outcome in zip(systems, outcomes, strict=True):
            record = records.find(system, item, without)
            if record is None:
                record = judged(system.predict(item, without), item, judge)
                records.add(system, item, without, record)
            outcome.records.append(record)
            after(outcomes)
    return outcomes


def judged(prediction: Prediction, item: Example, judge: Judge) -> Record:
    """What the candidates are worth, as they are ranked and as the model or a vote would rank them."""
    candidates = prediction.candidates
    alone = max(candidates, key=lambda c: c.model_score, default=None)
    voted = vote(candidates, judge.execute)
    return Record(
        outputs=tuple(c.text for c in candidates),
        programs=tuple(c.program for c in candidates),
        right=tuple(judge.right(c.program, item.program) for c in candidates),
        exact=tuple(c.program == item.program for c in candidates),
        model_right=alone is not None and judge.right(alone.program, item.program),
        vote_right=bool(voted) and judge.right(voted[0].program, item.program),
        usage=prediction.usage,
        seconds=prediction.seconds,
        prompt_seconds=prediction.prompt_seconds,
        examples_dropped=prediction.examples_dropped,
    )
