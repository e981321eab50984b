"""Mistakes in a `.lark` grammar are reported with a message, line and caret, and a hint."""

import warnings
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewparse.errors import GrammarError, LimitExceeded
from fewparse.grammar.readers.ebnf import read_grammar
from support.sample_grammars import SAMPLES

MISTAKES = {
    "an undefined rule": ('start: "a" meetin\nmeeting: "b"', "`meetin` is not defined", "meetin\n"),
    "an undefined rule nested deeply": ('start: ("a" [("b" wrong)])\n', "`wrong` is not defined", "wrong"),
    "a double definition": ('start: "a"\nx: "b"\nstart: "c"', "`start` is defined twice", 'start: "c"'),
    "an unclosed string": ('start: "a" "b\nx: "c"', "this string is never closed", '"b\n'),
    "a string over two lines": ('start: x\nx: "a\nb"', "this string is never closed", '"a\n'),
    "an unclosed regular expression": ("start: x\nx: /[a-z]\n", "this regular expression is never closed", "/[a"),
    "an unclosed class": ("start: /[a-z/", "this regular expression is never closed", "/[a"),
    "an unclosed parenthesis": ('start: "a" ("b" | "c"\nx: "d"', "this ( is never closed", '("b"'),
    "an unclosed bracket": ('start: ["a" ("b")', "this [ is never closed", '["a"'),
    "a wrong closing sign": ('start: ("a"]', "this ( is never closed", '("a"'),
    "a closing sign too many": ('start: "a")', "expected a rule, `name: ...`", ")"),
    "%ignore": ('start: "a"\n%ignore " "', "%ignore is not supported", "%ignore"),
    "%import": ("%import common.INT\nstart: INT", "%import is not supported", "%import"),
    "%declare": ("start: X\n%declare X", "%declare is not supported", "%declare"),
    "a template": ('start: x{"a"}', "'{' is not allowed here", "{"),
    "an unknown escape": (r'start: "ab\d"', "this escape is not supported", r"\d"),
    "an escape that Lark reads differently": (r'start: "\/"', "this escape is not supported", r"\/"),
    "an octal escape": (r'start: "\101"', "this escape is not supported", r"\101"),
    "half a hexadecimal escape": (r'start: "a\\\x4"', "this escape is not supported", r"\x4"),
    "a surrogate": (r'start: "\ud83d\ude00"', "this escape is not supported", r"\ud83d"),
    "an escape beyond Unicode": (r'start: "\U00110000"', "this escape is not supported", r"\U0011"),
    "no rule at all": ('"a" "b"', "expected a rule, `name: ...`", '"a"'),
    "a name without a colon": ('start "a"', "expected a rule, `name: ...`", "start"),
    "a lone quantifier": ('start: * "a"', "'*' is not allowed here", "*"),
    "a stray number": ('start: "a" 3', "'3' is not allowed here", "3"),
    "a tilde without a count": ('start: "a" ~ "b"', "~ is followed by a count", "~"),
    "a range of counts without an end": ('start: "a"~2.. "b"', "a range of counts ends with a number", "~"),
    "a range of counts that runs backwards": ('start: "a"~3..2', "this range of counts runs backwards", "~"),
    "a range of strings": ('start: "ab".."c"', 'a range is written "a".."z"', '"ab"'),
    "a range that runs backwards": ('start: "z".."a"', 'a range is written "a".."z"', '"z"'),
    "a range without an end": ('start: "a"..', 'a range is written "a".."z"', '"a"'),
    "a lazy quantifier": ("start: /a+?b/", "lazy and possessive quantifiers have no meaning", "?b"),
    "a possessive quantifier": ("start: /a{2}+/", "lazy and possessive quantifiers have no meaning", "+/"),
    "an anchor at the start": ("start: /^a/", "anchors have no meaning", "^"),
    "an anchor at the end": ("start: /ab$/", "anchors have no meaning", "$"),
    "a lookahead": ("start: /a(?=b)/", "only (...) and (?:...) groups", "(?="),
    "a named group": ("start: /(?P<n>b)/", "only (...) and (?:...) groups", "(?P"),
    "a backward reference": (r"start: /(a)\1/", r"\1 is not supported here", "1/"),
    "a word boundary": (r"start: /\bx/", r"\b is not supported here", "bx"),
    "an unclosed group": ("start: /(a(b)/", "this group is never closed", "(a"),
    "a group closed twice": ("start: /a)b/", "unbalanced )", ")b"),
    "nothing to repeat": ("start: /a|*b/", "nothing to repeat before *", "*b"),
    "a broken count": ("start: /a{b}/", "a count is written {3}, {3,} or {3,5}", "{b"),
    "a count of odd digits": ("start: /a{²}/", "a count is written {3}, {3,} or {3,5}", "{²"),
    "an open count": ("start: /a{2/", "a count is written {3}, {3,} or {3,5}", "{2"),
    "a count that runs backwards": ("start: /a{3,2}/", "not less than its start", "{3"),
    "a huge count": ("start: /a{10001}/", "a count is at most 10000", "{1"),
    "a class that runs backwards": ("start: /[z-a]/", "this range runs backwards", "]/"),
    "half a hexadecimal escape in a pattern": (r"start: /\x4/", r"\x needs 2 hexadecimal digits", "x4"),
    "a signed hexadecimal escape": (r"start: /\x+1/", r"\x needs 2 hexadecimal digits", "x+"),
    "a surrogate in a pattern": (r"start: /[\ud800]/", r"\u needs 4 hexadecimal digits", "ud8"),
    "an escape beyond Unicode in a pattern": (r"start: /\U00110000/", r"\U needs 8 hexadecimal digits", "U0"),
    "an unknown flag": ("start: /a/s", "the flags 's' are not supported", "/a/"),
    "an unsupported character": ('start: "a" = "b"', "'=' is not allowed here", "="),
    "a position after an unusual line break": ('// \u2028\nstart: "\x85" x', "`x` is not defined", "x"),
}


def mistake(source: str) -> GrammarError:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(GrammarError) as caught:
            read_grammar(source, Path("my/grammar.lark"))
    return caught.value


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_shown_with_a_caret(name: str) -> None:
    source, message, text_at_caret = MISTAKES[name]
    error = mistake(source)
    assert error.line is not None
    assert error.column is not None
    line = source.split("\n")[error.line - 1]
    assert (line[error.column - 1 :] + "\n").startswith(text_at_caret)
    shown = error.message.split("\n")
    assert shown[0].startswith(f"my/grammar.lark:{error.line}:{error.column}: ")
    assert message in shown[0]
    assert shown[1:] == ["    " + line, "    " + " " * (error.column - 1) + "^"]


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ('start: meetin\nmeeting: "b"\nx: "c"', "Did you mean meeting?"),
        ('start: quite_other\nx: "c"', "Known: start, x."),
        ('start: "a"\nstart: "b"', "Join the definitions with |."),
        ('start: "a"\n%ignore " "', "write spaces where they occur"),
        ("%import common.INT", "INT: /[0-9]+/"),
        (r'start: "\d"', r"Supported escapes: \\"),
        ('begin: "a"', "It is the start symbol of the grammar."),
    ],
)
def test_a_mistake_has_a_hint(source: str, hint: str) -> None:
    error = mistake(source)
    assert error.hint is not None
    assert hint in error.hint
    assert str(error).endswith(error.hint)


def test_the_first_of_several_undefined_names_is_shown() -> None:
    assert mistake('start: "a" one two').column == 12


def test_a_long_line_is_cut_around_the_caret() -> None:
    source = "start: " + '"a" ' * 100 + "wrong " + '"b" ' * 100
    shown, caret = mistake(source).message.split("\n")[1:]
    assert len(shown) < 120
    assert shown[caret.index("^") :].startswith("wrong")


def test_a_missing_start_is_reported_for_the_file() -> None:
    error = mistake('begin: "a"')
    assert error.message == "my/grammar.lark: no rule is called `start`"
    assert error.line is None


@pytest.mark.parametrize(
    "source",
    [
        'start: "a"~70000',
        'start: "a"~1000000000000',
        'start: "a"~0..70000',
        'start: ("a"~30000 "b")~0..30000 ("c" "d")~0..40000',
    ],
)
def test_a_huge_count_exceeds_a_limit(source: str) -> None:
    with pytest.raises(LimitExceeded, match="`start`") as caught:
        read_grammar(source)
    assert caught.value.hint == "Shorten its bounded repetitions."


@pytest.mark.parametrize(
    "source", ["start: " + "(" * 9_000 + '"a"' + ")" * 9_000, f"start: /{'(' * 9_000}a{')' * 9_000}/"]
)
def test_deep_nesting_exceeds_a_limit(source: str) -> None:
    with pytest.raises(LimitExceeded, match="nested too deeply"):
        read_grammar(source)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.sampled_from(sorted(SAMPLES.values())), st.data())
def test_a_mutated_grammar_is_read_or_rejected_but_never_crashes(source: str, data: st.DataObject) -> None:
    i = data.draw(st.integers(0, len(source)))
    j = data.draw(st.integers(i, min(len(source), i + 3)))
    inserted = data.draw(st.text(st.sampled_from('"/()[]{}|?*+~.:->%\\x^$019²a \n'), max_size=3))
    with suppress(GrammarError, LimitExceeded):
        assert read_grammar(source[:i] + inserted + source[j:]).rules
