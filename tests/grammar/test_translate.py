"""Translation is exact both ways: all counterparts, the best first, judged by brute force over all derivations."""

import random
from collections.abc import Iterator

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fewparse.grammar.readers.scfg import read_scfg_text
from fewparse.grammar.synchronous import SIDES, Side, SynchronousGrammar
from fewparse.grammar.translation.inside import LENGTH_BITS
from fewparse.grammar.translation.scorers import Context, Shortest, Use
from fewparse.grammar.translation.translator import Direction, Translation, Translator
from support.enumeration import Translations
from support.random_grammars import candidates, examples, heights, sampler, seeds, synchronous_grammars

LONGEST = 5
SPLITS = [
    "start -> part start",
    'start -> start part , part "," start',
    "start -> start start",
    'part -> "aa" , "b"',
    'part -> "aaa" , "cdef"',
    "part -> part part",
    'part -> part left , left "-"',
    'left -> "a" , #e',
    'left -> left "a" , "l" left',
    "left -> part",
    "start -> part left part",
    'start -> left part left part , left left part "/" part',
]


class RandomCosts:
    """A small whole number for every rule in every place."""

    contextual = True

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._costs: dict[Use, int] = {}

    def cost(self, rule: int, context: Context) -> int:
        use = rule, context
        if use not in self._costs:
            self._costs[use] = random.Random(f"{self._seed} {use}").randrange(4)
        return self._costs[use]


def sources(grammar: SynchronousGrammar, side: Side, rng: random.Random) -> Iterator[str]:
    """Short texts of one side, and texts that are not."""
    assume(grammar.start in heights(grammar.side(side)))
    return iter(dict.fromkeys(candidates(grammar.side(side), rng, count=2, max_length=4)))


def judge(translation: Translation, oracle: Translations, wanted: int) -> None:
    """A translation is what brute force finds, as far as that goes."""
    assert (translation.failure is None) == (oracle.spans.root in oracle.spans.found)
    if translation.failure is None:
        assert translation.derivations == (None if oracle.spans.is_cyclic else oracle.spans.count())
    expected, costs = oracle.best_first(), oracle.texts()
    found = [reading for reading in translation.readings if len(reading.text) <= LONGEST]
    assert [reading.text for reading in found] == expected[: len(found)]
    if translation.complete or len(translation.readings) < wanted:
        assert len(found) == len(expected)
    for reading in found:
        assert divmod(reading.value, 1 << LENGTH_BITS) == (costs[reading.text], len(reading.text))


@pytest.mark.parametrize("side", SIDES)
@given(grammar=synchronous_grammars(), rng=seeds)
@examples(120)
def test_the_shortest_texts_come_first_and_are_those_of_brute_force(
    side: Side, grammar: SynchronousGrammar, rng: random.Random
) -> None:
    for text in sources(grammar, side, rng):
        wanted = rng.choice([1, 4, 20])
        translation = Direction(grammar, side).translate(text, Shortest(), wanted)
        judge(translation, Translations(grammar, side, text, Shortest().cost, LONGEST), wanted)


@pytest.mark.parametrize("side", SIDES)
@given(grammar=synchronous_grammars(), rng=seeds)
@examples(120)
def test_the_cheapest_texts_come_first_where_a_rule_costs_what_its_place_says(
    side: Side, grammar: SynchronousGrammar, rng: random.Random
) -> None:
    scorer = RandomCosts(rng.randrange(100))
    for text in sources(grammar, side, rng):
        wanted = rng.choice([1, 4, 20])
        translation = Direction(grammar, side).translate(text, scorer, wanted)
        judge(translation, Translations(grammar, side, text, scorer.cost, LONGEST), wanted)


@given(rules=st.lists(st.sampled_from(SPLITS), unique=True, min_size=3), rng=seeds)
@examples(100)
def test_where_a_text_can_be_split_in_many_ways_the_cheapest_split_is_found(
    rules: list[str], rng: random.Random
) -> None:
    grammar = read_scfg_text("\n".join([*rules, 'start -> part , "." part', 'part -> "a"']))
    scorer = RandomCosts(rng.randrange(1_000))
    text, wanted = "a" * rng.randrange(2, 7), rng.choice([1, 3, 12])
    translation = Direction(grammar, "utterance").translate(text, scorer, wanted)
    judge(translation, Translations(grammar, "utterance", text, scorer.cost, LONGEST), wanted)


@given(grammar=synchronous_grammars(partnered=True), rng=seeds)
@examples(120)
def test_there_and_back_is_where_it_started(grammar: SynchronousGrammar, rng: random.Random) -> None:
    translator = Translator(grammar, RandomCosts(rng.randrange(100)))
    to_program, to_utterance = translator.to_program, translator.to_utterance
    for there, back in ((to_program, to_utterance), (to_utterance, to_program)):
        sample = sampler(grammar.side("utterance" if there == to_program else "program"))
        assume(sample)
        text = sample(rng)[:40] if sample else ""
        translation = there(text, wanted=5)
        if translation.failure is None:
            assert translation.readings
            for other in translation.texts:
                returned = back(other, wanted=100)
                assume(returned.complete or text in returned.texts)
                assert text in returned.texts


@given(grammar=synchronous_grammars(), rng=seeds)
@examples(80)
def test_the_same_question_has_the_same_answer(grammar: SynchronousGrammar, rng: random.Random) -> None:
    scorer = RandomCosts(rng.randrange(100))
    translator = Translator(grammar, scorer)
    asked = list(sources(grammar, "utterance", rng))
    first = [translator.to_program(text, wanted=10) for text in asked]
    again = [translator.to_program(text, wanted=10) for text in reversed(asked)][::-1]
    fresh = [Translator(grammar, scorer).to_program(text, wanted=10) for text in asked]
    for answers in zip(first, again, fresh, strict=True):
        assert len({tuple((r.value, r.text) for r in answer.readings) for answer in answers}) == 1
        assert len({(a.complete, a.derivations, a.failure, a.error) for a in answers}) == 1


@given(grammar=synchronous_grammars(), rng=seeds)
@examples(80)
def test_asking_for_more_adds_texts_behind_the_others(grammar: SynchronousGrammar, rng: random.Random) -> None:
    translator = Translator(grammar, RandomCosts(rng.randrange(100)))
    for text in sources(grammar, "utterance", rng):
        few, more = (translator.to_program(text, wanted=wanted) for wanted in (2, 9))
        assert more.texts[:2] == few.texts
        assert few.best == (few.texts[0] if few.texts else None)
        assert not few.complete or more.texts == few.texts
