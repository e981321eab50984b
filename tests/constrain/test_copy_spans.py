"""Copying: free text must be a span of whole words of the utterance."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fewparse.constrain.cfg import CfgConstraint
from fewparse.constrain.copy_spans import can_be_copied, copy_spans, free_text
from fewparse.constrain.copying import CopyConstraint, CopyGrammar
from fewparse.constrain.state import Constraint
from fewparse.errors import ConstraintError, UnknownName
from fewparse.grammar.parsing.forest import Forest, ForestParser
from fewparse.grammar.readers.ebnf import read_grammar
from fewparse.vocabulary import BYTES, Vocabulary
from support.constraint_cases import spans
from support.earley import Recogniser
from support.sample_grammars import CALENDAR

SOURCE = 'start: "<" TEXT ">" | "none"\nTEXT: /[a-zé😀 .,]+/'
PERMITTED = set("abcdefghijklmnopqrstuvwxyzé😀 .,")


def copied(
    utterance: str, source: str = SOURCE, names: tuple[str, ...] = ("TEXT",)
) -> CfgConstraint | CopyConstraint:
    return CopyGrammar(read_grammar(source), names, BYTES).constraint(utterance)


def language(constraint: Constraint) -> set[str]:
    """Return all sentences, by following every allowed byte."""
    found, frontier = set(), [(b"", constraint.start())]
    while frontier:
        prefix, state = frontier.pop()
        if state.may_end:
            found.add(prefix.decode())
        for byte in state.mask().nonzero()[0].tolist():
            following = state.advance(bytes([byte]))
            assert following is not None
            frontier.append((prefix + bytes([byte]), following))
    return found


@pytest.mark.parametrize(
    ("utterance", "expected"),
    [
        ("one two", {"one", "two", "one two"}),
        ("one  two", {"one", "two", "one  two"}),
        (" a, b ", {"a", "a,", "a, b", ",", ", b", "b"}),
        ("one 1 two", {"one", "two"}),
        ("one1 two", {"two"}),
        ("oneXtwo three", {"three"}),
        ("é😀.", {"é", "é😀", "é😀.", "😀", "😀.", "."}),
        ("a a", {"a", "a a"}),
        ("x_y z", {"x", "y", "z", "y z"}),
        ("one\ntwo", {"one", "two"}),
    ],
)
def test_spans_begin_and_end_at_word_boundaries(utterance: str, expected: set[str]) -> None:
    assert language(copied(utterance)) == {"none"} | {f"<{span}>" for span in expected}


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(st.text(st.sampled_from("aabé😀  .,_1Ü\n\u00a0ß"), max_size=14))
@example("")
@example("   ")
def test_the_spans_equal_those_of_brute_force(utterance: str) -> None:
    expected = spans(utterance, PERMITTED.__contains__)
    assert language(copied(utterance)) == {"none"} | {f"<{span}>" for span in expected}


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(st.text(max_size=12))
def test_a_copied_text_occurs_in_the_utterance_and_is_derived_by_the_grammar(utterance: str) -> None:
    source = 'start: "<" TEXT ">" | "none"\nTEXT: /[^<>]+/'
    free = Recogniser(read_grammar(source))
    sentences = language(copied(utterance, source))
    assert sentences == {"none"} | {f"<{span}>" for span in spans(utterance, lambda char: char not in "<>")}
    for sentence in sentences:
        assert free.accepts(sentence)
        assert sentence == "none" or sentence[1:-1] in utterance


def test_spans_are_allowed_in_tokens_of_the_model(model_vocabulary: Vocabulary) -> None:
    grammar = read_grammar(CALENDAR)
    constraint = CopyGrammar(grammar, ("TITLE",), model_vocabulary).constraint("cancel the budget review")
    assert constraint.accepts(b'(what (meeting "budget review"))')
    assert constraint.accepts(b'(what (meeting "the budget"))')
    assert not constraint.accepts(b'(what (meeting "budget reviews"))')
    assert not constraint.accepts(b'(what (meeting "budge"))')
    state = constraint.start().advance(b'(what (meeting "budget')
    assert state is not None
    assert [token for token in model_vocabulary.tokens if token and state.advance(token)] == [
        token for token, yes in zip(model_vocabulary.tokens, state.mask(), strict=True) if yes
    ]
    assert state.allowed([b'"', b" review", b" revi", b"s", b" the"]) == [True, True, True, False, False]


def test_any_span_of_a_long_utterance_can_be_copied() -> None:
    words = [chr(ord("a") + i % 26) * (i % 7 + 1) for i in range(300)]
    constraint = copied(" ".join(words))
    assert constraint.accepts(f"<{' '.join(words)}>".encode())
    assert constraint.accepts(f"<{' '.join(words[150:170])}>".encode())
    assert not constraint.accepts(f"<{' '.join(words[150:170])}b>".encode())


@pytest.mark.parametrize(
    "rule",
    [
        'TEXT: "abc"',
        'TEXT: "a"+',
        "TEXT: /[a-z]/",
        "TEXT: /[a-z]{3}/",
        "TEXT: /[a-z]{1,40}/",
        "TEXT: /[a-z]{2,}/",
        "TEXT: /[a-z]+[0-9]+/",
        "TEXT: /[a-z]+|[0-9]+/",
        'TEXT: "\\"" /[a-z]+/ "\\""',
        "TEXT: TEXT",
        "TEXT: ",
    ],
)
def test_a_rule_that_is_not_a_repeated_character_class_is_rejected(rule: str) -> None:
    with pytest.raises(ConstraintError, match="not one repeated character class") as caught:
        copied("abc abc", f"start: TEXT\n{rule}")
    assert caught.value.hint is not None
    assert 'TEXT: /[^"]+/' in caught.value.hint


@pytest.mark.parametrize(
    "rule",
    [
        "TEXT: /[a-c]+/",
        "TEXT: /[a-c]*/",
        "TEXT: /[a-c]/+",
        "TEXT: LETTER+\nLETTER: /[a-c]/",
        "TEXT: /[a-c]/ | TEXT /[a-c]/",
        "TEXT: /[a-c]/ | /[a-c]/ TEXT",
        'TEXT: OTHER\nOTHER: ("a".."c")+',
    ],
)
def test_any_notation_of_a_repeated_character_class_is_accepted(rule: str) -> None:
    assert language(copied("ab d c", f'start: "<" TEXT ">"\n{rule}')) == {"<ab>", "<c>"}


def test_an_unknown_rule_is_reported_with_suggestions() -> None:
    with pytest.raises(UnknownName, match="unknown rule to copy 'TEXTS'") as caught:
        copied("a", names=("TEXTS",))
    assert caught.value.hint == "Did you mean TEXT? Change `copy` in domain.toml, or allow any text: --no-copy."


def test_several_rules_are_copied_each_with_its_own_characters() -> None:
    source = 'start: WORD "=" NUMBER\nWORD: /[a-z]+/\nNUMBER: /[0-9]+/'
    assert language(copied("ab 12 c", source, ("WORD", "NUMBER"))) == {"ab=12", "c=12"}


def test_without_a_span_the_rest_of_the_language_is_unchanged() -> None:
    constraint = copied(
        "123", 'start: "<" TEXT ">" | "none" | other\nother: "(" other ")" | "x" | TEXT\nTEXT: /[a-z]+/'
    )
    assert "TEXT" in constraint.useless
    assert constraint.start().advance(b"<") is None
    assert all(constraint.accepts(text) for text in [b"none", b"x", b"((x))"])
    assert not constraint.accepts(b"()")


def test_without_a_span_a_grammar_of_copied_text_alone_derives_nothing() -> None:
    with pytest.raises(ConstraintError, match="derives no string"):
        copied("123", "start: TEXT\nTEXT: /[a-z]+/")


def test_generated_rule_names_do_not_clash_with_existing_ones() -> None:
    grammar = read_grammar('start: TEXT TEXT_span_0\nTEXT: /[a-z]+/\nTEXT_span_0: "!"')
    assert Recogniser(copy_spans(grammar, ("TEXT",), "ab c")).accepts("ab!")
    assert not Recogniser(copy_spans(grammar, ("TEXT",), "ab c")).accepts("a!")


ESCAPING = 'start: "<" TEXT ">" | "none"\nTEXT: CHAR+\nCHAR: /[^"\\\\<>]/ | "\\\\" /["\\\\n]/'


def escaped(span: str) -> str:
    return span.replace("\\", "\\\\").replace('"', '\\"')


@pytest.mark.parametrize(
    ("utterance", "expected"),
    [
        ('a "b', {"a", r"a \"", r"a \"b", r"\"", r"\"b", "b"}),
        ("c:\\d", {"c", "c:", r"c:\\", r"c:\\d", ":", r":\\", r":\\d", r"\\", r"\\d", "d"}),
        ("n", {"n"}),
    ],
)
def test_characters_that_a_rule_escapes_are_copied_escaped(utterance: str, expected: set[str]) -> None:
    assert language(copied(utterance, ESCAPING)) == {"none"} | {f"<{span}>" for span in expected}


@settings(max_examples=100)
@given(st.text(st.sampled_from('aanné  "\\<.'), max_size=10))
@example('""')
@example("\\\\")
@example("\\n")
def test_the_escaped_spans_equal_those_of_brute_force(utterance: str) -> None:
    expected = spans(utterance, lambda char: char not in "<>")
    assert language(copied(utterance, ESCAPING)) == {"none"} | {f"<{escaped(span)}>" for span in expected}


@settings(max_examples=150)
@given(
    st.text(st.sampled_from('an "\\'), max_size=6),
    st.lists(st.sampled_from(["a", "n", " ", '\\"', "\\\\", "\\n"]), min_size=1, max_size=3).map("".join),
)
@example("\\n", "\\n")
@example('"\\', '\\"\\\\')
def test_an_escaped_text_can_be_copied_iff_the_constraint_accepts_it(utterance: str, text: str) -> None:
    assert_can_be_copied_iff_accepted(utterance, text, ESCAPING)


@settings(max_examples=150)
@given(st.text(st.sampled_from("ab1X_ "), max_size=6), st.text(st.sampled_from("ab "), min_size=1, max_size=3))
@example("aXb", "b")
@example("a_b", "b")
def test_a_text_can_be_copied_iff_the_constraint_accepts_it(utterance: str, text: str) -> None:
    assert_can_be_copied_iff_accepted(utterance, text, SOURCE)


def assert_can_be_copied_iff_accepted(utterance: str, text: str, source: str) -> None:
    grammar = read_grammar(source)
    forest = ForestParser(grammar).parse(f"<{text}>")
    assert isinstance(forest, Forest)
    accepted = copied(utterance, source).accepts(f"<{text}>".encode())
    assert can_be_copied(forest, grammar, ("TEXT",), utterance) == accepted


@pytest.mark.parametrize(
    ("rule", "plain", "encodings"),
    [
        ('CHAR: /[ab]/ | "!" /[cd]/', "ab", {"c": "!c", "d": "!d", "e": None}),
        ('CHAR: "!" /[cd]/ | /[ab]/ | "?" /[e]/', "ab", {"c": "!c", "e": "?e", "f": None}),
        ("CHAR: /[ab]/ | /[cd]/", "abcd", {"e": None}),
    ],
)
def test_a_character_is_encoded_as_the_rule_writes_it(
    rule: str, plain: str, encodings: dict[str, str | None]
) -> None:
    grammar = read_grammar(f"start: TEXT\nTEXT: CHAR+\n{rule}")
    characters = free_text(grammar, "TEXT")
    assert {char: characters.encoded(char) for char in plain} == {char: char for char in plain}
    assert {char: characters.encoded(char) for char in encodings} == encodings


@pytest.mark.parametrize("rule", ['CHAR: /[ab]/ | "!"', 'CHAR: "!" /[ab]/', "CHAR: /[ab]/ | /[c]/ /[d]/"])
def test_other_kinds_of_escapes_are_rejected(rule: str) -> None:
    with pytest.raises(ConstraintError, match="not one repeated character class"):
        copied("ab", f"start: TEXT\nTEXT: CHAR+\n{rule}")
