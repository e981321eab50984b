"""Read the items of an item set: the two published files, or JSON lines that have everything in one file.

Both published files have a line for each item, with the same `id`; the second is in the folder `possible_answer`:

    {"id": "simple_python_0", "question": [[{"role": "user", "content": "..."}]], "function": [{"name": ...}]}
    {"id": "simple_python_0", "ground_truth": [{"calculate_triangle_area": {"base": [10], "unit": ["m", ""]}}]}

A line of the other format has `utterance`, `functions` and `accepted`.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from fewparse.datasets.dataset import CHECK_FILE, decode, read_bytes
from fewparse.datasets.function_calls.accepted import AcceptedArguments
from fewparse.errors import DataError
from fewparse.files import parse_json_line
from fewparse.text import is_unicode

ANSWERS = "possible_answer"
"""The folder of the published answers."""


class Item(NamedTuple):
    """An utterance, the functions that are declared for it, the one to be called and its accepted arguments."""

    utterance: str
    functions: list[dict[str, Any]]
    called: str
    accepted: AcceptedArguments

    @property
    def declaration(self) -> dict[str, Any]:
        """The declaration of the function to be called."""
        return next(function for function in self.functions if function["name"] == self.called)


def read_items(path: Path) -> list[Item]:
    """Return the items of a file of JSON lines; raise `DataError`."""
    return [
        item_of(row, path, number, lambda row: (row["utterance"], row["functions"], row["accepted"]))
        for number, row in rows(path)
    ]


def read_published(questions: Path, answers: Path) -> list[Item]:
    """Return the items of the two published files; raise `DataError`."""
    accepted = {row.get("id"): row.get("ground_truth") for _, row in rows(answers)}

    def parts(row: dict[str, Any]) -> tuple[Any, Any, Any]:
        return row["question"][0][-1]["content"], row["function"], accepted[row["id"]]

    return [item_of(row, questions, number, parts) for number, row in rows(questions)]


def rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a file of JSON lines with their line numbers."""
    for number, line in enumerate(decode(read_bytes(path), path).split("\n"), 1):
        if line.strip():
            yield number, parse_json_line(line, number, path, DataError, CHECK_FILE)


def item_of(
    row: dict[str, Any], path: Path, number: int, parts: Callable[[dict[str, Any]], tuple[Any, Any, Any]]
) -> Item:
    """Return the item of a row, given what takes utterance, functions and accepted calls from it."""
    try:
        utterance, functions, calls = parts(row)
        ((called, accepted),) = [pair for call in calls for pair in call.items()]
        item = Item(utterance, functions, called, accepted)
        names = [function["name"] for function in functions]
        valid = is_text(utterance) and all(map(is_text, names)) and item.declaration is not None
        valid = valid and all(isinstance(values, list) and values for values in accepted.values())
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, StopIteration):
        valid = False
    if not valid:
        message = "not an item with an utterance, functions and the accepted arguments of one of them"
        raise DataError(message, path, number, hint=CHECK_FILE)
    return item


def is_text(value: Any) -> bool:
    """Return whether a value is a text with other characters than spaces."""
    return isinstance(value, str) and bool(value.strip()) and is_unicode(value)
