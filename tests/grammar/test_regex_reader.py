"""Regular expressions of terminals, compared with Python's `re`."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewparse.grammar.readers.ebnf import read_grammar
from support.earley import Recogniser
from support.sample_grammars import length_within, strings

PATTERNS = [
    (r"abc", "abc"),
    (r"a|bc|", "abc"),
    (r"(a|b)c", "abc"),
    (r"(?:ab|c)*", "abc"),
    (r"a?b*c+", "abc"),
    (r"a{2}b{0,2}", "ab"),
    (r"(ab){1,}", "ab"),
    (r"a{0}b", "ab"),
    (r"[abc]", "abcd"),
    (r"[a-c]x", "abcdx"),
    (r"[^a-c]", "abcd\n"),
    (r"[]a]+", "]ab"),
    (r"[^]a]", "]ab"),
    (r"[a-]", "a-b"),
    (r"[-a]", "a-b"),
    (r"[a\-c]", "abc-"),
    (r"[\]\\]", "]\\a"),
    (r"[/]", "/a"),
    (r"[a^]", "a^b"),
    (r"[.*]", "a.*"),
    (r".", "ab\n\r"),
    (r"a.c", "abc\n"),
    (r"\.\*\+\?\(\)\[\]\{\}\|\^\$", ".*"),
    (r"\{a\}", "{a}"),
    (r"a}", "a}"),
    (r"\d+", "0a9"),
    (r"\D", "0a9"),
    (r"\w\W", "a_ -"),
    (r"\s\S", " \t\na"),
    (r"[\d_]+", "0_a"),
    (r"[^\w]", "a_ -"),
    (r"[\D1]", "12a"),
    (r"\n|\t|\r|\f|\v", "\n\t\r\f\v"),
    (r"\x61|\u00e4|\U0001F600", "aä😀"),
    (r"[\x61-\x63]", "abcd"),
    (r"[ä-ü]ß?", "äüßa"),
    (r"[一-龥]😀", "一龥😀a"),
    (r"a b", "a b"),
    (r"((a)|(b(c)))+", "abc"),
    (r"(a|b)*abb", "ab"),
    (r"(a?){3}", "ab"),
    (r"(a*)*b", "ab"),
]
IGNORED_CASE = [
    (r"ab", "aAbB"),
    (r"[a-b]c", "aAbBcC"),
    (r"[^a]", "aAbB"),
    (r"[ä]|ö", "äÄöÖ"),
    (r"[^ä]", "äÄa"),
    (r"ß|ÿ", "ßÿŸs"),
    (r"[α-γ]", "αβΓΔ"),
    (r"[_1]\.", "_1."),
]


def check(pattern: str, flag: str, alphabet: str) -> None:
    """Every short string is accepted iff Python fully matches it."""
    ours = Recogniser(read_grammar(f"start: /{pattern.replace('/', chr(92) + '/')}/{flag}"))
    python = re.compile(pattern, re.IGNORECASE if flag else 0)
    for text in strings(alphabet, min(6, length_within(alphabet, 2_000))):
        assert ours.accepts(text) == bool(python.fullmatch(text)), text


@pytest.mark.parametrize(("pattern", "alphabet"), PATTERNS)
def test_a_pattern_matches_what_python_matches(pattern: str, alphabet: str) -> None:
    check(pattern, "", alphabet)


@pytest.mark.parametrize(("pattern", "alphabet"), IGNORED_CASE)
def test_a_pattern_with_ignored_case_matches_what_python_matches(pattern: str, alphabet: str) -> None:
    check(pattern, "i", alphabet)


def test_the_named_classes_are_those_of_ascii() -> None:
    for pattern in [r"\d", r"\w", r"\s"]:
        ours = Recogniser(read_grammar(f"start: /{pattern}/"))
        python = re.compile(pattern, re.ASCII)
        for char in map(chr, range(0x700)):
            assert ours.accepts(char) == bool(python.fullmatch(char)), (pattern, char)


ATOMS = st.sampled_from(["a", "b", "c", ".", "[ab]", "[^a]", r"\x61", "[a-c]", r"\w", r"\S"])


def compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    signs = st.sampled_from(["?", "*", "+", "{2}", "{1,}", "{0,2}", "{1,3}"])
    return st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda options: f"({'|'.join(options)})"),
        st.builds(lambda part, sign: f"(?:{part}){sign}", inner, signs),
    )


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(st.recursive(ATOMS, compound, max_leaves=8))
def test_any_pattern_matches_what_python_matches(pattern: str) -> None:
    ours = Recogniser(read_grammar(f"start: /{pattern}/"))
    python = re.compile(pattern)
    for text in strings("abc", 4):
        assert ours.accepts(text) == bool(python.fullmatch(text)), text
