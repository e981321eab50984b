"""Sampled sentences are derived, sampled pairs are translations of each other, and seeds are reproducible."""

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
    Goal,
    Pair,
    Sampler,
    expansions,
    min_depth,
    plain_expansions,
    sample_pairs,
    sample_sentences,
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
many_examples = settings(max_examples=200)


@many_examples
@given(synchronous_grammars(partnered=True), st.integers(0, 2**32), st.integers(0, 6))
def test_the_sides_of_a_pair_translate_to_each_other(grammar: SynchronousGrammar, seed: int, depth: int) -> None:
    assume(min_depth(grammar) is not None)
    translator = Translator(grammar)
    for utterance, program in sample_pairs(grammar, 3, seed, depth):
        if max(len(utterance), len(program)) < 40:
            programs = translator.to_program(utterance, 50)
            assert program in programs.texts or not programs.complete
            utterances = translator.to_utterance(program, 50)
            assert utterance in utterances.texts or not utterances.complete


@many_examples
@given(synchronous_grammars(), st.integers(0, 2**32), st.integers(0, 6))
def test_both_sides_of_a_pair_are_derived(grammar: SynchronousGrammar, seed: int, depth: int) -> None:
    assume(min_depth(grammar) is not None)
    pairs = [pair for pair in sample_pairs(grammar, 3, seed, depth) if max(map(len, pair)) < 60]
    for texts, side in zip(zip(*pairs, strict=True), SIDES, strict=False):
        parser = ChartParser(grammar.side(side))
        assert all(map(parser.accepts, texts))


@many_examples
@given(plain_grammars(), st.integers(0, 2**32), st.integers(0, 8))
def test_a_sentence_is_derived(grammar: Grammar, seed: int, depth: int) -> None:
    assume(trim(grammar).grammar.rules)
    oracle = Recogniser(grammar)
    assert all(oracle.accepts(text) for text in sample_sentences(grammar, 4, seed, depth) if len(text) < 60)


@many_examples
@given(plain_grammars())
def test_the_minimum_depth_is_the_height_of_the_lowest_derivation(grammar: Grammar) -> None:
    assert min_depth(grammar) == heights(grammar).get(grammar.start)


def test_the_minimum_depth_of_pairs_includes_both_sides() -> None:
    assert min_depth(read_scfg_text(SOURCE)) == 3
    source = 'start -> deep , "x"\ndeep 1> "(" other ")"\nother 1> "a"'
    assert min_depth(read_scfg_text(source)) == 3
    assert min_depth(read_scfg_text(source).side("program")) == 1
    assert min_depth(read_scfg_text('start 1> "a"')) is None


def test_the_same_seed_gives_the_same_pairs_in_any_process() -> None:
    pairs = list(sample_pairs(read_scfg_text(SOURCE), 30, 5))
    script = f"""
from fewparse.grammar.analysis.sampling import Pair, sample_pairs
from fewparse.grammar.readers.scfg import read_scfg_text
print(list(sample_pairs(read_scfg_text({SOURCE!r}), 30, 5)) == {pairs})
"""
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
        assert run.stdout == "True\n", run.stderr
    assert pairs[:4] == GOLDEN
    assert list(sample_pairs(read_scfg_text(SOURCE), 4, 6)) != GOLDEN


def test_all_pairs_of_a_small_language_are_sampled_before_any_is_repeated() -> None:
    source = 'start -> first second , second first\nfirst -> "a" | "b" | "c" , "x"\nsecond -> "d" , "y"'
    pairs = list(sample_pairs(read_scfg_text(source + '\nsecond -> "e" , "z"'), 40, 1))
    everything = {Pair(a + b, c + "x") for a, (b, c) in product("abc", [("d", "y"), ("e", "z")])}
    assert set(pairs[:6]) == set(pairs) == everything
    assert len(pairs) == 40


def test_rules_are_equally_likely_and_so_are_the_utterances_of_a_rule() -> None:
    source = 'start -> "a" | "b" | "c" | "d" , "1"\nstart -> "e" , "2"'
    sampler = Sampler(expansions(read_scfg_text(source)), Goal(None, "start"))
    rng = random.Random(3)
    counts = Counter(sampler.sample(rng, 5) for _ in range(4_000))
    assert counts["e", "2"] == pytest.approx(2_000, rel=0.1)
    assert all(counts[letter, "1"] == pytest.approx(500, rel=0.25) for letter in "abcd")


def test_linked_symbols_are_equal_on_both_sides_and_others_are_independent() -> None:
    letters, word = Chars.of([(ord("a"), ord("z"))]), Ref("word")
    rules = (
        PairedRule("start", (word, Text("/"), word), (Pairing((word, word), (1, None, 0)),)),
        PairedRule("word", (letters,), (Pairing((letters,), (0,)),)),
    )
    for utterance, program in sample_pairs(SynchronousGrammar(rules), 50, 1):
        assert f"{utterance[1]}/{utterance[0]}" == program
    alone = PairedRule("start", (Text("="), word, letters), (Pairing((word, letters), (None,) * 3),))
    pairs = list(sample_pairs(SynchronousGrammar((alone, rules[1])), 50, 1))
    assert {(len(pair.utterance), len(pair.program)) for pair in pairs} == {(2, 3)}
    assert len({pair.utterance[0] == pair.program[1] for pair in pairs}) == 2


def test_rules_of_the_utterance_side_alone_do_not_appear_in_programs() -> None:
    pairs = list(sample_pairs(read_scfg_text(SOURCE), 100, 2))
    assert any(pair.utterance.endswith(" please") for pair in pairs)
    assert not any("please" in pair.program for pair in pairs)
    source = 'start -> word , word\nword -> "a" , "A"\nword 1> "b"'
    assert set(sample_pairs(read_scfg_text(source), 10, 1)) == {Pair("a", "A")}


def test_characters_are_printable_if_possible() -> None:
    mixed = Chars.of([(0, 0x10FFFF)])
    foreign = Chars.of([(ord("ä"), ord("ö")), (0xD7FE, 0xE000)])
    grammar = Grammar({"start": ((mixed, foreign),)})
    drawn = list(sample_sentences(grammar, 200, 1))
    assert all(" " <= text[0] <= "~" and text[1] in foreign for text in drawn)
    assert not any(0xD800 <= ord(text[1]) <= 0xDFFF for text in drawn)
    assert {"\ud7fe", "\ud7ff", "\ue000"} < {text[1] for text in drawn}


def test_beyond_the_depth_the_lowest_alternatives_are_used() -> None:
    grammar = read_grammar('start: "(" start start ")" | item\nitem: "x" | "y" more\nmore: "z"')
    assert set(sample_sentences(grammar, 20, 1, depth=1)) == {"x"}
    assert set(sample_sentences(grammar, 20, 1, depth=3)) == {"x", "yz", "(xx)"}
    assert set(sample_sentences(grammar, 20, 1, depth=4)) > {"x", "yz", "(xx)", "(xyz)"}


@pytest.mark.parametrize("depth", [0, 10, 1_000, 1_000_000])
def test_a_derivation_always_ends(depth: int) -> None:
    grammar = read_grammar('start: start start start | start start | "a" | "(" start ")"')
    assert len(list(sample_sentences(grammar, 20, 1, depth))) == 20


def test_a_deep_derivation_needs_no_recursion() -> None:
    chain = {f"n{at}": ((Text("("), Ref(f"n{at + 1}"), Text(")")),) for at in range(20_000)}
    assert min_depth(Grammar(chain, "n0")) is None
    grammar = Grammar({**chain, "n20000": ((Text("x"),),)}, "n0")
    assert next(sample_sentences(grammar, 1, 0)) == "(" * 20_000 + "x" + ")" * 20_000


def test_a_grammar_with_only_huge_sentences_is_an_error() -> None:
    doubled = {f"n{at}": ((Ref(f"n{at + 1}"), Ref(f"n{at + 1}")),) for at in range(60)}
    with pytest.raises(LimitExceeded, match="steps"):
        next(sample_sentences(Grammar({**doubled, "n60": ((Text("x"),),)}, "n0"), 1, 0))


def test_a_grammar_that_derives_nothing_is_an_error() -> None:
    with pytest.raises(ConstraintError, match="no string"):
        sample_sentences(Grammar({"start": ((Text("a"), Ref("start")), (Chars(()),))}), 1, 0)
    with pytest.raises(ConstraintError, match="no utterance together with a program"):
        sample_pairs(read_scfg_text('start -> other , other\nother -> "a" other\nother 1> "b"'), 1, 0)
    surrogates = Chars(((0xD800, 0xDFFF),))
    with pytest.raises(ConstraintError, match="no string"):
        sample_sentences(Grammar({"start": ((surrogates,),)}), 1, 0)


def test_a_sample_of_one_side_leaves_the_other_empty() -> None:
    grammar = read_scfg_text(SOURCE)
    sampler = Sampler(plain_expansions(grammar.side("program"), "program"), Goal("program", "start"))
    utterance, program = sampler.sample(random.Random(1), 8)
    assert not utterance
    assert ChartParser(grammar.side("program")).accepts(program)
