"""A blank that all texts begin with can be taken away; the pairs stay the same otherwise."""

import random
from dataclasses import replace

import pytest
from hypothesis import assume, given

from fewparse.grammar.readers.leading_blank import begins_with_blank, without_leading_blank
from fewparse.grammar.readers.scfg import read_scfg_text
from fewparse.grammar.rules import Production, Ref, Text
from fewparse.grammar.synchronous import SIDES, PairedRule, Pairing, SynchronousGrammar
from fewparse.grammar.translation.scorers import Shortest
from fewparse.grammar.translation.translator import OneWayTranslator, Translator
from support.random_grammars import candidates, examples, heights, seeds, synchronous_grammars

EVENTS = r"""
start -> " " unit , unit
unit -> "find " event , " (Find" event ")"
unit -> unit " please" , unit
unit -> "again " unit , " (Do" unit unit ")"
event -> "the " name " event" , " (Event" name ")"
name -> "first" , " 1"
forgotten -> "x"
"""


def with_blanks(grammar: SynchronousGrammar) -> SynchronousGrammar:
    """Every production begins with a blank, or with a name whose productions do."""

    def begun(production: Production) -> tuple[Production, int]:
        if production and isinstance(production[0], Ref):
            return production, 0
        return (Text(" "), *production), 1

    rules: dict[tuple[str, Production | None], dict[Pairing, None]] = {}
    for rule in grammar.rules:
        program, shifted = begun(rule.program) if rule.program is not None else (None, 0)
        for pairing in rule.pairings:
            utterance, by = begun(pairing.utterance)
            links = (None,) * shifted + tuple(None if u is None else u + by for u in pairing.links)
            rules.setdefault((rule.name, program), {})[Pairing(utterance, links)] = None
    return replace(grammar, rules=tuple(PairedRule(*key, tuple(ways)) for key, ways in rules.items()))


@given(synchronous_grammars(), seeds)
@examples(150)
def test_each_pair_has_lost_its_blanks_and_nothing_else(grammar: SynchronousGrammar, rng: random.Random) -> None:
    blank = with_blanks(grammar)
    assume(all(blank.start in heights(blank.side(side)) for side in SIDES))
    bare = without_leading_blank(blank)
    assert bare != blank
    for side in SIDES:
        for text in dict.fromkeys(candidates(bare.side(side), rng, count=3, longest=10)):
            before = OneWayTranslator(blank, side).translate(f" {text}", Shortest(), 4)
            after = OneWayTranslator(bare, side).translate(text, Shortest(), 4)
            assert (after.failure is None) == (before.failure is None)
            assert after.texts == tuple(other[1:] for other in before.texts)


def test_programs_and_utterances_are_translated_without_their_blank() -> None:
    translator = Translator(without_leading_blank(read_scfg_text(EVENTS)))
    assert translator.to_utterance("(Find (Event 1))").best == "find the first event"
    assert translator.to_program("find the first event").best == "(Find (Event 1))"
    assert translator.to_program("again find the first event", 2).texts[0].startswith("(Do (Find (Event 1)) (")
    assert translator.to_utterance(" (Find (Event 1))").best is None


def test_rules_are_found_where_they_were_written_and_useless_ones_are_kept() -> None:
    bare = without_leading_blank(read_scfg_text(EVENTS, "events.scfg"))
    assert bare.places[bare.start].line == 2
    assert "forgotten" in bare.side("program").rules
    assert "start" not in bare.side("program").rules


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
    ids=["none", "not all", "behind what may be nothing", "a class", "empty", "nothing at all"],
)
def test_texts_that_do_not_all_begin_with_a_blank_stay_as_they_are(source: str) -> None:
    grammar = read_scfg_text(source)
    assert without_leading_blank(grammar) is grammar


def test_one_side_alone_can_lose_its_blank() -> None:
    grammar = without_leading_blank(
        read_scfg_text('start -> "find " what , " (Find" what ")"\nwhat -> "it" , " it"')
    )
    assert not begins_with_blank(grammar.side("program"))
    assert Translator(grammar).to_utterance("(Find it)").best == "find it"


def test_what_derives_nothing_does_not_count() -> None:
    grammar = read_scfg_text('start -> " go" , " (Go)"\nstart -> "stop " nowhere , "(Stop" nowhere ")"')
    assert Translator(without_leading_blank(grammar)).to_program("go").best == "(Go)"
