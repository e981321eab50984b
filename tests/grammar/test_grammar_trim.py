"""Trimming: what derives nothing and what is never reached goes, and the language stays."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewparse.grammar.readers.ebnf import read_grammar
from fewparse.grammar.rules import Chars, Grammar, Production, Ref, Text, trim
from support.earley import Recogniser
from support.sample_grammars import ALPHABETS, SAMPLES, lark_language, longest_within, strings

USELESS = '\nlost: "z" lost\nlone: "a" other\nother: "b"'


def test_reports_and_drops_what_derives_nothing() -> None:
    trimmed = trim(read_grammar('start: "a" | "b" x | y\nx: "c" x | y "d"\ny: x'))
    assert trimmed.unproductive == ("x", "y")
    assert trimmed.unreachable == ()
    assert dict(trimmed.grammar.rules) == {"start": ((Text("a"),),)}


def test_reports_and_drops_what_is_never_reached() -> None:
    trimmed = trim(read_grammar('start: "a" x\nx: "b"\ny: x z\nz: "c"'))
    assert trimmed.unproductive == ()
    assert trimmed.unreachable == ("y", "z")
    assert set(trimmed.grammar.rules) == {"start", "x"}


def test_what_only_unproductive_productions_reach_is_unreachable() -> None:
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


def test_nothing_is_left_of_a_grammar_that_derives_nothing() -> None:
    trimmed = trim(read_grammar('start: "a" start | x\nx: "b" start'))
    assert trimmed.unproductive == ("start", "x")
    assert not trimmed.grammar.rules


def test_the_empty_string_is_something() -> None:
    assert trim(read_grammar("start: ")).grammar.rules == {"start": ((),)}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_grammar_without_useless_rules_stays_as_it_is(name: str) -> None:
    grammar = read_grammar(SAMPLES[name])
    assert trim(grammar) == (grammar, (), ())


@pytest.mark.parametrize("name", SAMPLES)
def test_useless_rules_go_and_the_language_is_that_of_the_clean_grammar(name: str) -> None:
    first, _, rest = SAMPLES[name].partition("\n")
    lark = lark_language(SAMPLES[name])
    spoiled = read_grammar(f'{first}\n  | lost "a" | "b" lost\n{rest}{USELESS}')
    trimmed = trim(spoiled)
    assert trimmed.unproductive == ("lost",)
    assert trimmed.unreachable == ("lone", "other")
    ours = Recogniser(trimmed.grammar)
    for text in strings(ALPHABETS[name], longest_within(ALPHABETS[name], 300)):
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
