"""Read the questions of GeoQuery: the published JSON file, or JSON lines with one question each.

The published file is a list of queries, of which these fields are read:

    {"sql": ["SELECT ... WHERE STATE_NAME = 'state_name0' ;"],
     "variables": [{"name": "state_name0", "example": "texas"}],
     "sentences": [
       {"question-split": "train", "text": "how big is state_name0", "variables": {"state_name0": "ohio"}}]}

The variables of a question are replaced in its text and in the first query. A variable without a value has the
example's, as in the authors' experiments. A line of the other format has `utterance` and `sql`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fewparse.datasets.dataset import CHECK_FILE, decode, read_bytes
from fewparse.errors import DataError
from fewparse.example import Example
from fewparse.files import parse_json_line
from fewparse.text import is_unicode

SPLITS = ("train", "dev", "test")


def read_published(path: Path) -> dict[str, list[Example]]:
    """Return the questions of the published file by their split, in its order; raise `DataError`."""
    text = decode(read_bytes(path), path)
    try:
        queries = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"not readable JSON: {error}", path, hint=CHECK_FILE) from None
    splits: dict[str, list[Example]] = {split: [] for split in SPLITS}
    try:
        for query in queries:
            for split, example in read_query(query):
                splits[split].append(example)
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise DataError(f"not the published format: {error!r}", path, hint=CHECK_FILE) from None
    return splits


def read_query(query: Mapping[str, Any]) -> Iterator[tuple[str, Example]]:
    """Yield the questions of a query with their splits."""
    sql = query["sql"][0]
    defaults = {variable["name"]: variable["example"] for variable in query["variables"]}
    for sentence in query["sentences"]:
        given = {name: value for name, value in sentence["variables"].items() if value}
        values = defaults | given
        yield sentence["question-split"], Example(fill(sentence["text"], values), fill(sql, values))


def fill(text: str, values: Mapping[str, str]) -> str:
    """Return a text with the names of variables replaced by their values."""
    if not values:
        return text
    names = "|".join(map(re.escape, sorted(values, key=len, reverse=True)))
    return re.sub(rf"\b(?:{names})\b", lambda found: values[found[0]], text)


def read_split(path: Path) -> list[Example]:
    """Return the questions of a JSON lines file; raise `DataError`."""
    text = decode(read_bytes(path), path)
    examples = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        fields = parse_json_line(line, number, path, DataError, CHECK_FILE)
        for key in ("utterance", "sql"):
            value = fields.get(key)
            if not isinstance(value, str) or not value.strip() or not is_unicode(value):
                raise DataError(f"`{key}` is missing, empty or not text", path, number, 1, text, CHECK_FILE)
        examples.append(Example(fields["utterance"], fields["sql"]))
    return examples
