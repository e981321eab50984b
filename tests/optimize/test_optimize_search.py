"""The search over settings, with a scorer whose accuracies are known."""

from dataclasses import replace
from itertools import pairwise
from statistics import mean

import pytest

from fewparse.evaluate.metrics import Paired
from fewparse.optimize.effects import Observation, estimate
from fewparse.optimize.search import FIRST_ITEMS, Comparison, Found, Search
from fewparse.optimize.space import WEIGHTS, Configuration, Space
from support.simulated_scorer import PRESENT, SimulatedScorer, space_around

ITEMS, FRESH = range(80), range(80, 120)


def effects(configuration: Configuration, rerank: float) -> float:
    """An accuracy with a large effect of reranking, and small ones of examples and decoder."""
    value = 0.3 + 0.1 * (configuration.examples == 20) - 0.1 * (configuration.examples == 5)
    if configuration.decoder == "greedy":
        return value
    return value + 0.08 * (configuration.width == 10) + (0.2 if 2 <= rerank <= 6 else 0.1 if rerank > 0 else 0.0)


def constant(configuration: Configuration, rerank: float) -> float:
    return 0.5


def search(
    scorer: SimulatedScorer,
    seconds: float,
    space: Space | None = None,
    items: range = ITEMS,
    fresh: range = FRESH,
    seed: int = 0,
) -> Found:
    return Search(space or space_around(), scorer, items, fresh, scorer.budget_of(seconds), seed).run()


def test_the_best_settings_are_found_and_gain_more_with_more_time() -> None:
    best = effects(replace(PRESENT, examples=20, decoder="beam", width=10), 4.0)
    gains = {}
    for seconds in (60, 600):
        chosen = [search(SimulatedScorer(effects, seed), seconds, seed=seed).chosen for seed in range(6)]
        gains[seconds] = mean(effects(*choice) for choice in chosen) - effects(PRESENT, 0.0)
    assert 0.0 < gains[60] < gains[600]
    assert gains[600] > 0.7 * (best - effects(PRESENT, 0.0))


def test_settings_that_differ_by_noise_only_are_seldom_changed() -> None:
    found = [search(SimulatedScorer(constant, seed), 300, seed=seed) for seed in range(12)]
    assert sum(each.best is not None for each in found) >= 6, "in most cases something looks better"
    assert sum(each.chosen != each.control for each in found) <= 3


def test_settings_that_are_level_are_kept() -> None:
    found = search(SimulatedScorer(lambda configuration, rerank: 1.0), 400)
    assert (found.best, found.chosen) == (None, found.control)


@pytest.mark.parametrize("seconds", [0.5, 1.5, 40, 150, 1000])
def test_the_budget_is_kept_and_every_configuration_is_parsed_on_the_same_items(seconds: float) -> None:
    scorer = SimulatedScorer(effects)
    found = search(scorer, seconds)
    assert scorer.now <= seconds + 1
    assert len(scorer.scored) == len(set(scorer.scored)), "nothing is parsed twice"
    control = list(found.outcomes[PRESENT])
    assert control[: len(ITEMS)] == [item for item in [*ITEMS, *FRESH] if item in control][: len(ITEMS)]
    for outcomes in found.outcomes.values():
        assert set(outcomes) <= set(control)


def test_without_time_the_present_settings_are_chosen() -> None:
    found = search(SimulatedScorer(effects), 0.0)
    assert (found.chosen, found.best, found.comparison, found.completed) == (found.control, None, None, False)


def test_half_of_the_configurations_are_parsed_on_twice_as_many_items() -> None:
    rungs = search(SimulatedScorer(effects), 500).rungs
    assert rungs[0].items == FIRST_ITEMS
    for before, after in pairwise(rungs):
        assert after.items == min(2 * before.items, len(ITEMS))
        assert after.configurations - 1 <= (before.configurations - 1 + 1) // 2


def test_fresh_items_are_not_used_for_the_search() -> None:
    scorer = SimulatedScorer(effects)
    found = search(scorer, 300)
    assert found.comparison is not None
    first = next(i for i, (_, item) in enumerate(scorer.scored) if item in FRESH)
    assert all(item in FRESH for _, item in scorer.scored[first:])
    assert 0 < found.comparison.fresh_items <= len(FRESH)
    assert found.comparison.adopted


def test_with_one_configuration_the_weight_of_reranking_is_chosen() -> None:
    scorer = SimulatedScorer(effects)
    found = search(scorer, 1000, space_around(order=[]))
    assert found.chosen.configuration == PRESENT
    assert 2 <= found.chosen.rerank <= 6
    assert len(scorer.scored) == len(ITEMS) + len(FRESH), "weights cost no parses"


def test_the_present_weight_is_kept_among_level_ones() -> None:
    for rerank in (2.0, 6.0):
        space = space_around(replace(PRESENT, decoder="beam"), rerank, order=["best-first"])
        assert search(SimulatedScorer(effects), 300, space).chosen.rerank == rerank


@pytest.mark.parametrize(
    ("everything", "fresh", "fresh_items", "adopted"),
    [
        (Paired(9, 1), Paired(3, 1), 20, True),
        (Paired(9, 1), Paired(1, 2), 20, False),
        (Paired(9, 7), Paired(3, 1), 20, False),
        (Paired(1, 9), Paired(1, 0), 20, False),
        (Paired(5, 0), Paired(0, 0), 0, False),
        (Paired(6, 0), Paired(0, 0), 0, True),
        (Paired(0, 0), Paired(0, 0), 20, False),
    ],
)
def test_settings_are_replaced_only_where_the_paired_evidence_is_in_favour(
    everything: Paired, fresh: Paired, fresh_items: int, adopted: bool
) -> None:
    assert Comparison(everything, fresh, 60, fresh_items, 0, 0).adopted == adopted


def test_the_effects_of_settings_are_estimated_over_all_configurations() -> None:
    """The best combination was never observed, and no configuration on more than three items."""
    observed = [each for each in space_around().configurations if (each.examples, each.order) != (20, "shuffled")]
    observations = [
        Observation(each, item, (number + item) % 3 < (each.examples == 20) + (each.order == "shuffled"))
        for number, each in enumerate(observed)
        for item in range(3)
    ]
    estimates = estimate(observations, space_around().configurations)
    best = max(estimates, key=lambda each: estimates[each])
    assert (best.examples, best.order) == (20, "shuffled")


def test_the_result_of_a_search_is_the_same_every_time() -> None:
    first, second = (search(SimulatedScorer(effects, 3), 200, seed=3) for _ in range(2))
    assert first == second


def test_a_space_has_each_configuration_once_and_settings_without_effect_do_not_count() -> None:
    space = space_around()
    assert len(space.configurations) == len(set(space.configurations)) == 5 * 3 * 2 * 3
    assert space.configurations[0] == PRESENT
    assert sum(each.decoder == "greedy" for each in space.configurations) == 3 * 2 * 3
    assert len(space_around(replace(PRESENT, examples=0), order=["best-first", "shuffled"]).configurations) == 1
    candidates = space.candidates(seed=0)
    assert sorted(map(repr, candidates)) == sorted(map(repr, space.configurations[1:]))
    assert set(space.weights) == set(WEIGHTS)
