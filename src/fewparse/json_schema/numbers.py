"""The keywords of numbers, rewritten so that the engine enforces them exactly.

The engine compares decimal digits, `jsonschema` compares Python's numbers: integers of any size, and floats.
The engine reads numbers of a schema as floats, exactly if they have at most 15 digits. So bounds are rounded
inwards to 15 digits, and excluded bounds become the next number of 15 digits.
"""

import math
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any

EXACT = 1 << 53
"""Integers up to this one are floats; floats from this one on are integers."""
INT64_MAX = (1 << 63) - 1
LARGEST_INTEGER = (1 << 63) - 1024
"""The largest float that is an integer of 64 bits, as the engine has them."""
LARGEST = Decimal(10) ** 18
NEXT_TO_ZERO = Decimal("1e-20")
MAX_DIVISOR = (1 << 32) - 1
DIGITS = 15


class NumberError(ValueError):
    """A number or a keyword that the engine cannot enforce; `keyword` is its name."""

    def __init__(self, keyword: str, message: str) -> None:
        super().__init__(message)
        self.keyword, self.message = keyword, message


@dataclass(frozen=True)
class Bounds:
    """Numbers between two bounds, each None or a number that may be excluded."""

    low: Decimal | None = None
    low_excluded: bool = False
    high: Decimal | None = None
    high_excluded: bool = False

    def at_least(self, number: Decimal, excluded: bool = False) -> "Bounds":
        """Return the numbers that are also at least a number."""
        if self.low is not None and (self.low, self.low_excluded) >= (number, excluded):
            return self
        return Bounds(number, excluded, self.high, self.high_excluded)

    def at_most(self, number: Decimal, excluded: bool = False) -> "Bounds":
        """Return the numbers that are also at most a number."""
        if self.high is not None and (-self.high, self.high_excluded) >= (-number, excluded):
            return self
        return Bounds(self.low, self.low_excluded, number, excluded)

    def integers(self) -> tuple[int | None, int | None]:
        """Return the least and the greatest integer, None if there is none."""
        low = self.low if self.low is None else math.ceil(self.low) + (self.low_excluded and self.low % 1 == 0)
        high = (
            self.high if self.high is None else math.floor(self.high) - (self.high_excluded and self.high % 1 == 0)
        )
        return low, high


def exact(number: float) -> Decimal:
    """Return a number of a schema as it is written."""
    return Decimal(repr(number)) if isinstance(number, float) and abs(number) < EXACT else Decimal(number)


def bounds_of(schema: dict[str, Any]) -> Bounds:
    """Return the bounds of a schema, those of draft 4 included."""
    bounds = Bounds()
    for keyword, excluded in (("minimum", schema.get("exclusiveMinimum") is True), ("exclusiveMinimum", True)):
        if keyword in schema and not isinstance(schema[keyword], bool):
            bounds = bounds.at_least(exact(schema[keyword]), excluded)
    for keyword, excluded in (("maximum", schema.get("exclusiveMaximum") is True), ("exclusiveMaximum", True)):
        if keyword in schema and not isinstance(schema[keyword], bool):
            bounds = bounds.at_most(exact(schema[keyword]), excluded)
    return bounds


def integer_keywords(bounds: Bounds, divisor: int) -> dict[str, Any] | None:
    """Return keywords for the integers within bounds that are multiples of a divisor; None if there are none."""
    low, high = bounds.integers()
    first = None if low is None else -(-low // divisor) * divisor
    last = None if high is None else high // divisor * divisor
    if first is not None and last is not None and first > last:
        return None
    keywords: dict[str, Any] = {}
    if first is not None:
        if first > LARGEST_INTEGER:
            raise NumberError("minimum", "the number is too large to be enforced")
        keywords["minimum"] = -integer_at_most(-first)
    if last is not None:
        if last < -LARGEST_INTEGER:
            raise NumberError("maximum", "the number is too large to be enforced")
        keywords["maximum"] = INT64_MAX if last >= INT64_MAX else integer_at_most(last)
    if divisor != 1:
        if divisor > MAX_DIVISOR:
            raise NumberError("multipleOf", "the number is too large to be enforced")
        keywords["multipleOf"] = divisor
    return keywords


def integer_at_most(number: int) -> int:
    """Return the largest integer up to a number that is a float, and that the engine can enforce."""
    number = min(number, LARGEST_INTEGER)
    found = float(number)
    while int(found) > number:
        found = math.nextafter(found, -math.inf)
    return int(found)


def number_keywords(bounds: Bounds) -> dict[str, Any] | None:
    """Return keywords for the numbers within bounds; None if there are none."""
    keywords: dict[str, Any] = {}
    low = None if bounds.low is None else -float_at_most(-bounds.low, bounds.low_excluded, "minimum")
    high = None if bounds.high is None else float_at_most(bounds.high, bounds.high_excluded, "maximum")
    if low is not None and high is not None and low > high:
        return None
    if low is not None:
        keywords["minimum"] = plain(low)
    if high is not None:
        keywords["maximum"] = plain(high)
    return keywords


def float_at_most(number: Decimal, excluded: bool, keyword: str) -> Decimal:
    """Return the largest number of 15 digits that is at most, or less than, a number."""
    if abs(number) > LARGEST:
        raise NumberError(keyword, "the number is too large to be enforced")
    if excluded and abs(number) < NEXT_TO_ZERO:
        return -NEXT_TO_ZERO
    found = rounded(number, ROUND_FLOOR)
    if excluded and found == number:
        found = Context(prec=DIGITS, rounding=ROUND_FLOOR).next_minus(found)
    return found


def rounded(number: Decimal, rounding: str) -> Decimal:
    """Return a number rounded to 15 digits."""
    return Context(prec=DIGITS, rounding=rounding).plus(number)


def plain(number: Decimal) -> float | int:
    """Return a number as JSON has it."""
    return int(number) if number == number.to_integral_value() else float(number)


def divisor_of(number: float) -> int | None:
    """Return a number as an integer; None for a half, a quarter and so on.

    Raises `NumberError` for other fractions: as floats, 0.07 is no multiple of 0.01, and `jsonschema` rejects it.
    """
    fraction = Fraction(exact(number))
    if fraction.denominator == 1:
        return fraction.numerator
    if fraction.numerator == 1 and fraction.denominator & (fraction.denominator - 1) == 0:
        return None
    raise NumberError("multipleOf", "multiples of this fraction are not exact as binary numbers")


def constant(value: float) -> float | int:
    """Return a number of `enum` or `const` as the engine reads it exactly; raise `NumberError` if it cannot."""
    written = exact(value)
    if written == written.to_integral_value():
        if abs(written) > EXACT:
            raise NumberError("", f"the number {value} is too large to be enforced")
        return int(written)
    if len(written.as_tuple().digits) > DIGITS or abs(written) < NEXT_TO_ZERO:
        raise NumberError("", f"the number {value} has too many digits to be enforced")
    return value


def has_common_multiple(first: float, second: float) -> bool:
    """Return whether the engine computes the least common multiple of two divisors: it has 32 bits for it."""
    places = [decimal_places(number) for number in (first, second)]
    scaled = [exact(number).scaleb(max(places)) for number in (first, second)]
    return scaled[0] * scaled[1] <= MAX_DIVISOR


def decimal_places(number: float) -> int:
    """Return the number of decimal places of a number."""
    return max(0, -int(exact(number).as_tuple().exponent))
