"""Selecting and ordering the ranked examples for a prompt."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from fewparse.retrieve.retriever import fit, ordered


def test_the_best_example_is_first_last_or_at_a_random_position() -> None:
    assert ordered([1, 2, 3], "best-first", 0) == [1, 2, 3]
    assert ordered([1, 2, 3], "best-last", 0) == [3, 2, 1]
    shuffled = ordered(list(range(30)), "shuffled", 0)
    assert sorted(shuffled) == list(range(30))
    assert shuffled != list(range(30))
    assert shuffled == ordered(list(range(30)), "shuffled", 0)
    assert shuffled != ordered(list(range(30)), "shuffled", 1)


def test_ordering_does_not_change_the_ranking() -> None:
    ranking = [1, 2, 3]
    ordered(ranking, "shuffled", 0)
    ordered(ranking, "best-last", 0)
    assert ranking == [1, 2, 3]


@given(sizes=st.lists(st.integers(1, 9), max_size=12), budget=st.integers(0, 60))
def test_the_longest_prefix_of_the_ranking_that_fits_is_used(sizes: list[int], budget: int) -> None:
    def fits(some: Sequence[int]) -> bool:
        return sum(some) <= budget

    kept = fit(sizes, fits)
    assert kept == sizes[: len(kept)]
    assert fits(kept)
    assert len(kept) == len(sizes) or not fits(sizes[: len(kept) + 1])


def test_no_example_is_used_if_none_fits() -> None:
    assert fit([5, 5], lambda some: False) == []
