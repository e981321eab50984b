"""Character classes, compared with sets of code points."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from fewparse.grammar.rules import LAST_CODE_POINT, Chars

points = st.one_of(
    st.integers(0, 20), st.integers(0xD7FD, 0xE003), st.integers(LAST_CODE_POINT - 3, LAST_CODE_POINT)
)
ranges = st.lists(st.tuples(points, points).map(lambda pair: (min(pair), max(pair))), max_size=5)
thorough = settings(max_examples=300, deadline=None, derandomize=True, database=None)
EDGES = [*range(22), *range(0xD7FB, 0xE005), *range(LAST_CODE_POINT - 5, LAST_CODE_POINT + 1)]


@thorough
@given(ranges)
def test_a_class_contains_its_ranges_sorted_and_disjoint(given_ranges: list[tuple[int, int]]) -> None:
    chars = Chars.of(given_ranges)
    for code in EDGES:
        assert (chr(code) in chars) == any(low <= code <= high for low, high in given_ranges)
    bounds = [bound for pair in chars.ranges for bound in pair]
    assert bounds == sorted(bounds)
    assert all(high + 1 < low for (_, high), (low, _) in pairwise(chars.ranges))


@thorough
@given(ranges)
def test_a_negated_class_contains_every_other_character_and_no_surrogate(
    given_ranges: list[tuple[int, int]],
) -> None:
    chars = Chars.of(given_ranges)
    negated = chars.negated()
    for code in EDGES:
        assert (chr(code) in negated) == (chr(code) not in chars and not 0xD800 <= code <= 0xDFFF)
