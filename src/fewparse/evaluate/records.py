"""Records of each system on each item, appended to a file immediately, so that an interrupted run can resume."""

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

HINT = "Write the results elsewhere (--out), or remove this file."


@dataclass(frozen=True)
class Record:
    """The result of one system on one item: its candidates, whether each is correct, and the cost.

    `correct_before_reranking` refers to the candidate with the highest model score, `correct_by_vote` to the one
    that a vote of the candidates selects. `failure` is the error message if the system returned no candidates
    because of an error.
    """

    outputs: tuple[str, ...]
    programs: tuple[str | None, ...]
    correct: tuple[bool, ...]
    exact_match: tuple[bool, ...]
    correct_before_reranking: bool
    correct_by_vote: bool
    usage: Usage
    seconds: float
    prompt_seconds: float
    examples_dropped: int = 0
    failure: str | None = None

    def correct_within(self, k: int) -> bool:
        """Return whether one of the first k candidates is correct."""
        return any(self.correct[:k])

    @staticmethod
    def failed(reason: str) -> "Record":
        """Return the record of an item that failed; its cost is unknown."""
        return Record((), (), (), (), False, False, Usage(cost=None), 0.0, 0.0, failure=reason)

    @staticmethod
    def from_dict(fields: dict[str, Any]) -> "Record":
        """Return the record for the fields that `asdict` wrote."""
        lists = {name: tuple(fields[name]) for name in ("outputs", "programs", "correct", "exact_match")}
        return Record(**(fields | lists | {"usage": Usage(**fields["usage"])}))


class Records:
    """The records of a run by system and item; with a file, also those of earlier runs.

    Failures are logged and never reused; the next run retries them.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._records: dict[tuple[str, str], Record] = {}
        if path is None:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            remove_incomplete_line(path)
        except OSError as error:
            raise ResultsError(f"cannot be written: {error.strerror}", path, hint=HINT) from None
        self._records.update((key, record) for key, record in read_records(path) if record.failure is None)

    @property
    def has_file(self) -> bool:
        """Whether the records are written to a file."""
        return self._path is not None

    def find(self, system: System, item: Example, without: Sequence[Example]) -> Record | None:
        """Return the record of the same system settings, item and excluded examples, if there is one."""
        return self._records.get(record_key(system, item, without))

    def add(self, system: System, item: Example, without: Sequence[Example], record: Record) -> None:
        """Add a record, and append it to the file."""
        key = record_key(system, item, without)
        if record.failure is None:
            self._records[key] = record
        if self._path is not None:
            line = {"system": system.name, "settings": key[0], "item": key[1]}
            line |= {"utterance": item.utterance, "gold": item.program} | asdict(record)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")


def read_records(path: Path) -> Iterator[tuple[tuple[str, str], Record]]:
    """Yield the key and record of each line of a file; raise `ResultsError` for a line that is not a record."""
    for number, line in enumerate(read_text(path, ResultsError).split("\n")[:-1], 1):
        try:
            fields = json.loads(line)
            key = fields.pop("settings"), fields.pop("item")
            for name in ("system", "utterance", "gold"):
                del fields[name]
            yield key, Record.from_dict(fields)
        except (ValueError, TypeError, KeyError):
            raise ResultsError("not a record of an evaluation", path, number, hint=HINT) from None


def remove_incomplete_line(path: Path) -> None:
    """Remove the incomplete last line that a killed run has left."""
    content = path.read_bytes()
    complete = content[: content.rfind(b"\n") + 1]
    if complete != content:
        path.write_bytes(complete)


def record_key(system: System, item: Example, without: Sequence[Example]) -> tuple[str, str]:
    """Return fingerprints of the system's settings, and of the item with the examples excluded for it."""
    return fingerprint(system.settings), fingerprint([item.key, *(example.key for example in without)])


def fingerprint(value: Any) -> str:
    """Return a short hash of a JSON-serializable value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]
