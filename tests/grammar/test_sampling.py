"""Random sentences are sentences, random pairs are derived together, and both are the same for the same seed."""

import os
import random
import subprocess
import sys
from collections import Counter
from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fewparse.errors import ConstraintError, LimitExceeded
from fewparse.grammar.analysis.sampling import (
    Key,
    Pair,
    Sampler,
    expansions,
    least_depth,
    plain_expansions,
    render,
    render_side,
)
from fewparse.grammar.parsing.chart import ChartParser
from fewparse.grammar.readers.ebnf import read_grammar
from fewparse.grammar.readers.scfg import read_scfg_text
from fewparse.grammar.rules import Chars, Grammar, Ref, Text, trim
from fewparse.grammar.synchronous import SIDES, PairedRule, Pairing, SynchronousGrammar
from fewparse.grammar.translation.translator import Translator
from support.earley import Recogniser
from support.random_grammars import heights, plain_grammars, synchronous_grammars

SOURCE = """
start -> "show " thing please | "list " thing please , "(list " thing ")"
start -> thing " and " thing , "(both " thing " " thing ")"
thing -> "the " color " one" , "(one " color ")"
thing -> number
color -> "red" , "RED"
color -> "blue" , "BLUE"
number -> /[0-9]/
number -> /[0-9]/ number
please 1> " please" | #e
"""
GOLDEN = [
    Pair("the blue one and the red one", "(both (one BLUE) (one RED))"),
    Pair("list the blue one please", "(list (one BLUE))"),
    Pair("list the red one please", "(list (one RED))"),
    Pair("show the blue one please", "(list (one BLUE))"),
]
on_many = settings(max_examples=200)


@on_many
@given(synchronous_grammars(partnered=True), st.integers(0, 2**32), st.integers(0, 6))
def test_a_pair_is_translated_into_each_other(grammar: SynchronousGrammar, seed: int, depth: int) -> None:
    assume(least_depth(grammar) is not None)
    translator = Translator(grammar)
    for utterance, program in render(grammar, 3, seed, depth):
        if max(len(utterance), len(program)) < 40:
            programs = translator.to_program(utterance, 50)
            assert program in programs.texts or not programs.complete
            utterances = translator.to_utterance(program, 50)
            assert utterance in utterances.texts or not utterances.complete


@on_many
@given(synchronous_grammars(), st.integers(0, 2**32), st.integers(0, 6))
def test_both_sides_of_a_pair_are_derived(grammar: SynchronousGrammar, seed: int, depth: int) -> None:
    assume(least_depth(grammar) is not None)
    pairs = [pair for pair in render(grammar, 3, seed, depth) if max(map(len, pair)) < 60]
    for texts, side in zip(zip(*pairs, strict=True), SIDES, strict=False):
        parser = ChartParser(grammar.side(side))
        assert all(map(parser.accepts, texts))


@on_many
@given(plain_grammars(), st.integers(0, 2**32), st.integers(0, 8))
def test_a_sentence_is_derived(grammar: Grammar, seed: int, depth: int) -> None:
    assume(trim(grammar).grammar.rules)
    ours = Recogniser(grammar)
    assert all(ours.accepts(text) for text in render_side(grammar, 4, seed, depth) if len(text) < 60)


@on_many
@given(plain_grammars())
def test_the_least_depth_is_that_of_the_lowest_derivation(grammar: Grammar) -> None:
    assert least_depth(grammar) == heights(grammar).get(grammar.start)


def test_the_least_depth_of_pairs_is_that_of_both_sides_together() -> None:
    assert least_depth(read_scfg_text(SOURCE)) == 3
    source = 'start -> deep , "x"\ndeep 1> "(" other ")"\nother 1> "a"'
    assert least_depth(read_scfg_text(source)) == 3
    assert least_depth(read_scfg_text(source).side("program")) == 1
    assert least_depth(read_scfg_text('start 1> "a"')) is None


def test_the_same_seed_gives_the_same_pairs_anywhere() -> None:
    pairs = list(render(read_scfg_text(SOURCE), 30, 5))
    script = f"""
from fewparse.grammar.analysis.sampling import Pair, render
from fewparse.grammar.readers.scfg import read_scfg_text
print(list(render(read_scfg_text({SOURCE!r}), 30, 5)) == {pairs})
"""
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
        assert run.stdout == "True\n", run.stderr
    assert pairs[:4] == GOLDEN
    assert list(render(read_scfg_text(SOURCE), 4, 6)) != GOLDEN


def test_all_of_a_small_language_is_found_before_anything_is_said_again() -> None:
    source = 'start -> first second , second first\nfirst -> "a" | "b" | "c" , "x"\nsecond -> "d" , "y"'
    pairs = list(render(read_scfg_text(source + '\nsecond -> "e" , "z"'), 40, 1))
    everything = {Pair(a + b, c + "x") for a, (b, c) in product("abc", [("d", "y"), ("e", "z")])}
    assert set(pairs[:6]) == set(pairs) == everything
    assert len(pairs) == 40


def test_alternatives_are_equally_likely_and_so_are_the_ways_to_say_one() -> None:
    source = 'start -> "a" | "b" | "c" | "d" , "1"\nstart -> "e" , "2"'
    sampler = Sampler(expansions(read_scfg_text(source)), Key(None, "start"))
    rng = random.Random(3)
    counts = Counter(sampler.sample(rng, 5) for _ in range(4_000))
    assert counts["e", "2"] == pytest.approx(2_000, rel=0.1)
    assert all(counts[letter, "1"] == pytest.approx(500, rel=0.25) for letter in "abcd")


def test_partners_are_the_same_on_both_sides_and_others_are_not() -> None:
    letters, word = Chars.of([(ord("a"), ord("z"))]), Ref("word")
    rules = (
        PairedRule("start", (word, Text("/"), word), (Pairing((word, word), (1, None, 0)),)),
        PairedRule("word", (letters,), (Pairing((letters,), (0,)),)),
    )
    for utterance, program in render(SynchronousGrammar(rules), 50, 1):
        assert f"{utterance[1]}/{utterance[0]}" == program
    alone = PairedRule("start", (Text("="), word, letters), (Pairing((word, letters), (None,) * 3),))
    pairs = list(render(SynchronousGrammar((alone, rules[1])), 50, 1))
    assert {(len(pair.utterance), len(pair.program)) for pair in pairs} == {(2, 3)}
    assert len({pair.utterance[0] == pair.program[1] for pair in pairs}) == 2


def test_what_is_only_said_is_not_meant() -> None:
    pairs = list(render(read_scfg_text(SOURCE), 100, 2))
    assert any(pair.utterance.endswith(" please") for pair in pairs)
    assert not any("please" in pair.program for pair in pairs)
    source = 'start -> word , word\nword -> "a" , "A"\nword 1> "b"'
    assert set(render(read_scfg_text(source), 10, 1)) == {Pair("a", "A")}


def test_characters_are_printable_where_they_can_be() -> None:
    mixed = Chars.of([(0, 0x10FFFF)])
    foreign = Chars.of([(ord("ä"), ord("ö")), (0xD7FE, 0xE000)])
    grammar = Grammar({"start": ((mixed, foreign),)})
    drawn = list(render_side(grammar, 200, 1))
    assert all(" " <= text[0] <= "~" and text[1] in foreign for text in drawn)
    assert not any(0xD800 <= ord(text[1]) <= 0xDFFF for text in drawn)
    assert {"\ud7fe", "\ud7ff", "\ue000"} < {text[1] for text in drawn}


def test_beyond_the_depth_what_ends_soonest_is_taken() -> None:
    grammar = read_grammar('start: "(" start start ")" | item\nitem: "x" | "y" more\nmore: "z"')
    assert set(render_side(grammar, 20, 1, depth=1)) == {"x"}
    assert set(render_side(grammar, 20, 1, depth=3)) == {"x", "yz", "(xx)"}
    assert set(render_side(grammar, 20, 1, depth=4)) > {"x", "yz", "(xx)", "(xyz)"}


@pytest.mark.parametrize("depth", [0, 10, 1_000, 1_000_000])
def test_a_derivation_always_ends(depth: int) -> None:
    grammar = read_grammar('start: start start start | start start | "a" | "(" start ")"')
    assert len(list(render_side(grammar, 20, 1, depth))) == 20


def test_a_deep_derivation_needs_no_recursion() -> None:
    chain = {f"n{at}": ((Text("("), Ref(f"n{at + 1}"), Text(")")),) for at in range(20_000)}
    assert least_depth(Grammar(chain, "n0")) is None
    grammar = Grammar({**chain, "n20000": ((Text("x"),),)}, "n0")
    assert next(render_side(grammar, 1, 0)) == "(" * 20_000 + "x" + ")" * 20_000


def test_a_grammar_whose_every_sentence_is_too_long_is_refused() -> None:
    doubled = {f"n{at}": ((Ref(f"n{at + 1}"), Ref(f"n{at + 1}")),) for at in range(60)}
    with pytest.raises(LimitExceeded, match="steps"):
        next(render_side(Grammar({**doubled, "n60": ((Text("x"),),)}, "n0"), 1, 0))


def test_a_grammar_that_derives_nothing_is_refused() -> None:
    with pytest.raises(ConstraintError, match="no string"):
        render_side(Grammar({"start": ((Text("a"), Ref("start")), (Chars(()),))}), 1, 0)
    with pytest.raises(ConstraintError, match="no utterance together with a program"):
        render(read_scfg_text('start -> other , other\nother -> "a" other\nother 1> "b"'), 1, 0)
    half = Chars(((0xD800, 0xDFFF),))
    with pytest.raises(ConstraintError, match="no string"):
        render_side(Grammar({"start": ((half,),)}), 1, 0)


def test_both_sides_of_a_plain_grammar_are_not_confused() -> None:
    grammar = read_scfg_text(SOURCE)
    said = Sampler(plain_expansions(grammar.side("program"), "program"), Key("program", "start"))
    utterance, program = said.sample(random.Random(1), 8)
    assert not utterance
    assert ChartParser(grammar.side("program")).accepts(program)
