"""The EBNF reader: every feature has the same language as in Lark."""

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from lark.exceptions import GrammarError

from fewparse.grammar.readers.ebnf import read_grammar
from fewparse.grammar.rules import Grammar
from support.earley import Recogniser
from support.sample_grammars import CALENDAR, lark_language, length_within, strings

FEATURES = {
    "a literal": ('start: "ab"', "abc", {"ab"}),
    "alternatives": ('start: "a" | "b" "c" | "cb"', "abc", {"a", "bc", "cb"}),
    "alternatives over several lines": ('start: "a"\n     | "b"\n\n     | "c"', "abc", {"a", "b", "c"}),
    "an empty alternative": ('start: "a" |', "ab", {"", "a"}),
    "an empty first alternative": ('start: | "a"', "ab", {"", "a"}),
    "a group": ('start: ("a" | "b") "c"', "abc", {"ac", "bc"}),
    "nested groups": ('start: ("a" ("b" | ("c" "a")))', "abc", {"ab", "aca"}),
    "an option": ('start: "a" "b"?', "abc", {"a", "ab"}),
    "an optional group": ('start: "a" ("b" "c")?', "abc", {"a", "abc"}),
    "brackets": ('start: ["a"] "b" ["c" | "a"]', "abc", {"b", "ab", "bc", "ba", "aba", "abc"}),
    "a star": ('start: "a"* "b"', "ab", {"b", "ab", "aab", "aaab", "aaaab"}),
    "a plus": ('start: "a"+ "b"', "ab", {"ab", "aab", "aaab", "aaaab"}),
    "a star of a group": ('start: ("a" "b")*', "ab", {"", "ab", "abab"}),
    "a repeated option": ('start: ("a"?)+ "b"', "ab", {"b", "ab", "aab", "aaab", "aaaab"}),
    "an exact count": ('start: "a" ~ 3', "ab", {"aaa"}),
    "a count of zero": ('start: "a" ~ 0 "b"', "ab", {"b"}),
    "a range of counts": ('start: ("a"|"b")~1..2 "c"', "abc", {"ac", "bc", "aac", "abc", "bac", "bbc"}),
    "a count from zero": ('start: "a"~0..2', "ab", {"", "a", "aa"}),
    "a range of characters": ('start: "b".."d" "a"', "abcde", {"ba", "ca", "da"}),
    "ignored case": ('start: "aB"i', "aAbB", {"ab", "aB", "Ab", "AB"}),
    "ignored case with punctuation": ('start: "a."i', "aA.b", {"a.", "A."}),
    "ignored case beyond ASCII": ('start: "ä"i', "äÄa", {"ä", "Ä"}),
    "an escaped quote and backslash": (r'start: "\"\\"', '"\\a', {'"\\'}),
    "escaped whitespace": (r'start: "\n" "\t" "\r"', "\n\t\r", {"\n\t\r"}),
    "hexadecimal escapes": (r'start: "\x61\u00e4\U0001F600"', "aä😀", {"aä😀"}),
    "a regular expression": ("start: /a[bc]{1,2}/", "abc", {"ab", "ac", "abb", "abc", "acb", "acc"}),
    "a regular expression with ignored case": ("start: /[a-b]c/i", "abAc", {"ac", "bc", "Ac"}),
    "an escaped slash": (r"start: /a\/b/", "a/b", {"a/b"}),
    "rules": ('start: x y\nx: "a"\ny: "b" | x', "ab", {"ab", "aa"}),
    "rules used before they are defined": ('b: "a"\nstart: b c\nc: "b"', "ab", {"ab"}),
    "terminals": ('start: X Y?\nX: "a" | "ab"\nY: "b"', "ab", {"a", "ab", "abb"}),
    "terminals of terminals": ('start: Y\nX: "a"\nY: X "b" X', "ab", {"aba"}),
    "recursion": ('start: "a" start "b" | "c"', "abc", {"c", "acb", "aacbb"}),
    "comments": ('// before\nstart: "a" // after "b"\n  # another\n  | "b"', "ab", {"a", "b"}),
    "comment signs in a string": ('start: "//" | "#"', "/#", {"//", "#"}),
    "aliases": ('start: "a" -> first\n  | "b" -> second\nx: start', "ab", {"a", "b"}),
    "inlined and kept rules": ('?start: x\n!x: "a" | _y\n_y: "b"', "ab", {"a", "b"}),
    "priorities": ('start.2: X\nX.-1: "a"', "ab", {"a"}),
    "spaces only where they are written": ('start: "a" " " "b"', "ab ", {"a b"}),
}


def language(grammar: Grammar, alphabet: str, max_length: int) -> set[str]:
    ours = Recogniser(grammar)
    return {text for text in strings(alphabet, max_length) if ours.accepts(text)}


@pytest.mark.parametrize("feature", FEATURES)
def test_a_feature_has_the_expected_language(feature: str) -> None:
    source, alphabet, expected = FEATURES[feature]
    max_length = min(5, length_within(alphabet, 800))
    found = language(read_grammar(source), alphabet, max_length)
    assert found == {text for text in expected if len(text) <= max_length} != set()


@pytest.mark.parametrize("feature", FEATURES)
def test_a_feature_has_the_language_of_lark(feature: str) -> None:
    source, alphabet, _ = FEATURES[feature]
    max_length = min(5, length_within(alphabet, 400))
    lark = lark_language(source)
    assert language(read_grammar(source), alphabet, max_length) == set(filter(lark, strings(alphabet, max_length)))


def test_another_rule_can_be_the_start() -> None:
    grammar = read_grammar('start: "a"\nother: "b" start', start="other")
    assert language(grammar, "ab", 3) == {"ba"}


def test_fresh_names_do_not_clash_with_names_of_the_grammar() -> None:
    grammar = read_grammar('start: start__1 ("a" "b")+\nstart__1: "c"*\nstart__2: "c"')
    assert language(grammar, "abc", 3) == {"ab", "cab"}
    assert {"start", "start__1", "start__2"} < set(grammar.rules)


def test_a_fixed_prefix_can_be_added_to_every_sentence() -> None:
    grammar = read_grammar('start: "a" | "(" start ")"\nled: "b"')
    assert language(grammar.with_prefix(" b"), " ab()", 5) == {" ba", " b(a)"}
    assert grammar.with_prefix("") is grammar


def test_a_long_bounded_repetition_respects_its_bounds() -> None:
    ours = Recogniser(read_grammar('start: "a"~50..300'))
    assert [n for n in range(400) if ours.accepts("a" * n)] == list(range(50, 301))


def test_the_calendar_grammar_is_read_without_useless_rules() -> None:
    ours = Recogniser(read_grammar(CALENDAR))
    assert ours.accepts("(when (next (meetings (with Anna) (on tomorrow))))")
    assert not ours.accepts("(when (next (meetings (on tomorrow) (with Anna))))")


ATOMS = st.sampled_from(['"a"', '"b"', '"ab"', '"A"i', '"a".."b"', "/[ab]/", "/a|b/", "x", "Y", "/b{1,2}/"])


def compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    signs = st.sampled_from(["?", "*", "+", "~2", "~0..2", "~1..3"])
    return st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(" ".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda options: f"({' | '.join(options)})"),
        inner.map(lambda part: f"[{part}]"),
        st.builds(lambda part, sign: f"({part}){sign}", inner, signs),
    )


@settings(max_examples=120, deadline=None, derandomize=True, database=None)
@given(st.recursive(ATOMS, compound, max_leaves=6))
def test_any_expression_has_the_language_of_lark(expression: str) -> None:
    source = f'start: "<" {expression} ">"\nx: "b" | "a" x | y\ny: "ba"\nY: "a" | "aab"'
    try:
        lark = lark_language(source)
    except GrammarError:  # Lark rejects options of options
        reject()
    ours = Recogniser(read_grammar(source))
    for inner in strings("ab", 4):
        text = f"<{inner}>"
        assert ours.accepts(text) == lark(text), text
