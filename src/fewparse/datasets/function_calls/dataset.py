"""Function calls of the Berkeley Function-Calling Leaderboard (BFCL, Patil et al.), a domain for each item set.

Downloaded from the repository of the leaderboard, or imported from a folder with the published files or a JSON
lines file for each item set. In BFCL every item has functions of its own; here, those of all items are the
functions of the domain. Items for which no function fits are not used. Besides the examples, these files are
stored for each domain:

functions.json   the functions of all items, as they are published
accepted.jsonl   the accepted values of the arguments of each gold program
data_notes.txt   how many of the published items there are
"""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fewparse.datasets.dataset import CHECK_FILE, ONLY_ONCE, ConvertedFiles, Dataset
from fewparse.datasets.function_calls.accepted import first_accepted
from fewparse.datasets.function_calls.files import ANSWERS, Item, read_items, read_published
from fewparse.datasets.storage import DATA_NOTES, TEST, TRAIN, to_data_notes, to_jsonl
from fewparse.errors import DataError, DataUnavailable

NAME = "function-calls"
FUNCTIONS, ACCEPTED = "functions.json", "accepted.jsonl"
PUBLISHED = {"simple": "BFCL_v4_simple_python.json", "multiple": "BFCL_v4_multiple.json"}
"""The published file of each item set."""
PUBLISHED_ITEMS = {"simple": 400, "multiple": 200}
EVERY = 4
"""The first of so many items is a test item, the others are training examples."""
EXPECTED_FILES = (
    f"Expected {' or '.join(f'{name}.jsonl' for name in PUBLISHED)}, or {' or '.join(PUBLISHED.values())} "
    f"with the file of the same name in {ANSWERS}; the files may be in subfolders."
)


class FunctionCalls(Dataset):
    """The domains of BFCL: one function for each item, or several to choose from."""

    name = NAME
    domains = tuple(f"{NAME}/{item_set}" for item_set in PUBLISHED)
    folder = Path(__file__).parent
    required_files = (FUNCTIONS, ACCEPTED)

    def settings(self, domain: str) -> dict[str, str]:
        """Return the name of a domain."""
        return {"name": domain}

    def convert(self, source: Path) -> ConvertedFiles:
        """Convert each item set that the folder has."""
        found = {item_set: find_items(source, item_set) for item_set in PUBLISHED}
        if not any(found.values()):
            raise DataUnavailable(f"{source} has no files of {NAME}", EXPECTED_FILES)
        files: dict[str, bytes] = {}
        for item_set, items in found.items():
            if items:
                files |= {f"{item_set}/{name}": content for name, content in stored_files(item_set, items)}
        missing = [item_set for item_set, items in found.items() if not items]
        return ConvertedFiles(files, (f"not in {source}: {', '.join(missing)}",) if missing else ())


FUNCTION_CALLS = FunctionCalls()


def find_items(source: Path, item_set: str) -> list[Item]:
    """Return the items of a set in or below a folder, none if it has no file of them; raise `DataError`."""
    names = (f"{item_set}.jsonl", PUBLISHED[item_set])
    paths = [path for path in sorted(source.rglob("*")) if path.name in names and os.path.isfile(path)]
    questions = [path for path in paths if path.parent.name != ANSWERS]
    if not questions:
        return []
    if len(questions) > 1:
        raise DataError(f"the items are also in {questions[0]}", questions[1], hint=ONLY_ONCE)
    path = questions[0]
    if path.suffix == ".jsonl":
        items = read_items(path)
    else:
        answers = path.parent / ANSWERS / path.name
        if not os.path.isfile(answers):
            raise DataError(f"the accepted values are not in {answers}", path, hint=EXPECTED_FILES)
        items = read_published(path, answers)
    if len(items) < 2:
        raise DataError("fewer than two items: there must be training and test items", path, hint=CHECK_FILE)
    return items


def stored_files(item_set: str, items: Sequence[Item]) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a domain with their names."""
    functions, names = distinct_functions(items)
    calls = [renamed_call(item, names) for item in items]
    examples = [
        {"utterance": item.utterance, "program": program} for item, (program, _) in zip(items, calls, strict=True)
    ]
    yield TRAIN, to_jsonl(example for i, example in enumerate(examples) if i % EVERY)
    yield TEST, to_jsonl(examples[::EVERY])
    yield FUNCTIONS, (json.dumps({"functions": functions}, indent=1, ensure_ascii=False) + "\n").encode()
    yield ACCEPTED, to_jsonl({"program": program, "accepted": accepted} for program, accepted in calls)
    yield DATA_NOTES, to_data_notes([f"items: {len(items)} of {PUBLISHED_ITEMS[item_set]} published"])


def distinct_functions(items: Sequence[Item]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return the functions of all items with distinct names, and these names by declaration.

    They are in the order of the items. A name that was declared differently before gets the first suffix `_2`,
    `_3`, ... that gives a new name.
    """
    declared = [function for item in items for function in item.functions]
    taken = {function["name"] for function in declared}
    plain: set[str] = set()
    names: dict[str, str] = {}
    functions = []
    for function in declared:
        key = declaration_key(function)
        if key in names:
            continue
        name = function["name"]
        if name in plain:
            number = 2
            while (name := f"{function['name']}_{number}") in taken:
                number += 1
            taken.add(name)
        plain.add(function["name"])
        names[key] = name
        functions.append({**function, "name": name})
    return functions, names


def declaration_key(function: dict[str, Any]) -> str:
    """Return the same text for equal declarations only."""
    return json.dumps(function, sort_keys=True)


def renamed_call(item: Item, names: dict[str, str]) -> tuple[str, Any]:
    """Return the gold program of an item, in the notation `json`, and its accepted values."""
    function = item.declaration
    name = names[declaration_key(function)]
    parameters = function.get("parameters") or {}
    arguments = first_accepted(item.accepted, parameters.get("required") or ())
    return json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False), {name: item.accepted}
