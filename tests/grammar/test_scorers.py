"""A learned scorer prefers rules in the contexts in which they were seen, and excludes none."""

import math
import random

import pytest
from hypothesis import given

from fewparse.grammar.readers.scfg import read_scfg_text
from fewparse.grammar.rules import Ref
from fewparse.grammar.synchronous import SynchronousGrammar
from fewparse.grammar.translation.scorers import MAX_COST, Context, FewestRules, Learned, RuleUse, Scorer, Shortest
from fewparse.grammar.translation.translator import Translator
from support.campaign import examples
from support.random_grammars import seeds, synchronous_grammars

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


def random_uses(grammar: SynchronousGrammar, rng: random.Random) -> list[RuleUse]:
    """Random rules, each in a context in which its nonterminal occurs."""
    contexts = contexts_by_name(grammar)
    return [
        (rule, rng.choice(contexts[name]))
        for rule, name in (
            (number, grammar.rules[number].name) for number in rng.choices(range(len(grammar.rules)), k=9)
        )
        if name in contexts
    ]


def contexts_by_name(grammar: SynchronousGrammar) -> dict[str, list[Context]]:
    """The contexts of each nonterminal."""
    found: dict[str, list[Context]] = {grammar.start: [None]}
    for number, rule in enumerate(grammar.rules):
        for position, symbol in enumerate(rule.program or ()):
            if isinstance(symbol, Ref):
                found.setdefault(symbol.name, []).append((number, position))
    return found


@given(synchronous_grammars(), seeds)
@examples(150)
def test_the_probabilities_of_alternatives_sum_to_one_in_every_context(
    grammar: SynchronousGrammar, rng: random.Random
) -> None:
    learned = Learned(grammar, random_uses(grammar, rng))
    for name, contexts in contexts_by_name(grammar).items():
        rules = [number for number, rule in enumerate(grammar.rules) if rule.name == name]
        for context in contexts if rules else ():
            assert math.isclose(sum(learned.probability(rule, context) for rule in rules), 1)
            for rule in rules:
                assert 0 < learned.probability(rule, context) <= 1
                assert isinstance(learned.cost(rule, context), int)
                assert 1 <= learned.cost(rule, context) <= MAX_COST


@given(synchronous_grammars(), seeds)
@examples(100)
def test_one_more_use_never_raises_the_cost_of_a_rule_in_its_context(
    grammar: SynchronousGrammar, rng: random.Random
) -> None:
    uses = random_uses(grammar, rng)
    for rule, context in uses:
        before, after = Learned(grammar, uses), Learned(grammar, [*uses, (rule, context)])
        assert after.cost(rule, context) <= before.cost(rule, context)


@given(synchronous_grammars(), seeds)
@examples(50)
def test_the_order_of_uses_does_not_matter(grammar: SynchronousGrammar, rng: random.Random) -> None:
    uses = random_uses(grammar, rng)
    one, other = Learned(grammar, uses), Learned(grammar, rng.sample(uses, len(uses)))
    for rule in range(len(grammar.rules)):
        assert one.cost(rule, None) == other.cost(rule, None)


def test_the_rule_that_was_seen_is_best_though_its_text_is_longer() -> None:
    unscored = Translator(EVENTS)
    assert unscored.to_program("find my lunch").best == "(find (event lunch))"
    learned = unscored.with_learned_scorer(["(find (the-first (event lunch)))"])
    assert learned.to_program("find my lunch").best == "(find (the-first (event lunch)))"
    assert unscored.to_program("find my lunch").best == "(find (event lunch))", (
        "the original translator is unchanged"
    )


def test_a_rule_is_preferred_in_the_context_in_which_it_was_seen() -> None:
    seen = ["(find (event call))"] * 6 + ["(cancel (all call))"] * 6
    learned = Translator(EVENTS).with_learned_scorer(seen)
    assert learned.to_program("find my call").best == "(find (event call))"
    assert learned.to_program("cancel my call").best == "(cancel (all call))"


def test_rules_that_were_never_seen_are_still_used() -> None:
    learned = Translator(EVENTS).with_learned_scorer(["(find (event lunch))"] * 1_000)
    translation = learned.to_program("cancel my call", k=9)
    assert translation.complete
    assert translation.texts == ("(cancel (all call))", "(cancel (event call))")
    assert [d.value for d in translation.k_best] == sorted(d.value for d in translation.k_best)


@pytest.mark.parametrize("foreign", ["(find (event dinner))", "", "(find", "🤷"])
def test_programs_that_are_not_derived_are_ignored(foreign: str) -> None:
    scorers = [Translator(EVENTS).with_learned_scorer(seen).scorer for seen in ([], [foreign], [foreign] * 9)]
    for rule in range(len(EVENTS.rules)):
        for context in [None, (0, 1), (1, 1)]:
            assert len({scorer.cost(rule, context) for scorer in scorers}) == 1


def test_programs_without_an_utterance_are_ignored() -> None:
    grammar = read_scfg_text('start -> "a" nowhere , "A"\nstart -> "b" , "B"')
    assert Translator(grammar).with_learned_scorer(["A"] * 9).scorer.cost(0, None) == Translator(
        grammar
    ).with_learned_scorer([]).scorer.cost(0, None)


def test_without_examples_all_rules_are_equal_and_the_shortest_text_is_best() -> None:
    learned = Translator(EVENTS).with_learned_scorer([])
    assert learned.to_program("find my lunch").best == "(find (event lunch))"
    assert learned.to_program("find my call", k=9).texts == ("(find (all call))", "(find (event call))")


def test_equally_probable_programs_are_ordered_by_length_then_by_text() -> None:
    tied = read_scfg_text('start -> "x" , "bb"\nstart -> "x" , "c"\nstart -> "x" , "b"\nstart -> "x" , "a"')
    learned = Translator(tied).with_learned_scorer(["bb", "c", "b"])
    assert learned.to_program("x", k=9).texts == ("b", "c", "bb", "a")


def test_the_smallest_of_several_derivations_is_counted() -> None:
    several = read_scfg_text('start -> "x" inner , inner\nstart -> "xy" , "Y"\ninner -> "y" , "Y"')
    learned = Translator(several).with_learned_scorer(["Y"] * 5).scorer
    assert learned.cost(1, None) < learned.cost(0, None)


def test_learning_is_deterministic() -> None:
    seen = ["(find (the-first (event lunch)))", "(cancel (all call))", "(find (event call))"]
    one, other = (Translator(EVENTS).with_learned_scorer(seen).scorer for _ in range(2))
    assert all(one.cost(rule, (0, 1)) == other.cost(rule, (0, 1)) for rule in range(len(EVENTS.rules)))


def test_the_costs_of_the_simple_scorers() -> None:
    scorers: list[Scorer] = [Shortest(), FewestRules()]
    assert [(scorer.contextual, scorer.cost(3, (1, 2))) for scorer in scorers] == [(False, 0), (False, 1)]
