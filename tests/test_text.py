"""Foreign text on terminals and in JSON."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewparse.errors import FewparseError
from fewparse.text import is_unicode, printable, to_json

ANY_TEXT = st.text(st.characters(codec=None, categories=None))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("a\rb", "a\\x0db"),
        ("a\r\nb\tc", "a\nb\tc"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\ud800", "\ufffd"),
        ("مرحبا 👩‍👩‍👧 é", "مرحبا 👩‍👩‍👧 é"),
    ],
)
def test_control_characters_are_shown_as_escapes(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(ANY_TEXT)
def test_printable_text_can_be_encoded_and_has_no_control_characters(text: str) -> None:
    shown = printable(text)
    shown.encode()
    assert not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 for char in shown if char not in "\t\n")


@given(st.recursive(st.none() | st.booleans() | st.integers() | ANY_TEXT, st.lists))
def test_json_can_be_encoded_and_keeps_values_that_are_unicode(value: object) -> None:
    text = to_json(value)
    text.encode()
    assert printable(text) == text
    if is_unicode(json.dumps(value, ensure_ascii=False)):
        assert json.loads(text) == value


@pytest.mark.parametrize("value", [math.nan, [math.inf], {"a": -math.inf}, object()])
def test_values_that_json_cannot_express_are_errors(value: object) -> None:
    with pytest.raises(FewparseError, match="cannot be written as JSON"):
        to_json(value)
