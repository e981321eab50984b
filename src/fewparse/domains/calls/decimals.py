"""Grammar rules for the decimal notations of numbers between two bounds.

Integers have no leading zeros and no minus before zero; fractions may have trailing zeros.
"""

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import NamedTuple

from fewparse.grammar.rules import Chars, Production, Ref, Text

MAX_DIGITS = 20
LARGEST = 10**MAX_DIGITS
DIGIT = Chars(((ord("0"), ord("9")),))
NONZERO = Chars(((ord("1"), ord("9")),))
Rules = dict[str, tuple[Production, ...]]


class Bound(NamedTuple):
    """A bound of numbers; `excluded` if the number itself is not allowed."""

    number: Decimal
    excluded: bool = False

    def negated(self) -> "Bound":
        """Return the bound of the negated numbers."""
        return Bound(-self.number, self.excluded)


class FractionBound(NamedTuple):
    """A bound of fractions: the digits after the point, without trailing zeros."""

    digits: str
    excluded: bool

    @staticmethod
    def of(bound: Bound) -> "FractionBound":
        """Return the bound of the fraction of a number."""
        _, _, digits = f"{bound.number:f}".partition(".")
        return FractionBound(digits.rstrip("0"), bound.excluded)

    @property
    def first(self) -> int:
        """The first digit."""
        return int(self.digits[:1] or "0")

    @property
    def rest(self) -> "FractionBound":
        """The bound of the digits after the first one."""
        return FractionBound(self.digits[1:], self.excluded)


class DecimalRules:
    """Adds rules for ranges of numbers to the rules of a grammar, each once."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self.digits = self._define("digits", lambda: [(), (Ref("digits"), DIGIT)])

    def _define(self, name: str, productions: Callable[[], Iterable[Production]]) -> Ref:
        if name not in self._rules:
            self._rules[name] = ()  # reserves the name
            self._rules[name] = tuple(productions())
        return Ref(name)

    def integer(self, low: int | None, high: int | None) -> Ref:
        """Return a rule for the integers between two bounds."""
        return self._define(f"integer_{named(low)}_{named(high)}", lambda: self._integers(low, high))

    def _integers(self, low: int | None, high: int | None) -> Iterator[Production]:
        if high is None or high >= 0:
            yield from self._naturals(max(low or 0, 0), high)
        if low is None or low < 0:
            least = 1 if high is None or high >= 0 else -high
            for production in self._naturals(least, None if low is None else -low):
                yield (Text("-"), *production)

    def _naturals(self, low: int, high: int | None) -> Iterator[Production]:
        """Yield productions for the integers between two bounds that are not negative."""
        high = None if high is None else min(high, LARGEST - 1)
        last = len(str(low if high is None else high))
        for length in range(len(str(low)), last + 1):
            least = max(low, 10 ** (length - 1) if length > 1 else 0)
            most = 10**length - 1 if high is None else min(high, 10**length - 1)
            if least <= most:
                yield from same_length(str(least), str(most))
        if high is None:
            yield (NONZERO, *[DIGIT] * last, self.digits)

    def number(self, low: Bound | None, high: Bound | None) -> Ref:
        """Return a rule for the numbers between two bounds, without exponents."""
        name = f"number_{named(low)}_{named(high)}"
        return self._define(name, lambda: self._numbers(low, high))

    def _numbers(self, low: Bound | None, high: Bound | None) -> Iterator[Production]:
        zero = Bound(Decimal(0))
        if high is None or high.number >= 0:
            yield from self._magnitudes(zero if low is None or low.number < 0 else low, high)
        if low is None or low.number < 0:
            below_zero = Bound(Decimal(0), True)
            least = below_zero if high is None or high.number >= 0 else high.negated()
            for production in self._magnitudes(least, None if low is None else low.negated()):
                yield (Text("-"), *production)

    def _magnitudes(self, low: Bound, high: Bound | None) -> Iterator[Production]:
        """Yield productions for the numbers between two bounds that are not negative."""
        if high is not None and high.number > LARGEST:
            high = Bound(Decimal(LARGEST))
        least, most = int(low.number), None if high is None else int(high.number)
        anything = self._fraction(None, None)
        from_low = FractionBound.of(low)
        if most is None or most - least > 1:
            between = self.integer(least + 1, None if most is None else most - 1)
            yield (between, anything)
        if high is None or most is None or most > least:
            yield (Text(str(least)), self._fraction(from_low, None))
        if high is not None and most is not None and most >= least:
            yield (Text(str(most)), self._fraction(None if most > least else from_low, FractionBound.of(high)))

    def _fraction(self, low: FractionBound | None, high: FractionBound | None) -> Ref:
        """Return a rule for what follows an integer: nothing, or a point and digits, between two bounds."""
        name = f"fraction_{named(low)}_{named(high)}"
        nothing: list[Production] = [()] if allows_zero(low, high) else []
        return self._define(name, lambda: [*nothing, *((Text("."), *p) for p in self._digits(low, high))])

    def _rest(self, low: FractionBound | None, high: FractionBound | None) -> Ref:
        """Return a rule for further digits between two bounds, possibly none."""
        if low is None and high is None:
            return self.digits
        name = f"rest_{named(low)}_{named(high)}"
        nothing: list[Production] = [()] if allows_zero(low, high) else []
        return self._define(name, lambda: [*nothing, *self._digits(low, high)])

    def _digits(self, low: FractionBound | None, high: FractionBound | None) -> Iterator[Production]:
        """Yield productions for one digit or more between two bounds."""
        if low is not None and not low.digits and not low.excluded:
            low = None
        if low is None and high is None:
            yield (DIGIT, self.digits)
            return
        first, last = (0 if low is None else low.first), (9 if high is None else high.first)
        after_low, after_high = (None if low is None else low.rest), (None if high is None else high.rest)
        if low is not None and high is not None and first == last:
            yield (Text(str(first)), self._rest(after_low, after_high))
            return
        if low is not None and first <= last:
            yield (Text(str(first)), self._rest(after_low, None))
            first += 1
        if high is not None and first <= last:
            yield (Text(str(last)), self._rest(None, after_high))
            last -= 1
        if first <= last:
            yield (Chars(((ord("0") + first, ord("0") + last),)), self.digits)


def same_length(low: str, high: str) -> Iterator[Production]:
    """Yield productions for the integers between two of the same number of digits."""
    if not low:
        yield ()
        return
    rest = len(low) - 1
    if low[0] == high[0]:
        yield from ((Text(low[0]), *production) for production in same_length(low[1:], high[1:]))
        return
    first, last = int(low[0]), int(high[0])
    if low[1:] != "0" * rest:
        yield from ((Text(low[0]), *production) for production in same_length(low[1:], "9" * rest))
        first += 1
    if high[1:] != "9" * rest:
        yield from ((Text(high[0]), *production) for production in same_length("0" * rest, high[1:]))
        last -= 1
    if first <= last:
        yield (Chars(((ord("0") + first, ord("0") + last),)), *[DIGIT] * rest)


def allows_zero(low: FractionBound | None, high: FractionBound | None) -> bool:
    """Return whether no digits, which are zero, are between two bounds."""
    at_least = low is None or not (low.digits or low.excluded)
    return at_least and (high is None or bool(high.digits) or not high.excluded)


def named(bound: object) -> str:
    """Return a bound as a part of the name of a rule."""
    if isinstance(bound, Bound | FractionBound):
        written = f"{bound.number:f}" if isinstance(bound, Bound) else bound.digits or "0"
        return f"{'x' if bound.excluded else ''}{written}".replace("-", "m").replace(".", "p")
    return "any" if bound is None else str(bound).replace("-", "m")
