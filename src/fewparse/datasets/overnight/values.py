"""The values of the Overnight language: their types and degrees, and how they are read and written."""

import re
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from math import isfinite
from typing import TypeAlias

from fewparse.datasets.overnight.reading import Expression, shown
from fewparse.errors import ExecutionError

NO_UNIT = "fb:en.unitless"
COUNT = "count"
NOT_GIVEN = -1
NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
INTEGER = re.compile(r"([+-]?)0*([0-9]{1,10})")
SMALLEST, LARGEST = -(2**31), 2**31 - 1
THREE_DECIMALS, TWO_DECIMALS = Decimal("0.001"), Decimal("0.01")
ROUNDING = Context(prec=400, rounding=ROUND_HALF_UP)


@dataclass(frozen=True, slots=True)
class Entity:
    """A thing or the name of a type; it need not exist in any world."""

    id: str


@dataclass(frozen=True, slots=True)
class Number:
    """A number of something; numbers of different units are never equal."""

    magnitude: float
    unit: str = NO_UNIT


@dataclass(frozen=True, slots=True)
class Date:
    """A date; a part that is not given is -1, and equals only another that is not given."""

    year: int
    month: int
    day: int


@dataclass(frozen=True, slots=True)
class Time:
    """A time of day."""

    hour: int
    minute: int


@dataclass(frozen=True, slots=True)
class Boolean:
    """The value of a property that only holds or does not; programs cannot write it."""

    truth: bool


@dataclass(frozen=True, slots=True)
class Text:
    """A plain string as a member of a list, which only `listValue` makes."""

    text: str


Value: TypeAlias = Entity | Number | Date | Time | Boolean | Text
TRUE = Boolean(True)


def type_of(value: Value) -> str:
    """The type of a value, which is derived from the value alone."""
    match value:
        case Entity(id):
            return entity_type(id)
        case Number(_, unit):
            return f"{unit}_number"
        case Date():
            return "en.date"
        case Time():
            return "en.time"
        case Boolean():
            return "en.boolean"
        case Text(text):
            raise ExecutionError(f"the string `{shown(text)}` has no type")


def entity_type(id: str) -> str:  # noqa: A002
    """All of an identifier before its last dot, or before the dot before that where `_` follows the last one."""
    kind, _, last = id.rpartition(".")
    if last.startswith("_"):
        kind = kind.rpartition(".")[0]
    if not kind:
        raise ExecutionError(f"{shown(id)} has no type")
    return kind


def is_numeric(kind: str) -> bool:
    """Whether the values of a type can be compared by degree."""
    return kind.endswith("_number") or kind in ("en.date", "en.time")


def degree(value: Value) -> float:
    """What comparisons and superlatives compare: units and minutes play no part."""
    match value:
        case Number(magnitude):
            return magnitude
        case Date(year, month, day):
            parts = ((year, 10_000), (month, 100), (day, 1))
            return float(sum(part * weight for part, weight in parts if part != NOT_GIVEN))
        case Time(hour):
            return float(hour)
        case _:
            raise ExecutionError(f"{shown(text_of(value))} has no degree")


def text_of(value: Value) -> str:
    """A value as it is written in a denotation."""
    match value:
        case Entity(id):
            return f"(name {id})"
        case Number(magnitude, unit):
            return f"(number {number_text(magnitude)}{'' if unit == NO_UNIT else f' {unit}'})"
        case Date(year, month, day):
            return f"(date {year} {month} {day})"
        case Time(hour, minute):
            return f"(time {hour} {minute})"
        case Boolean(truth):
            return f"(boolean {str(truth).lower()})"
        case Text(text):
            return f"(string {text})"


def number_text(number: float) -> str:
    """A whole number of 32 bits, three decimals, or scientific form for what three decimals cannot show.

    Halves are rounded away from zero, on the shortest decimal expansion that gives the number back.
    """
    if number.is_integer() and SMALLEST <= number <= LARGEST:
        return str(int(number))
    exact = Decimal(repr(number))
    if abs(number) >= 0.001:
        return f"{exact.quantize(THREE_DECIMALS, context=ROUNDING):f}"
    exponent = exact.adjusted()
    mantissa = exact.scaleb(-exponent, ROUNDING).quantize(TWO_DECIMALS, context=ROUNDING)
    if abs(mantissa) == 10:
        mantissa, exponent = mantissa / 10, exponent + 1
    return f"{mantissa:.2f}e-{-exponent:02d}"


def read_value(expression: Expression) -> Value:
    """The value that an expression is written as; `ExecutionError` where it is none that a program may write."""
    match expression:
        case str():
            return Entity(expression)
        case ("number", str(number)):
            return Number(read_number(number))
        case ("number", str(number), str(unit)):
            return Number(read_number(number), unit)
        case ("date", str(year), str(month), str(day)):
            return Date(read_integer(year), read_integer(month), read_integer(day))
        case ("time", str(hour), str(minute)):
            return Time(read_integer(hour), read_integer(minute))
        case (str(head), *_):
            raise ExecutionError(f"`({shown(head)} …)` is not a value")
        case _:
            raise ExecutionError("a list of expressions is not a value")


def read_number(text: str) -> float:
    """A finite decimal number."""
    if not NUMBER.fullmatch(text) or not isfinite(number := float(text)):
        raise ExecutionError(f"`{shown(text)}` is not a number")
    return number


def read_integer(text: str) -> int:
    """A whole number of 32 bits."""
    match = INTEGER.fullmatch(text)
    if not match or not SMALLEST <= (integer := int(match[1] + match[2])) <= LARGEST:
        raise ExecutionError(f"`{shown(text)}` is not a whole number of 32 bits")
    return integer
