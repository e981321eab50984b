"""The values of the Overnight language: how they are read and written, their types and their degrees."""

import re
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from math import isfinite
from typing import TypeAlias

from fewparse.errors import ExecutionError

Expression: TypeAlias = "str | tuple[Expression, ...]"

TOKEN = re.compile(r"[()]|[^()\s]+", re.ASCII)
NO_UNIT = "fb:en.unitless"
COUNT = "count"
NOT_GIVEN = -1
NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
INTEGER = re.compile(r"([+-]?)0*([0-9]{1,10})")
MIN_INTEGER, MAX_INTEGER = -(2**31), 2**31 - 1
THREE_DECIMALS, TWO_DECIMALS = Decimal("0.001"), Decimal("0.01")
ROUNDING = Context(prec=400, rounding=ROUND_HALF_UP)


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity or the name of a type; it need not exist in any world."""

    id: str


@dataclass(frozen=True, slots=True)
class Number:
    """A number with a unit; numbers with different units are never equal."""

    magnitude: float
    unit: str = NO_UNIT


@dataclass(frozen=True, slots=True)
class Date:
    """A date; a part that is not given is -1, and is equal only to another -1."""

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
    """The value of a unary property; there is no literal for it in programs."""

    truth: bool


@dataclass(frozen=True, slots=True)
class Text:
    """A string as an element of a list; only `listValue` makes one."""

    text: str


Value: TypeAlias = Entity | Number | Date | Time | Boolean | Text
TRUE = Boolean(True)


def type_of(value: Value) -> str:
    """Return the type of a value, which depends on the value alone; raise `ExecutionError` if it has none."""
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
            raise ExecutionError(f"the string `{truncated(text)}` has no type")


def entity_type(id: str) -> str:  # noqa: A002
    """Return the identifier up to its last dot, or up to the dot before if `_` follows the last one."""
    kind, _, last = id.rpartition(".")
    if last.startswith("_"):
        kind = kind.rpartition(".")[0]
    if not kind:
        raise ExecutionError(f"{truncated(id)} has no type")
    return kind


def is_numeric(kind: str) -> bool:
    """Return whether the values of a type have degrees."""
    return kind.endswith("_number") or kind in ("en.date", "en.time")


def degree(value: Value) -> float:
    """Return the number that comparisons and superlatives use; it ignores units and minutes."""
    match value:
        case Number(magnitude):
            return magnitude
        case Date(year, month, day):
            parts = ((year, 10_000), (month, 100), (day, 1))
            return float(sum(part * weight for part, weight in parts if part != NOT_GIVEN))
        case Time(hour):
            return float(hour)
        case _:
            raise ExecutionError(f"{truncated(text_of(value))} has no degree")


def text_of(value: Value) -> str:
    """Return a value as written in a denotation."""
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
    """Return a number as a 32-bit integer, with three decimals, or in scientific notation below 0.001.

    Halves are rounded away from zero, in the shortest decimal expansion that round-trips.
    """
    if number.is_integer() and MIN_INTEGER <= number <= MAX_INTEGER:
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
    """Return the value of a literal; raise `ExecutionError` for any other expression."""
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
            raise ExecutionError(f"`({truncated(head)} …)` is not a value")
        case _:
            raise ExecutionError("a list of expressions is not a value")


def read_number(text: str) -> float:
    """Return a finite decimal number; raise `ExecutionError` for any other text."""
    if not NUMBER.fullmatch(text) or not isfinite(number := float(text)):
        raise ExecutionError(f"`{truncated(text)}` is not a number")
    return number


def read_integer(text: str) -> int:
    """Return a 32-bit integer; raise `ExecutionError` for any other text."""
    match = INTEGER.fullmatch(text)
    if not match or not MIN_INTEGER <= (integer := int(match[1] + match[2])) <= MAX_INTEGER:
        raise ExecutionError(f"`{truncated(text)}` is not a 32-bit integer")
    return integer


def read_expression(text: str) -> Expression:
    """Parse a text that is one S-expression into nested tuples of atoms; raise `ExecutionError` for other texts.

    An explicit stack allows any depth of nesting.
    """
    items: list[Expression] = []
    outer: list[list[Expression]] = []
    for token in TOKEN.findall(text):
        if token == "(":
            outer.append(items)
            items = []
        elif token == ")":
            if not outer:
                raise ExecutionError("unmatched closing bracket")
            form = tuple(items)
            items = outer.pop()
            items.append(form)
        else:
            items.append(token)
    if outer:
        raise ExecutionError("unmatched opening bracket")
    if len(items) != 1:
        raise ExecutionError("a program must be one expression")
    return items[0]


def truncated(text: str, max_length: int = 60) -> str:
    """Return a text cut to the length that an error message shows."""
    return text if len(text) <= max_length else f"{text[:max_length]}…"
