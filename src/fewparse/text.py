"""Text from outside: is it Unicode, how it is shown on a terminal, and how values become JSON."""

import json
import math
import re
from collections.abc import Callable
from typing import Any

from fewparse.errors import FewparseError

SURROGATES = re.compile("[\ud800-\udfff]")
# Control characters, which a terminal obeys, and bidirectional controls, which reorder what a reader sees.
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
REPLACEMENT = "\ufffd"


def is_unicode(text: str) -> bool:
    """Return whether a string can be encoded as UTF-8; lone surrogates cannot."""
    return SURROGATES.search(text) is None


def without_surrogates(text: str) -> str:
    """Return a text with lone surrogates replaced by U+FFFD, so that it can be encoded as UTF-8."""
    return SURROGATES.sub(REPLACEMENT, text)


def printable(text: str) -> str:
    """Return a text as it is safe to show: control characters other than tab and newline become escapes."""
    return CONTROLS.sub(lambda found: escape(found[0]), without_surrogates(text.replace("\r\n", "\n")))


def one_line(text: str, limit: int | None = None) -> str:
    """Return a text on one line; of one that is longer than a limit, the first words."""
    line = " ".join(text.split())
    if limit is None or len(line) <= limit:
        return line
    return f"{line[:limit].rpartition(' ')[0] or line[:limit]} ..."


def escape(char: str) -> str:
    """Return a control character as an escape sequence in ASCII."""
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def to_json(
    value: Any, indent: int | None = None, sort_keys: bool = False, default: Callable[[Any], Any] | None = None
) -> str:
    """Return a value as JSON that every reader accepts and every terminal shows.

    Control characters are escaped, and lone surrogates replaced by U+FFFD. `default` converts values of other
    types. Raises `FewparseError` for NaN, infinity and values that JSON cannot express.
    """
    try:
        text = json.dumps(
            value, ensure_ascii=False, allow_nan=False, indent=indent, sort_keys=sort_keys, default=default
        )
    except (ValueError, TypeError, RecursionError) as error:
        raise FewparseError(f"the result cannot be written as JSON: {error}") from None
    return CONTROLS.sub(lambda found: json_escape(found[0]), without_surrogates(text))


def json_escape(char: str) -> str:
    """Return a control character as an escape of a JSON string; the line breaks of an indented text stay."""
    return char if char in "\n\r\t" else f"\\u{ord(char):04x}"


def json_value(value: Any) -> Any:
    """Return a value for JSON: bytes as text, escaped where they are not UTF-8, and infinite numbers as text."""
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: json_value(each) for key, each in value.items()}
    return [json_value(each) for each in value] if isinstance(value, list | tuple) else value
