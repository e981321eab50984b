"""Find a part of a JSON text by its path."""

import json
import re
from collections.abc import Sequence

BLANKS = re.compile(r"[ \t\n\r]*")
DECODER = json.JSONDecoder()


def pointer(path: Sequence[str | int]) -> str:
    """Return a path as a JSON pointer with a leading #, as in `#/properties/name`."""
    return "#" + "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def find_offset(text: str, path: Sequence[str | int]) -> int | None:
    """Return the offset of the value at a path of a valid JSON text; None if there is no such value."""
    at = skip_blanks(text, 0)
    for part in path:
        found = _member(text, at, part)
        if found is None:
            return None
        at = found
    return at


def _member(text: str, at: int, part: str | int) -> int | None:
    """Return the offset of a member of the object or array at an offset."""
    if text[at] not in "{[":
        return None
    in_object = text[at] == "{"
    at, index = skip_blanks(text, at + 1), 0
    while text[at] not in "}]":
        key: str | int = index
        if in_object:
            key, at = DECODER.raw_decode(text, at)
            at = skip_blanks(text, skip_blanks(text, at) + 1)
        if key == part:
            return at
        _, at = DECODER.raw_decode(text, at)
        at, index = skip_blanks(text, at), index + 1
        if text[at] == ",":
            at = skip_blanks(text, at + 1)
    return None


def skip_blanks(text: str, at: int) -> int:
    """Return the offset of the next character that is not blank."""
    found = BLANKS.match(text, at)
    assert found is not None
    return found.end()
