"""What each system did on each item, kept in a file as it happens: a run that was stopped is carried on."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fewparse.errors import ResultsError
from fewparse.evaluate.system import System
from fewparse.example import Example
from fewparse.files import read_text
from fewparse.lm.usage import Usage

ELSEWHERE = "Write the results elsewhere (--out), or remove this file."


@dataclass(frozen=True)
class Record:
    """One item under one system: its candidates, which of them are right, and what they cost.

    `model_right` is about the candidate that the model alone would choose, `vote_right` about the one that a
    vote of the candidates chooses. `failure` says why there is no answer at all, where the model gave none.
    """

    outputs: tuple[str, ...]
    programs: tuple[str | None, ...]
    right: tuple[bool, ...]
    exact: tuple[bool, ...]
    model_right: bool
    vote_right: bool
    usage: Usage
    seconds: float
    prompt_seconds: float
    examples_dropped: int = 0
    failure: str | None = None

    def right_within(self, k: int) -> bool:
        """Whether one of the first k candidates is right."""
        return any(self.right[:k])

    @staticmethod
    def failed(reason: str) -> "Record":
        """An item without an answer; what it has cost until then is not known."""
        return Record((), (), (), (), False, False, Usage(cost=None), 0.0, 0.0, failure=reason)

    @staticmethod
    def from_dict(fields: dict[str, Any]) -> "Record":
        """The record that `asdict` wrote."""
        lists = {name: tuple(fields[name]) for name in ("outputs", "programs", "right", "exact")}
        return Record(**(fields | lists | {"usage": Usage(**fields["usage"])}))


class Records:
    """The records of a run by system and item; with a file, those of earlier runs too.

    Failures are written down, but nobody finds them: the item is to be asked again.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._found: dict[tuple[str, str], Record] = {}
        if path is None:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            cut_off_half_a_line(path)
        except OSError as error:
            raise ResultsError(f"cannot be written: {error.strerror}", path, hint=ELSEWHERE) from None
        self._found.update((place, record) for place, record in read_records(path) if record.failure is None)

    @property
    def kept(self) -> bool:
        """Whether another run will find them."""
        return self._path is not None

    def find(self, system: System, item: Example, without: Sequence[Example]) -> Record | None:
        """What is known already; results of other settings do not count."""
        return self._found.get(key(system, item, without))

    def add(self, system: System, item: Example, without: Sequence[Example], record: Record) -> None:
        """Keep a record, at once."""
        place = key(system, item, without)
        if record.failure is None:
            self._found[place] = record
        if self._path is not None:
            line = {"system": system.name, "settings": place[0], "item": place[1]}
            line |= {"utterance": item.utterance, "gold": item.program} | asdict(record)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")


def read_records(path: Path) -> Iterator[tuple[tuple[str, str], Record]]:
    """The records of a file."""
    for number, line in enumerate(read_text(path, ResultsError).split("\n")[:-1], 1):
        try:
            fields = json.loads(line)
            place = fields.pop("settings"), fields.pop("item")
            for name in ("system", "utterance", "gold"):
                del fields[name]
            yield place, Record.from_dict(fields)
        except (ValueError, TypeError, KeyError):
            raise ResultsError("not a record of an evaluation", path, number, hint=ELSEWHERE) from None


def cut_off_half_a_line(path: Path) -> None:
    """Remove what a run that was killed while it wrote has left behind the last line."""
    written = path.read_bytes()
    whole = written[: written.rfind(b"\n") + 1]
    if whole != written:
        path.write_bytes(whole)


def key(system: System, item: Example, without: Sequence[Example]) -> tuple[str, str]:
    """What a record is found by: all settings of the system, the item, and what was hidden for it."""
    return fingerprint(system.settings), fingerprint([item.key, *(example.key for example in without)])


def fingerprint(value: Any) -> str:
    """A short name for a value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]
