"""Rules for decimal numbers: exactly the notations of the numbers between two bounds."""

import re
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewparse.domains.calls.decimals import Bound, DecimalRules, Rules
from fewparse.grammar.parsing.chart import ParseFailure
from fewparse.grammar.parsing.forest import ForestParser
from fewparse.grammar.rules import Grammar, Ref

NOTATION = re.compile(r"(?!-0(?:\.0*)?$)-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
NUMBERS = [0, *range(1, 12), 19, 20, 21, 99, 100, 101, 999, 1000]
FRACTIONS = ["", ".0", ".5", ".25", ".250", ".2501", ".49", ".99", ".05", ".050", ".051", ".049"]
TEXTS = [f"{sign}{number}{fraction}" for sign in ("", "-") for number in NUMBERS for fraction in FRACTIONS]
WRONG = ["", "-", "01", "-01", "1.", ".5", "1.x", "+1", "1e5"]

integers = st.none() | st.integers(-120, 120) | st.sampled_from([-1000, 999, 1000])
bounds = [f"{n / 20:.2f}" for n in range(-30, 30, 7)] + ["5.25", "-5.5", "100.1"]
decimals = st.none() | st.builds(Bound, st.sampled_from(bounds).map(Decimal), st.booleans())


def accepted(rules: Rules, start: Ref) -> set[str]:
    """Return the texts that a rule derives, by the chart parser."""
    parser = ForestParser(Grammar({"start": ((start,),), **rules}))
    return {text for text in TEXTS + WRONG if not isinstance(parser.parse(text), ParseFailure)}


@given(low=integers, high=integers)
@settings(max_examples=40)
def test_integers_between_two_bounds(low: int | None, high: int | None) -> None:
    rules: Rules = {}
    start = DecimalRules(rules).integer(low, high)
    whole = {text for text in TEXTS if NOTATION.fullmatch(text) and "." not in text}
    expected = {t for t in whole if (low is None or int(t) >= low) and (high is None or int(t) <= high)}
    assert accepted(rules, start) == expected


@given(low=decimals, high=decimals)
@settings(max_examples=40)
def test_numbers_between_two_bounds(low: Bound | None, high: Bound | None) -> None:
    rules: Rules = {}
    start = DecimalRules(rules).number(low, high)

    def between(text: str) -> bool:
        number = Decimal(text)
        above = low is None or number > low.number or (number == low.number and not low.excluded)
        below = high is None or number < high.number or (number == high.number and not high.excluded)
        return above and below

    assert accepted(rules, start) == {text for text in TEXTS if NOTATION.fullmatch(text) and between(text)}


@pytest.mark.parametrize("high", [10**30, 2**63 - 1])
def test_large_bounds_have_small_rules(high: int) -> None:
    rules: Rules = {}
    start = DecimalRules(rules).integer(-high, high)
    assert Grammar({"start": ((start,),), **rules}).size < 2000
    parser = ForestParser(Grammar({"start": ((start,),), **rules}))
    for text in ("0", "-1", str(10**19 - 1)[:18], str(min(high, 10**20 - 1))):
        assert not isinstance(parser.parse(text), ParseFailure)
    assert isinstance(parser.parse(str(2**63) if high < 10**20 else str(10**31)), ParseFailure)
