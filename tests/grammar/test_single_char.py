"""Regular expressions for one character, against the module whose syntax they have."""

import string
import warnings
from contextlib import suppress
from typing import NoReturn

import pytest
import regex
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fewparse.errors import LimitExceeded
from fewparse.grammar.readers.single_char import PLAIN_CLASS, single_char
from fewparse.grammar.rules import LAST_CODE_POINT, SURROGATES, Chars

EVERYTHING = Chars(()).negated()


class Refused(Exception):
    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message, self.offset = message, offset


def refuse(message: str, offset: int) -> NoReturn:
    raise Refused(message, offset)


def refused(pattern: str) -> Refused:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(Refused) as caught:
            single_char(pattern, refuse)
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
    assert single_char(pattern, refuse) == Chars(ranges)


def test_a_negated_class_is_all_other_characters() -> None:
    assert single_char('[^"]', refuse) == Chars(((34, 34),)).negated()


def test_a_property_stands_for_all_its_characters() -> None:
    letters = single_char(r"\p{L}", refuse)
    assert all(c in letters for c in "aÄßж中")
    assert not any(c in letters for c in "1 _😀")


@pytest.mark.parametrize("pattern", ["a?", "", "(?s:.)"])
def test_a_pattern_that_matches_nothing_too_is_any_character(pattern: str) -> None:
    assert single_char(pattern, refuse) == EVERYTHING


@pytest.mark.parametrize("pattern", ["ab", "a{2}", "(?V1)[a--a]"])
def test_a_pattern_that_needs_more_than_one_character_is_none(pattern: str) -> None:
    assert single_char(pattern, refuse) == Chars(())


def test_surrogates_are_no_characters() -> None:
    for pattern in (f"[{chr(0)}-{chr(LAST_CODE_POINT)}]", "[^a]", r"\p{Cs}|a", r"[\ud7ff-\ue000]"):
        for low, high in single_char(pattern, refuse).ranges:
            assert high < SURROGATES.ranges[0][0] or low > SURROGATES.ranges[0][1]


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(st.text(st.sampled_from("abcxyz019-^&|~ .:,ä一"), min_size=1, max_size=7), st.booleans())
def test_a_class_is_read_as_the_module_matches_it(content: str, negated: bool) -> None:
    pattern = f"[{'^' * negated}{content}]"
    assume(PLAIN_CLASS.fullmatch(pattern))
    try:
        match = regex.compile(pattern).match
    except regex.error:
        assert refused(pattern)
        return
    chars = single_char(pattern, refuse)
    for char in map(chr, [*range(0x180), *range(0x4DFF, 0x4E10), 0xD7FF, 0xE000, LAST_CODE_POINT]):
        assert (char in chars) == bool(match(char)), char


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.one_of(st.sampled_from(string.printable), st.characters(exclude_categories=["Cs"])))
def test_a_single_character_stands_for_itself_unless_it_is_a_sign(char: str) -> None:
    assume(char not in r"\.^$*+?{}[]|()")
    assert single_char(char, refuse) == Chars(((ord(char), ord(char)),))
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
        ("a(?R)?", "a regular expression that calls its own parts is not understood", 1),
        ("(a|(?1))", "a regular expression that calls its own parts is not understood", 3),
        ("(" * 900 + "a" + ")" * 900, "the regular expression is too complex", 0),
    ],
)
def test_a_mistake_has_its_place(pattern: str, message: str, offset: int) -> None:
    error = refused(pattern)
    assert message in error.message
    assert error.offset == offset


def test_a_long_class_is_read_and_any_other_long_pattern_exceeds_a_limit() -> None:
    han = "".join(map(chr, range(0x4E00, 0x9000)))
    assert single_char(f"[{han}]", refuse) == Chars(((0x4E00, 0x8FFF),))
    with pytest.raises(LimitExceeded, match="2,001 characters"):
        single_char("a|" * 1_000 + "b", refuse)


def test_a_pattern_that_warns_elsewhere_warns_nobody_here() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "b" in single_char("[[ab]", refuse)


@settings(max_examples=15, deadline=None, derandomize=True, database=None)
@given(st.text(st.sampled_from("ab[](){}|?*+^$.\\dpwLxu0:-&<=!"), min_size=2, max_size=6))
def test_any_pattern_is_read_or_refused_at_a_place_inside_it(pattern: str) -> None:
    places: list[int] = []

    def note(message: str, offset: int) -> NoReturn:
        places.append(offset)
        raise Refused(message, offset)

    with suppress(Refused):
        chars = single_char(pattern, note)
        assert ("a" in chars) == bool(regex.compile(pattern).match("a"))
    assert all(0 <= offset <= len(pattern) for offset in places)
