"""Either side of a synchronous grammar as a constraint has the language of the chart parser."""

import random

import pytest
from hypothesis import assume, given

from fewparse.constrain.cfg import CfgConstraint
from fewparse.grammar.parsing.chart import ChartParser, ParseFailure
from fewparse.grammar.rules import Grammar
from fewparse.grammar.synchronous import SIDES, Side, SynchronousGrammar
from fewparse.grammar.translation.translator import Translator
from fewparse.vocabulary import BYTES
from support.campaign import examples
from support.random_grammars import candidates, heights, sampler, seeds, synchronous_grammars

both_sides = pytest.mark.parametrize("side", SIDES)


def productive(grammar: SynchronousGrammar, side: Side) -> Grammar:
    """One side of a grammar, assumed to be productive."""
    rules = grammar.side(side)
    assume(rules.start in heights(rules))
    return rules


def single_bytes(text: str) -> list[bytes]:
    return [bytes([byte]) for byte in text.encode()]


@both_sides
@given(grammar=synchronous_grammars(), rng=seeds)
@examples(100)
def test_accepts_what_the_chart_parser_accepts(
    side: Side, grammar: SynchronousGrammar, rng: random.Random
) -> None:
    rules = productive(grammar, side)
    constraint, parser = CfgConstraint(rules, BYTES), ChartParser(rules)
    for text in candidates(rules, rng, count=4):
        for length in range(len(text) + 1):
            assert constraint.accepts(text[:length].encode()) == parser.accepts(text[:length]), text[:length]


@both_sides
@given(grammar=synchronous_grammars(), rng=seeds)
@examples(100)
def test_stops_where_the_chart_parser_fails(side: Side, grammar: SynchronousGrammar, rng: random.Random) -> None:
    rules = productive(grammar, side)
    start, parser = CfgConstraint(rules, BYTES).start(), ChartParser(rules)
    for text in candidates(rules, rng, count=4):
        parsed = parser.parse(text)
        count, state = start.walk(single_bytes(text))
        if isinstance(parsed, ParseFailure):
            viable = text.encode()[:count].decode(errors="ignore")
            assert len(viable) == parsed.at
        else:
            assert count == len(text.encode())
            assert state.may_end


@both_sides
@given(grammar=synchronous_grammars(), rng=seeds)
@examples(100)
def test_every_sentence_can_be_walked_and_ended(
    side: Side, grammar: SynchronousGrammar, rng: random.Random
) -> None:
    rules = productive(grammar, side)
    start, sample = CfgConstraint(rules, BYTES).start(), sampler(rules)
    assert sample is not None
    for _ in range(4):
        sentence = sample(rng)
        count, state = start.walk(single_bytes(sentence))
        assert count == len(sentence.encode())
        assert state.may_end


@given(grammar=synchronous_grammars(), rng=seeds)
@examples(75)
def test_every_translation_is_a_sentence_of_the_other_side(
    grammar: SynchronousGrammar, rng: random.Random
) -> None:
    translator = Translator(grammar)
    for text in candidates(productive(grammar, "utterance"), rng, count=3, max_length=5):
        programs = translator.to_program(text, k=4).texts
        if programs:
            constraint = CfgConstraint(grammar.side("program"), BYTES)
            assert all(constraint.accepts(program.encode()) for program in programs)
