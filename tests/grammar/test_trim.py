"""Trimming removes unproductive and unreachable rules and preserves the language."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewparse.grammar.readers.ebnf import read_grammar
from fewparse.grammar.rules import Chars, Grammar, Production, Ref, Text, trim
from support.earley import Recogniser
from support.sample_grammars import ALPHABETS, SAMPLES, lark_language, length_within, strings

USELESS = '\nlost: "z" lost\nlone: "a" other\nother: "b"'


def test_unproductive_rules_are_reported_and_removed() -> None:
    trimmed = trim(read_grammar('start: "a" | "b" x | y\nx: "c" x | y "d"\ny: x'))
    assert trimmed.unproductive == ("x", "y")
    assert trimmed.unreachable == ()
    assert dict(trimmed.grammar.rules) == {"start": ((Text("a"),),)}


def test_unreachable_rules_are_reported_and_removed() -> None:
    trimmed = trim(read_grammar('start: "a" x\nx: "b"\ny: x z\nz: "c"'))
    assert trimmed.unproductive == ()
    assert trimmed.unreachable == ("y", "z")
    assert set(trimmed.grammar.rules) == {"start", "x"}


def test_rules_reached_only_by_unproductive_productions_are_unreachable() -> None:
    trimmed = trim(read_grammar('start: "a" | useful lost\nuseful: "b"\nlost: lost "c"'))
    assert trimmed.unproductive == ("lost",)
    assert trimmed.unreachable == ("useful",)
    assert set(trimmed.grammar.rules) == {"start"}


def test_an_undefined_name_derives_nothing() -> None:
    trimmed = trim(Grammar({"start": ((Ref("ghost"),), (Text("a"),))}))
    assert trimmed.unproductive == ("ghost",)
    assert dict(trimmed.grammar.rules) == {"start": ((Text("a"),),)}


def test_an_empty_character_class_derives_nothing() -> None:
    trimmed = trim(Grammar({"start": ((Ref("x"),), (Text("a"),)), "x": ((Chars(()),),)}))
    assert trimmed.unproductive == ("x",)


def test_a_grammar_that_derives_nothing_becomes_empty() -> None:
    trimmed = trim(read_grammar('start: "a" start | x\nx: "b" start'))
    assert trimmed.unproductive == ("start", "x")
    assert not trimmed.grammar.rules


def test_a_rule_of_the_empty_string_is_productive() -> None:
    assert trim(read_grammar("start: ")).grammar.rules == {"start": ((),)}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_grammar_without_useless_rules_is_unchanged(name: str) -> None:
    grammar = read_grammar(SAMPLES[name])
    assert trim(grammar) == (grammar, (), ())


@pytest.mark.parametrize("name", SAMPLES)
def test_removing_useless_rules_preserves_the_language(name: str) -> None:
    first, _, rest = SAMPLES[name].partition("\n")
    lark = lark_language(SAMPLES[name])
    with_useless = read_grammar(f'{first}\n  | lost "a" | "b" lost\n{rest}{USELESS}')
    trimmed = trim(with_useless)
    assert trimmed.unproductive == ("lost",)
    assert trimmed.unreachable == ("lone", "other")
    ours = Recogniser(trimmed.grammar)
    for text in strings(ALPHABETS[name], length_within(ALPHABETS[name], 300)):
        assert ours.accepts(text) == lark(text), text


NAMES = ["start", "x", "y", "z"]
SYMBOLS = st.one_of(st.sampled_from(NAMES).map(Ref), st.sampled_from("ab").map(Text))
PRODUCTIONS: st.SearchStrategy[tuple[Production, ...]] = st.lists(
    st.lists(SYMBOLS, max_size=3).map(tuple), max_size=3
).map(tuple)


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(st.fixed_dictionaries(dict.fromkeys(NAMES, PRODUCTIONS)))
def test_any_grammar_keeps_its_language_and_only_useful_rules(rules: dict[str, tuple[Production, ...]]) -> None:
    grammar = Grammar(rules)
    trimmed = trim(grammar).grammar
    before = Recogniser(grammar)
    after = Recogniser(trimmed if trimmed.rules else Grammar({"start": ()}))
    for text in strings("ab", 5):
        assert before.accepts(text) == after.accepts(text), text
    for name in trimmed.rules:
        assert Recogniser(Grammar(trimmed.rules, name)).root.items, f"{name} derives nothing"
    assert trim(trimmed).grammar == trimmed
