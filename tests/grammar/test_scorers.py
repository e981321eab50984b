"""A learned scorer prefers what it has seen where it has seen it, and refuses nothing."""

import math
import random

import pytest
from hypothesis import given

from fewparse.grammar.readers.scfg import read_scfg_text
from fewparse.grammar.rules import Ref
from fewparse.grammar.synchronous import SynchronousGrammar
from fewparse.grammar.translation.scorers import MOST_COST, Context, FewestRules, Learned, Scorer, Shortest, Use
from fewparse.grammar.translation.translator import Translator
from support.random_grammars import examples, seeds, synchronous_grammars

EVENTS = read_scfg_text(
    "\n".join(
        [
            'start -> "find " event , "(find " event ")"',
            'start -> "cancel " event , "(cancel " event ")"',
            'event -> "my lunch" , "(event lunch)"',
            'event -> "my lunch" , "(the-first (event lunch))"',
            'event -> "my call" , "(event call)"',
            'event -> "my call" , "(all call)"',
        ]
    )
)


def use_everywhere(grammar: SynchronousGrammar, rng: random.Random) -> list[Use]:
    """Random rules, each in a place where its name stands."""
    places = contexts(grammar)
    return [
        (rule, rng.choice(places[name]))
        for rule, name in (
            (number, grammar.rules[number].name) for number in rng.choices(range(len(grammar.rules)), k=9)
        )
        if name in places
    ]


def contexts(grammar: SynchronousGrammar) -> dict[str, list[Context]]:
    """The places of each name."""
    found: dict[str, list[Context]] = {grammar.start: [None]}
    for number, rule in enumerate(grammar.rules):
        for place, symbol in enumerate(rule.program or ()):
            if isinstance(symbol, Ref):
                found.setdefault(symbol.name, []).append((number, place))
    return found


@given(synchronous_grammars(), seeds)
@examples(150)
def test_the_alternatives_of_a_name_share_one_probability_in_every_place(
    grammar: SynchronousGrammar, rng: random.Random
) -> None:
    learned = Learned(grammar, use_everywhere(grammar, rng))
    for name, places in contexts(grammar).items():
        rules = [number for number, rule in enumerate(grammar.rules) if rule.name == name]
        for context in places if rules else ():
            assert math.isclose(sum(learned.probability(rule, context) for rule in rules), 1)
            for rule in rules:
                assert 0 < learned.probability(rule, context) <= 1
                assert isinstance(learned.cost(rule, context), int)
                assert 1 <= learned.cost(rule, context) <= MOST_COST


@given(synchronous_grammars(), seeds)
@examples(100)
def test_one_more_use_makes_a_rule_no_less_likely_in_its_place(
    grammar: SynchronousGrammar, rng: random.Random
) -> None:
    uses = use_everywhere(grammar, rng)
    for rule, context in uses:
        before, after = Learned(grammar, uses), Learned(grammar, [*uses, (rule, context)])
        assert after.cost(rule, context) <= before.cost(rule, context)


@given(synchronous_grammars(), seeds)
@examples(50)
def test_the_order_of_what_was_seen_does_not_matter(grammar: SynchronousGrammar, rng: random.Random) -> None:
    uses = use_everywhere(grammar, rng)
    one, other = Learned(grammar, uses), Learned(grammar, rng.sample(uses, len(uses)))
    for rule in range(len(grammar.rules)):
        assert one.cost(rule, None) == other.cost(rule, None)


def test_the_shape_that_was_seen_wins_though_it_is_longer() -> None:
    naive = Translator(EVENTS)
    assert naive.to_program("find my lunch").best == "(find (event lunch))"
    taught = naive.learn(["(find (the-first (event lunch)))"])
    assert taught.to_program("find my lunch").best == "(find (the-first (event lunch)))"
    assert naive.to_program("find my lunch").best == "(find (event lunch))", "teaching makes a new translator"


def test_a_shape_is_preferred_where_it_was_seen_and_less_elsewhere() -> None:
    seen = ["(find (event call))"] * 6 + ["(cancel (all call))"] * 6
    taught = Translator(EVENTS).learn(seen)
    assert taught.to_program("find my call").best == "(find (event call))"
    assert taught.to_program("cancel my call").best == "(cancel (all call))"


def test_what_was_never_seen_is_still_found() -> None:
    taught = Translator(EVENTS).learn(["(find (event lunch))"] * 1_000)
    translation = taught.to_program("cancel my call", wanted=9)
    assert translation.complete
    assert translation.texts == ("(cancel (all call))", "(cancel (event call))")
    assert [reading.value for reading in translation.readings] == sorted(r.value for r in translation.readings)


@pytest.mark.parametrize("foreign", ["(find (event dinner))", "", "(find", "🤷"])
def test_programs_that_are_not_derived_teach_nothing(foreign: str) -> None:
    scorers = [Translator(EVENTS).learn(seen).scorer for seen in ([], [foreign], [foreign] * 9)]
    for rule in range(len(EVENTS.rules)):
        for context in [None, (0, 1), (1, 1)]:
            assert len({scorer.cost(rule, context) for scorer in scorers}) == 1


def test_programs_that_nothing_says_teach_nothing() -> None:
    silent = read_scfg_text('start -> "a" nowhere , "A"\nstart -> "b" , "B"')
    assert Translator(silent).learn(["A"] * 9).scorer.cost(0, None) == Translator(silent).learn([]).scorer.cost(
        0, None
    )


def test_without_examples_all_alternatives_are_equal_and_the_shorter_text_wins() -> None:
    taught = Translator(EVENTS).learn([])
    assert taught.to_program("find my lunch").best == "(find (event lunch))"
    assert taught.to_program("find my call", wanted=9).texts == ("(find (all call))", "(find (event call))")


def test_of_equally_usual_programs_the_shorter_then_the_smaller_text_wins() -> None:
    tied = read_scfg_text('start -> "x" , "bb"\nstart -> "x" , "c"\nstart -> "x" , "b"\nstart -> "x" , "a"')
    taught = Translator(tied).learn(["bb", "c", "b"])
    assert taught.to_program("x", wanted=9).texts == ("b", "c", "bb", "a")


def test_of_several_derivations_the_smallest_teaches() -> None:
    several = read_scfg_text('start -> "x" inner , inner\nstart -> "xy" , "Y"\ninner -> "y" , "Y"')
    learned = Translator(several).learn(["Y"] * 5).scorer
    assert learned.cost(1, None) < learned.cost(0, None)


def test_teaching_twice_is_the_same() -> None:
    seen = ["(find (the-first (event lunch)))", "(cancel (all call))", "(find (event call))"]
    one, other = (Translator(EVENTS).learn(seen).scorer for _ in range(2))
    assert all(one.cost(rule, (0, 1)) == other.cost(rule, (0, 1)) for rule in range(len(EVENTS.rules)))


def test_the_simple_scorers_count_nothing_and_rules() -> None:
    scorers: list[Scorer] = [Shortest(), FewestRules()]
    assert [(scorer.contextual, scorer.cost(3, (1, 2))) for scorer in scorers] == [(False, 0), (False, 1)]
