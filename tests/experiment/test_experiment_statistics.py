"""Statistics of experiments, compared with brute force and with simulations."""

import itertools
import math
import random
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewparse.errors import UsageError
from fewparse.evaluate.metrics import Proportion
from fewparse.evaluate.record_lines import Record
from fewparse.experiment.statistics import (
    average,
    averages,
    by_gold_seen,
    by_length,
    canonical_minus_program,
    compare,
    comparisons_with_best,
    holm,
    mean_interval,
    paired_interval,
    summary,
)
from support.experiment_results import make_cell, make_record, make_results

Z = NormalDist().inv_cdf(0.975)


def test_a_summary_counts_failures_as_wrong_and_leaves_out_unfinished_items() -> None:
    records = [
        make_record(False, True, requests=6),
        make_record(True, seconds=2.5),
        Record.failed("no answer"),
        None,
    ]
    found = summary(make_cell(records))
    assert (found.items, found.finished, found.failed) == (4, 3, 1)
    assert found.accuracy == Proportion(1, 3)
    assert found.top_k[2] == found.oracle == Proportion(2, 3)
    assert found.requests == 5
    assert (found.decoding_seconds, found.prompt_seconds, found.seconds) == (1.5, 1.5, 3)
    assert found.items_per_second == 2 / 6
    assert found.cost == 0


def test_the_summary_of_no_items_has_no_figures() -> None:
    found = summary(make_cell([None, None]))
    assert found.finished == found.requests == found.items_per_second == 0
    assert found.cost is None


def test_a_comparison_is_on_the_items_that_both_cells_have() -> None:
    first = make_cell([True, True, False, None, True, False])
    second = make_cell([True, False, True, True, None, False], seed=1)
    found = compare(first, second)
    assert (found.items, found.both, found.neither) == (4, 1, 1)
    assert [item.index for item in found.only_first] == [1]
    assert [item.index for item in found.only_second] == [2]
    assert found.difference == 0
    assert found.p_value == 1


def test_cells_of_different_domains_cannot_be_compared() -> None:
    with pytest.raises(UsageError, match="different domains"):
        compare(make_cell([True]), make_cell([True], domain="radios"))


@pytest.mark.parametrize(("only_first", "only_second"), [(0, 0), (1, 0), (5, 1), (2, 6), (4, 4)])
def test_the_p_value_is_the_share_of_equally_extreme_signs(only_first: int, only_second: int) -> None:
    first = make_cell([True] * only_first + [False] * only_second)
    second = make_cell([False] * only_first + [True] * only_second, seed=1)
    n, observed = only_first + only_second, abs(only_first - only_second)
    signs = list(itertools.product((-1, 1), repeat=n))
    extreme = sum(abs(sum(each)) >= observed for each in signs)
    assert compare(first, second).p_value == pytest.approx(extreme / len(signs))


def test_the_p_value_of_thousands_of_differences_is_a_number() -> None:
    first, second = make_cell([True] * 3000), make_cell([False] * 3000, seed=1)
    assert 0 <= compare(first, second).p_value < 1e-300


def score_statistic(b: int, c: int, n: int, difference: float) -> float:
    """Return the score statistic with the probabilities that maximise the likelihood, found by search."""

    def log_likelihood(p: float) -> float:
        """Return it for the probability p of "only second"."""
        terms = ((b, p + difference), (c, p), (n - b - c, 1 - 2 * p - difference))
        return sum(count * math.log(max(share, 1e-300)) for count, share in terms if count)

    low, high = max(0.0, -difference), (1 - difference) / 2
    for _ in range(200):
        third = (high - low) / 3
        if log_likelihood(low + third) < log_likelihood(high - third):
            low += third
        else:
            high -= third
    variance = n * (2 * low + difference - difference**2)
    return (b - c - n * difference) / math.sqrt(variance)


@pytest.mark.parametrize(
    ("b", "c", "n"), [(12, 2, 50), (1, 0, 6), (0, 0, 20), (3, 3, 10), (9, 0, 9), (40, 70, 800)]
)
def test_the_limits_of_a_difference_are_where_a_score_test_starts_to_reject(b: int, c: int, n: int) -> None:
    low, high = paired_interval(b, c, n)
    assert low <= (b - c) / n <= high
    for limit, expected in ((low, Z), (high, -Z)):
        if abs(limit) < 1 - 1e-9:
            assert score_statistic(b, c, n, limit) == pytest.approx(expected, abs=1e-3)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 100))
def test_the_interval_of_a_difference_agrees_with_the_score_test_of_no_difference(
    b: int, c: int, rest: int
) -> None:
    low, high = paired_interval(b, c, b + c + rest)
    significant = abs(b - c) > Z * math.sqrt(b + c)
    assert significant == (not low <= 0 <= high)
    mirrored = paired_interval(c, b, b + c + rest)
    assert (low, high) == pytest.approx((-mirrored[1], -mirrored[0]))


def test_the_interval_of_a_difference_covers_the_true_one_in_95_percent_of_samples() -> None:
    source, n, b, c = random.Random(0), 60, 0.2, 0.08
    covered = 0
    for _ in range(600):
        drawn = source.choices(("b", "c", "-"), (b, c, 1 - b - c), k=n)
        low, high = paired_interval(drawn.count("b"), drawn.count("c"), n)
        covered += low <= b - c <= high
    assert 0.92 <= covered / 600 <= 0.98


def test_the_interval_of_an_average_covers_the_true_one_in_95_percent_of_samples() -> None:
    source, shares, n = random.Random(0), (0.05, 0.4, 0.7, 0.95), 25
    covered = 0
    for _ in range(600):
        found = [Proportion(sum(source.random() < share for _ in range(n)), n) for share in shares]
        low, high = mean_interval(found)
        covered += low <= sum(shares) / len(shares) <= high
    assert 0.92 <= covered / 600 <= 0.985


def test_the_interval_of_one_proportion_is_wilsons() -> None:
    assert mean_interval([Proportion(3, 17)]) == pytest.approx(Proportion(3, 17).interval())


def test_domains_count_equally_in_the_simple_average_and_by_items_in_the_other() -> None:
    found = average([make_cell([True] * 3 + [False]), make_cell([False, False], domain="radios")])
    assert found.macro == (0.75 + 0) / 2
    assert found.micro == Proportion(3, 6)
    assert found.interval[0] < found.macro < found.interval[1]
    with pytest.raises(UsageError, match="different domains"):
        average([make_cell([True]), make_cell([True], seed=1)])


def test_averages_are_of_cells_that_differ_only_in_the_domain() -> None:
    results = make_results(
        *(make_cell([True], domain=domain, width=w) for w in (1, 2) for domain in ("a", "b")),
        make_cell([True], domain="a", width=9),
    )
    assert [(each.label, [cell.domain for cell in each.cells]) for each in averages(results)] == [
        ("W=1", ["a", "b"]),
        ("W=2", ["a", "b"]),
    ]


def test_targets_are_compared_between_cells_that_are_equal_otherwise() -> None:
    results = make_results(
        make_cell([True, False], target="program", width=1),
        make_cell([True, True], target="canonical", width=1),
        make_cell([True, True], target="canonical", width=2),
    )
    (found,) = canonical_minus_program(results)
    assert (found.first.label, found.second.label) == ("canonical, W=1", "program, W=1")
    assert found.difference == 0.5


def test_the_most_accurate_cell_of_each_domain_is_compared_with_the_others() -> None:
    cheap, costly = make_record(True, requests=2), make_record(True, requests=9)
    results = make_results(
        make_cell([costly, False], width=1),
        make_cell([cheap, False], width=2),
        make_cell([False, False], width=3),
        make_cell([True], domain="radios", width=1),
    )
    found = comparisons_with_best(results)
    assert list(found) == ["lamps"]
    assert [(each.first.options["width"], each.second.options["width"]) for each in found["lamps"]] == [
        (2, 1),
        (2, 3),
    ]


def test_p_values_are_adjusted_by_holms_method() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.integers(1, 12), min_size=1, max_size=40), st.integers(1, 6))
def test_every_item_is_in_one_bin_of_lengths_with_all_items_of_its_length(lengths: list[int], bins: int) -> None:
    utterances = [" ".join(["word"] * length) for length in lengths]
    cell = make_cell([length > 5 for length in lengths], utterances=utterances)
    found = by_length(cell, bins).utterance_words
    assert 1 <= len(found) <= bins
    for each in found:
        inside = [length for length in lengths if each.low <= length <= each.high]
        assert each.accuracy == Proportion(sum(length > 5 for length in inside), len(inside))
    assert sum(each.accuracy.items for each in found) == len(lengths)
    assert all(first.high < second.low for first, second in itertools.pairwise(found))


def test_bins_of_distinct_lengths_have_equal_numbers_of_items() -> None:
    cell = make_cell([True] * 8, utterances=[" ".join(["w"] * n) for n in range(1, 9)])
    assert [each.accuracy.items for each in by_length(cell, 4).utterance_words] == [2, 2, 2, 2]


def test_gold_programs_are_seen_if_an_example_of_the_pool_has_them() -> None:
    cell = make_cell([True, False, True], first_seen=[3, 4, None], pool=3)
    found = by_gold_seen(cell)
    assert found.seen == Proportion(1, 1)
    assert found.unseen == Proportion(1, 2)
