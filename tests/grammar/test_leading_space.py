"""Stripping the leading space of all texts changes nothing else in their pairs."""

import random
from dataclasses import replace

import pytest
from hypothesis import assume, given

from fewparse.grammar.readers.leading_space import starts_with_space, strip_leading_space
from fewparse.grammar.readers.scfg import read_scfg_text
from fewparse.grammar.rules import Production, Ref, Text
from fewparse.grammar.synchronous import SIDES, PairedRule, Pairing, SynchronousGrammar
from fewparse.grammar.translation.scorers import Shortest
from fewparse.grammar.translation.translator import OneWayTranslator, Translator
from support.campaign import examples
from support.random_grammars import candidates, heights, seeds, synchronous_grammars

EVENTS = r"""
start -> " " unit , unit
unit -> "find " event , " (Find" event ")"
unit -> unit " please" , unit
unit -> "again " unit , " (Do" unit unit ")"
event -> "the " name " event" , " (Event" name ")"
name -> "first" , " 1"
forgotten -> "x"
"""


def with_spaces(grammar: SynchronousGrammar) -> SynchronousGrammar:
    """Add a leading space to every production that does not begin with a nonterminal."""

    def spaced(production: Production) -> tuple[Production, int]:
        if production and isinstance(production[0], Ref):
            return production, 0
        return (Text(" "), *production), 1

    rules: dict[tuple[str, Production | None], dict[Pairing, None]] = {}
    for rule in grammar.rules:
        program, program_shift = spaced(rule.program) if rule.program is not None else (None, 0)
        for pairing in rule.pairings:
            utterance, shift = spaced(pairing.utterance)
            links = (None,) * program_shift + tuple(None if u is None else u + shift for u in pairing.links)
            rules.setdefault((rule.name, program), {})[Pairing(utterance, links)] = None
    return replace(grammar, rules=tuple(PairedRule(*key, tuple(pairings)) for key, pairings in rules.items()))


@given(synchronous_grammars(), seeds)
@examples(50)
def test_each_pair_loses_its_leading_spaces_and_nothing_else(
    grammar: SynchronousGrammar, rng: random.Random
) -> None:
    spaced_grammar = with_spaces(grammar)
    assume(all(spaced_grammar.start in heights(spaced_grammar.side(side)) for side in SIDES))
    stripped = strip_leading_space(spaced_grammar)
    assert stripped != spaced_grammar
    for side in SIDES:
        for text in dict.fromkeys(candidates(stripped.side(side), rng, count=3, max_length=10)):
            before = OneWayTranslator(spaced_grammar, side).translate(f" {text}", Shortest(), 4)
            after = OneWayTranslator(stripped, side).translate(text, Shortest(), 4)
            assert (after.failure is None) == (before.failure is None)
            assert after.texts == tuple(other[1:] for other in before.texts)


def test_programs_and_utterances_are_translated_without_the_space() -> None:
    translator = Translator(strip_leading_space(read_scfg_text(EVENTS)))
    assert translator.to_utterance("(Find (Event 1))").best == "find the first event"
    assert translator.to_program("find the first event").best == "(Find (Event 1))"
    assert translator.to_program("again find the first event", 2).texts[0].startswith("(Do (Find (Event 1)) (")
    assert translator.to_utterance(" (Find (Event 1))").best is None


def test_stripped_rules_have_locations_and_useless_rules_remain() -> None:
    stripped = strip_leading_space(read_scfg_text(EVENTS, "events.scfg"))
    assert stripped.locations[stripped.start].line == 2
    assert "forgotten" in stripped.side("program").rules
    assert "start" not in stripped.side("program").rules


@pytest.mark.parametrize(
    "source",
    [
        'start -> "find" , "(Find)"',
        'start -> " find" | "look" , "(Find)"\n',
        'start -> maybe " find" , "(Find)"\nmaybe -> "so" , #e\nmaybe -> #e',
        'start -> / / "find" , "(Find)"',
        "start -> #e",
        "start -> start",
    ],
    ids=["none", "not all", "after a nullable symbol", "a class", "empty", "nothing at all"],
)
def test_a_grammar_without_common_leading_space_is_unchanged(source: str) -> None:
    grammar = read_scfg_text(source)
    assert strip_leading_space(grammar) is grammar


def test_one_side_alone_can_be_stripped() -> None:
    grammar = strip_leading_space(
        read_scfg_text('start -> "find " what , " (Find" what ")"\nwhat -> "it" , " it"')
    )
    assert not starts_with_space(grammar.side("program"))
    assert Translator(grammar).to_utterance("(Find it)").best == "find it"


def test_unproductive_rules_are_ignored() -> None:
    grammar = read_scfg_text('start -> " go" , " (Go)"\nstart -> "stop " nowhere , "(Stop" nowhere ")"')
    assert Translator(strip_leading_space(grammar)).to_program("go").best == "(Go)"
