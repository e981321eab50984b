"""Patterns of one character as character classes, compared with the `regex` module."""

import string
import warnings
from contextlib import suppress
from typing import NoReturn

import pytest
import regex
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fewparse.errors import LimitExceeded
from fewparse.grammar.readers.regex import PLAIN_CLASS, character_class
from fewparse.grammar.rules import LAST_CODE_POINT, SURROGATES, Chars

EVERYTHING = Chars(()).negated()


class Rejected(Exception):
    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message, self.offset = message, offset


def reject(message: str, offset: int) -> NoReturn:
    raise Rejected(message, offset)


def rejection_of(pattern: str) -> Rejected:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(Rejected) as caught:
            character_class(pattern, reject)
    return caught.value


@pytest.mark.parametrize(
    ("pattern", "ranges"),
    [
        ("a", ((97, 97),)),
        (" ", ((32, 32),)),
        ('"', ((34, 34),)),
        ("😀", ((0x1F600, 0x1F600),)),
        ("[a-c]", ((97, 99),)),
        ("[ca-b]", ((97, 99),)),
        ("[a-]", ((45, 45), (97, 97))),
        ("[-a]", ((45, 45), (97, 97))),
        ("[a^]", ((94, 94), (97, 97))),
        ("[.*]", ((42, 42), (46, 46))),
        (r"\.", ((46, 46),)),
        (r"\x2f", ((47, 47),)),
        ("a|b", ((97, 98),)),
        ("(?i)k", ((75, 75), (107, 107), (0x212A, 0x212A))),
        ("(?V1)[[a-e]--[bd]]", ((97, 97), (99, 99), (101, 101))),
        ("[[:digit:]&&[0-9]]", ()),
        ("(?V1)[[:digit:]&&[0-9]]", ((48, 57),)),
        ("(?=a)", ((97, 97),)),
        ("a{1}", ((97, 97),)),
    ],
)
def test_a_pattern_stands_for_these_characters(pattern: str, ranges: tuple[tuple[int, int], ...]) -> None:
    assert character_class(pattern, reject) == Chars(ranges)


def test_a_negated_class_is_all_other_characters() -> None:
    assert character_class('[^"]', reject) == Chars(((34, 34),)).negated()


def test_a_property_stands_for_all_its_characters() -> None:
    letters = character_class(r"\p{L}", reject)
    assert all(c in letters for c in "aÄßж中")
    assert not any(c in letters for c in "1 _😀")


@pytest.mark.parametrize("pattern", ["a?", "", "(?s:.)"])
def test_a_pattern_that_also_matches_the_empty_string_is_any_character(pattern: str) -> None:
    assert character_class(pattern, reject) == EVERYTHING


@pytest.mark.parametrize("pattern", ["ab", "a{2}", "(?V1)[a--a]"])
def test_a_pattern_that_needs_more_than_one_character_is_empty(pattern: str) -> None:
    assert character_class(pattern, reject) == Chars(())


def test_surrogates_are_excluded() -> None:
    for pattern in (f"[{chr(0)}-{chr(LAST_CODE_POINT)}]", "[^a]", r"\p{Cs}|a", r"[\ud7ff-\ue000]"):
        for low, high in character_class(pattern, reject).ranges:
            assert high < SURROGATES.ranges[0][0] or low > SURROGATES.ranges[0][1]


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(st.text(st.sampled_from("abcxyz019-^&|~ .:,ä一"), min_size=1, max_size=7), st.booleans())
def test_a_class_is_read_as_the_module_matches_it(content: str, negated: bool) -> None:
    pattern = f"[{'^' * negated}{content}]"
    assume(PLAIN_CLASS.fullmatch(pattern))
    try:
        match = regex.compile(pattern).match
    except regex.error:
        assert rejection_of(pattern)
        return
    chars = character_class(pattern, reject)
    for char in map(chr, [*range(0x180), *range(0x4DFF, 0x4E10), 0xD7FF, 0xE000, LAST_CODE_POINT]):
        assert (char in chars) == bool(match(char)), char


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.one_of(st.sampled_from(string.printable), st.characters(exclude_categories=["Cs"])))
def test_a_character_without_special_meaning_stands_for_itself(char: str) -> None:
    assume(char not in r"\.^$*+?{}[]|()")
    assert character_class(char, reject) == Chars(((ord(char), ord(char)),))
    assert regex.compile(char).match(char)


@pytest.mark.parametrize(
    ("pattern", "message", "offset"),
    [
        ("(a", "missing )", 2),
        ("*a", "nothing to repeat", 0),
        (r"\p{Klingon}", "unknown property", 11),
        ("[b-a]", "this range runs backwards", 4),
        ("(?P<n>a", "missing )", 7),
        ("x(?:a{100}){100}", "the counts of the regular expression are too large", 5),
        ("x{999999999}", "the counts of the regular expression are too large", 1),
        ("a(?R)?", "a regular expression that calls its own parts is not supported", 1),
        ("(a|(?1))", "a regular expression that calls its own parts is not supported", 3),
        ("(" * 900 + "a" + ")" * 900, "the regular expression is too complex", 0),
    ],
)
def test_a_mistake_has_its_offset(pattern: str, message: str, offset: int) -> None:
    error = rejection_of(pattern)
    assert message in error.message
    assert error.offset == offset


def test_a_long_class_is_read_and_any_other_long_pattern_exceeds_a_limit() -> None:
    han = "".join(map(chr, range(0x4E00, 0x9000)))
    assert character_class(f"[{han}]", reject) == Chars(((0x4E00, 0x8FFF),))
    with pytest.raises(LimitExceeded, match="2,001 characters"):
        character_class("a|" * 1_000 + "b", reject)


def test_warnings_of_the_module_are_suppressed() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "b" in character_class("[[ab]", reject)


@settings(max_examples=15, deadline=None, derandomize=True, database=None)
@given(st.text(st.sampled_from("ab[](){}|?*+^$.\\dpwLxu0:-&<=!"), min_size=2, max_size=6))
def test_any_pattern_is_read_or_rejected_at_an_offset_inside_it(pattern: str) -> None:
    offsets: list[int] = []

    def record(message: str, offset: int) -> NoReturn:
        offsets.append(offset)
        raise Rejected(message, offset)

    with suppress(Rejected):
        chars = character_class(pattern, record)
        assert ("a" in chars) == bool(regex.compile(pattern).match("a"))
    assert all(0 <= offset <= len(pattern) for offset in offsets)
