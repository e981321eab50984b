"""From a ranking to the examples of a prompt."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from fewparse.retrieve.retriever import fit, ordered


def test_the_best_example_stands_last_first_or_anywhere() -> None:
    assert ordered([1, 2, 3], "best-first", 0) == [1, 2, 3]
    assert ordered([1, 2, 3], "best-last", 0) == [3, 2, 1]
    shuffled = ordered(list(range(30)), "shuffled", 0)
    assert sorted(shuffled) == list(range(30))
    assert shuffled != list(range(30))
    assert shuffled == ordered(list(range(30)), "shuffled", 0)
    assert shuffled != ordered(list(range(30)), "shuffled", 1)


def test_arranging_leaves_the_ranking_as_it_was() -> None:
    ranking = [1, 2, 3]
    ordered(ranking, "shuffled", 0)
    ordered(ranking, "best-last", 0)
    assert ranking == [1, 2, 3]


@given(sizes=st.lists(st.integers(1, 9), max_size=12), room=st.integers(0, 60))
def test_as_many_of_the_best_as_fit_stay_and_the_least_similar_are_dropped(sizes: list[int], room: int) -> None:
    def fits(some: Sequence[int]) -> bool:
        return sum(some) <= room

    kept = fit(sizes, fits)
    assert kept == sizes[: len(kept)]
    assert fits(kept)
    assert len(kept) == len(sizes) or not fits(sizes[: len(kept) + 1])


def test_where_nothing_fits_nothing_stays() -> None:
    assert fit([5, 5], lambda some: False) == []
