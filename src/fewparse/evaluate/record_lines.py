"""The record of one system on one item, and the line of JSON that stores it."""

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_type_hints

from fewparse.errors import ResultsError
from fewparse.lm.usage import Usage
from fewparse.text import is_unicode, to_json

HINT = "Write the results elsewhere (--out), or remove this file."
FIRST_KEY = b'{"system": '
NAMES = ("system", "settings", "item", "utterance", "gold")
MAX_NUMBER = 10**15
"""Larger counts and times are not those of an evaluation; their sums could overflow."""
Key = tuple[str, str]
"""Fingerprints of a system's settings, and of an item with the examples excluded for it."""


@dataclass(frozen=True)
class Record:
    """The result of one system on one item: its candidates, whether each is correct, and the cost.

    `scores` are those of the candidates as ranked, `model_scores` their length-normalised log-probabilities.
    `correct_before_reranking` refers to the candidate with the highest model score, `correct_by_vote` to the one
    that a vote of the candidates selects. `failure` is the error message if the system returned no candidates
    because of an error. `features` are those of the best candidate, if they were computed. `trace` holds the
    events of the search as JSON objects, if they were requested.
    """

    outputs: tuple[str, ...]
    programs: tuple[str | None, ...]
    correct: tuple[bool, ...]
    exact_match: tuple[bool, ...]
    scores: tuple[float, ...]
    model_scores: tuple[float, ...]
    correct_before_reranking: bool
    correct_by_vote: bool
    usage: Usage
    seconds: float
    prompt_seconds: float
    examples_dropped: int = 0
    failure: str | None = None
    trace: tuple[dict[str, Any], ...] | None = None
    features: dict[str, float] | None = None

    def correct_within(self, k: int) -> bool:
        """Return whether one of the first k candidates is correct."""
        return any(self.correct[:k])

    @staticmethod
    def failed(reason: str) -> "Record":
        """Return the record of an item that failed; its cost is unknown."""
        return Record((), (), (), (), (), (), False, False, Usage(cost=None), 0.0, 0.0, failure=reason)


def to_line(system: str, key: Key, utterance: str, gold: str, record: Record) -> bytes:
    """Return the line that stores a record."""
    names = dict(zip(NAMES, (system, *key, utterance, gold), strict=True))
    return (to_json(names | asdict(record)) + "\n").encode("utf-8")


def read_line(line: bytes, number: int, path: Path) -> tuple[Key, Record]:
    """Return the key and the record of a line; raise `ResultsError` if it is not one that `to_line` wrote."""
    try:
        values = json.loads(line.decode("utf-8"))
        if not isinstance(values, dict):
            raise ValueError("an object is expected")
        names = {name: values.pop(name) for name in NAMES}
        if not all(map(is_text, names.values())):
            raise ValueError("a name is not text")
        usage = checked(values.pop("usage"), Usage)
        record = Record(**checked(values, Record), usage=Usage(**usage))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else error
        raise ResultsError(f"not a record of an evaluation: {reason}", path, number, hint=HINT) from None
    return (names["settings"], names["item"]), record


def checked(values: Any, kind: type[Record] | type[Usage]) -> dict[str, Any]:
    """Return the fields of a record or of its usage, with lists as tuples; raise `ValueError` for a wrong type."""
    if not isinstance(values, dict):
        raise ValueError("an object is expected")
    types = get_type_hints(kind)
    for name, value in values.items():
        if name not in types or name == "usage":
            raise ValueError(f"`{name}` is not known")
        if not CHECKS[types[name]](value):
            raise ValueError(f"`{name}` has a wrong value")
    if kind is Record and len({len(values[name]) for name in LISTS}) != 1:
        raise ValueError("its lists have different lengths")
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def is_text(value: object) -> bool:
    """Return whether a value is a text."""
    return isinstance(value, str) and is_unicode(value)


def is_flag(value: object) -> bool:
    """Return whether a value is true or false."""
    return isinstance(value, bool)


def is_count(value: object) -> bool:
    """Return whether a value is a number of things."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_NUMBER


def is_amount(value: object) -> bool:
    """Return whether a value is a finite number that is not negative."""
    return is_count(value) or (isinstance(value, float) and math.isfinite(value) and 0 <= value <= MAX_NUMBER)


def is_list_of(check: Callable[[object], bool]) -> Callable[[object], bool]:
    """Return a check whether a value is a list of values that pass another check."""
    return lambda value: isinstance(value, list) and all(map(check, value))


def is_score(value: object) -> bool:
    """Return whether a value is a finite number of any sign."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MAX_NUMBER


def is_optional_text(value: object) -> bool:
    """Return whether a value is a text or null."""
    return value is None or is_text(value)


def are_features(value: object) -> bool:
    """Return whether a value is null or maps names to numbers."""
    return value is None or (isinstance(value, dict) and all(map(is_score, value.values())))


LISTS = ("outputs", "programs", "correct", "exact_match", "scores", "model_scores")
CHECKS: dict[Any, Callable[[object], bool]] = {
    str | None: is_optional_text,
    bool: is_flag,
    int: is_count,
    float: is_amount,
    float | None: lambda value: value is None or is_amount(value),
    tuple[str, ...]: is_list_of(is_text),
    tuple[str | None, ...]: is_list_of(is_optional_text),
    tuple[bool, ...]: is_list_of(is_flag),
    tuple[float, ...]: is_list_of(is_score),
    dict[str, float] | None: are_features,
    tuple[dict[str, Any], ...] | None: lambda value: (
        value is None or is_list_of(lambda each: isinstance(each, dict))(value)
    ),
}
"""How the values of JSON are checked, by the types of the fields of `Record` and `Usage`."""
