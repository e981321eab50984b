"""Translation is exact in both directions: the k best texts are those of brute force over all derivations."""

import random
from collections.abc import Iterator

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fewparse.grammar.readers.scfg import read_scfg_text
from fewparse.grammar.synchronous import SIDES, Side, SynchronousGrammar
from fewparse.grammar.translation.inside import LENGTH_BITS
from fewparse.grammar.translation.scorers import Context, RuleUse, Shortest
from fewparse.grammar.translation.translator import OneWayTranslator, Translation, Translator
from support.campaign import examples
from support.enumeration import Translations
from support.random_grammars import candidates, heights, sampler, seeds, synchronous_grammars

MAX_LENGTH = 5
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
    """A scorer with a small random cost for every rule in every context."""

    contextual = True

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._costs: dict[RuleUse, int] = {}

    def cost(self, rule: int, context: Context) -> int:
        use = rule, context
        if use not in self._costs:
            self._costs[use] = random.Random(f"{self._seed} {use}").randrange(4)
        return self._costs[use]


def sources(grammar: SynchronousGrammar, side: Side, rng: random.Random) -> Iterator[str]:
    """Short texts, some of which the side derives."""
    assume(grammar.start in heights(grammar.side(side)))
    return iter(dict.fromkeys(candidates(grammar.side(side), rng, count=2, max_length=4)))


def assert_matches(translation: Translation, oracle: Translations, k: int) -> None:
    """Compare a translation with brute force, up to the maximum length of the oracle."""
    assert (translation.failure is None) == (oracle.spans.root in oracle.spans.found)
    if translation.failure is None:
        assert translation.derivation_count == (None if oracle.spans.is_cyclic else oracle.spans.count())
    expected, costs = oracle.best_first(), oracle.texts()
    found = [derivation for derivation in translation.k_best if len(derivation.text) <= MAX_LENGTH]
    assert [derivation.text for derivation in found] == expected[: len(found)]
    if translation.complete or len(translation.k_best) < k:
        assert len(found) == len(expected)
    for derivation in found:
        cost, length = divmod(derivation.value, 1 << LENGTH_BITS)
        assert (cost, length) == (costs[derivation.text], len(derivation.text))


@pytest.mark.parametrize("side", SIDES)
@given(grammar=synchronous_grammars(), rng=seeds)
@examples(120)
def test_the_k_shortest_texts_match_brute_force(
    side: Side, grammar: SynchronousGrammar, rng: random.Random
) -> None:
    for text in sources(grammar, side, rng):
        k = rng.choice([1, 4, 20])
        translation = OneWayTranslator(grammar, side).translate(text, Shortest(), k)
        assert_matches(translation, Translations(grammar, side, text, Shortest().cost, MAX_LENGTH), k)


@pytest.mark.parametrize("side", SIDES)
@given(grammar=synchronous_grammars(), rng=seeds)
@examples(120)
def test_the_k_cheapest_texts_match_brute_force_with_contextual_costs(
    side: Side, grammar: SynchronousGrammar, rng: random.Random
) -> None:
    scorer = RandomCosts(rng.randrange(100))
    for text in sources(grammar, side, rng):
        k = rng.choice([1, 4, 20])
        translation = OneWayTranslator(grammar, side).translate(text, scorer, k)
        assert_matches(translation, Translations(grammar, side, text, scorer.cost, MAX_LENGTH), k)


@given(rules=st.lists(st.sampled_from(SPLITS), unique=True, min_size=3), rng=seeds)
@examples(100)
def test_the_k_cheapest_texts_match_brute_force_with_many_splits(rules: list[str], rng: random.Random) -> None:
    grammar = read_scfg_text("\n".join([*rules, 'start -> part , "." part', 'part -> "a"']))
    scorer = RandomCosts(rng.randrange(1_000))
    text, k = "a" * rng.randrange(2, 7), rng.choice([1, 3, 12])
    translation = OneWayTranslator(grammar, "utterance").translate(text, scorer, k)
    assert_matches(translation, Translations(grammar, "utterance", text, scorer.cost, MAX_LENGTH), k)


@given(grammar=synchronous_grammars(partnered=True), rng=seeds)
@examples(30)
def test_a_round_trip_finds_the_source_text_again(grammar: SynchronousGrammar, rng: random.Random) -> None:
    translator = Translator(grammar, RandomCosts(rng.randrange(100)))
    to_program, to_utterance = translator.to_program, translator.to_utterance
    for forward, backward in ((to_program, to_utterance), (to_utterance, to_program)):
        sample = sampler(grammar.side("utterance" if forward == to_program else "program"))
        assume(sample)
        text = sample(rng)[:40] if sample else ""
        translation = forward(text, k=5)
        if translation.failure is None:
            assert translation.k_best
            for other in translation.texts:
                returned = backward(other, k=100)
                assume(returned.complete or text in returned.texts)
                assert text in returned.texts


@given(grammar=synchronous_grammars(), rng=seeds)
@examples(80)
def test_results_do_not_depend_on_earlier_calls(grammar: SynchronousGrammar, rng: random.Random) -> None:
    scorer = RandomCosts(rng.randrange(100))
    translator = Translator(grammar, scorer)
    requested = list(sources(grammar, "utterance", rng))
    first = [translator.to_program(text, k=10) for text in requested]
    again = [translator.to_program(text, k=10) for text in reversed(requested)][::-1]
    fresh = [Translator(grammar, scorer).to_program(text, k=10) for text in requested]
    for translations in zip(first, again, fresh, strict=True):
        assert len({tuple((d.value, d.text) for d in translation.k_best) for translation in translations}) == 1
        assert len({(t.complete, t.derivation_count, t.failure, t.error) for t in translations}) == 1


@given(grammar=synchronous_grammars(), rng=seeds)
@examples(80)
def test_a_larger_k_appends_texts(grammar: SynchronousGrammar, rng: random.Random) -> None:
    translator = Translator(grammar, RandomCosts(rng.randrange(100)))
    for text in sources(grammar, "utterance", rng):
        few, more = (translator.to_program(text, k=k) for k in (2, 9))
        assert more.texts[:2] == few.texts
        assert few.best == (few.texts[0] if few.texts else None)
        assert not few.complete or more.texts == few.texts
