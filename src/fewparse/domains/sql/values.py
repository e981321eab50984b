"""Write expressions: columns, literals, arithmetic and aggregates."""

import re
from collections.abc import Callable
from datetime import date
from typing import NoReturn, Protocol

from fewparse.domains.sql.expressions import NUMBER, number
from fewparse.domains.sql.identifiers import string_literal
from fewparse.domains.sql.names import nearest
from fewparse.domains.sql.query import (
    Aggregate,
    Calculation,
    ColumnOf,
    Expression,
    Select,
    SubQuery,
    Value,
    has_aggregate,
)
from fewparse.domains.sql.types import TYPE_OF_KIND, Kind, Type, is_writable, kind_of
from fewparse.domains.sql.value_sets import ValueSets

TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?(?:\.0+)?", re.ASCII)
DATE = re.compile(r"[1-9]\d{3}-\d\d-\d\d", re.ASCII)
MAX_DIGITS, MAX_FRACTION = 15, 6
TRUE, FALSE = {"TRUE", "1", "T", "YES"}, {"FALSE", "0", "F", "NO"}


class Fail(Protocol):
    """Raises `SqlError`."""

    def __call__(self, what: str, hint: str | None = None) -> NoReturn:
        """Raise the error."""
        ...


class ExpressionWriter:
    """Writes expressions; `column` writes a column of the current query."""

    def __init__(self, column: Callable[[ColumnOf], str], sets: ValueSets, fail: Fail) -> None:
        self._column = column
        self._sets = sets
        self._fail = fail
        self.arithmetic = True
        """Whether the current query may contain arithmetic."""

    def kind(self, expression: Expression) -> Kind:
        """Return the kind of an expression."""
        match expression:
            case ColumnOf(source=source, name=name):
                if source.query is not None:
                    self._fail("this use of a derived table is not supported")
                return kind_of(source.columns[name])
            case Value(kind=kind):
                return kind
            case Calculation(operator=operator, left=left, right=right):
                kinds = {self.kind(left), self.kind(right)}
                if not kinds <= {"int", "dec"}:
                    self._fail(f"`{operator}` is for numbers only")
                return "int" if kinds == {"int"} and operator != "*" else "dec"
            case Aggregate(function=function, argument=argument):
                return self._aggregate_kind(function, argument)
            case SubQuery(query=Select(items=[item])):
                return self.kind(item)
        self._fail("this expression is not supported")

    def type(self, expression: Expression) -> Type | None:
        """Return the type of an expression; None if it cannot be compared."""
        return TYPE_OF_KIND.get(self.kind(expression))

    def _aggregate_kind(self, function: str, argument: Expression | None) -> Kind:
        if function == "COUNT" or argument is None:
            return "int"
        kind = self.kind(argument)
        if function in ("SUM", "AVG") and kind not in ("int", "dec"):
            self._fail(f"{function} is for numbers only")
        if kind not in TYPE_OF_KIND:
            self._fail(f"{function} is not supported for this column")
        return "dec" if function == "AVG" else kind

    def text(self, expression: Expression) -> str:
        """Return an expression as canonical SQL."""
        match expression:
            case ColumnOf():
                return self._column(expression)
            case Value(kind="int" | "dec"):
                return self.number(expression.text)
            case Calculation():
                return f"({self._calculation(expression)})"
            case Aggregate():
                return self._aggregate(expression)
        self._fail("this expression is not supported here")

    def _aggregate(self, aggregate: Aggregate) -> str:
        argument = aggregate.argument
        if argument is None:
            return "COUNT(*)"
        if has_aggregate(argument) or not isinstance(argument, ColumnOf | Calculation):
            self._fail("an aggregate takes a column or arithmetic with columns")
        kind = self.kind(argument)
        self._aggregate_kind(aggregate.function, argument)
        if aggregate.function == "COUNT" and (
            isinstance(argument, Calculation) or (aggregate.distinct and kind == "other")
        ):
            self._fail("COUNT takes a column that can be compared")
        written = self._calculation(argument) if isinstance(argument, Calculation) else self.text(argument)
        return f"{aggregate.function}({'DISTINCT ' if aggregate.distinct else ''}{written})"

    def _calculation(self, calculation: Calculation) -> str:
        """Return arithmetic: integers are widened, and division by zero is NULL, so that no database fails."""
        if not self.arithmetic:
            self._fail("arithmetic in this join is not supported")
        operator, left, right = calculation.operator, calculation.left, calculation.right
        self.kind(calculation)
        if isinstance(left, Value) and (isinstance(right, Value) or operator in "+*"):
            self._fail("arithmetic with literals only is not supported")
        for one, other in ((left, right), (right, left)):
            if has_aggregate(one) and not has_aggregate(other) and not isinstance(other, Value):
                self._fail("arithmetic with aggregates and columns is not supported")
        integers = self.kind(left) == self.kind(right) == "int"
        written = self.text(left)
        if operator == "/":
            if isinstance(right, Value):
                if right.text.startswith("-") or not right.text.strip("0."):
                    self._fail("division by a literal that is not positive is not supported")
                return f"{written} / {self.text(right)}"
            return f"{written} / NULLIF({self.text(right)}, 0)"
        if integers:
            written = f"CAST({written} AS {'DOUBLE PRECISION' if operator == '*' else 'BIGINT'})"
        return f"{written} {operator} {self.text(right)}"

    def known_values(self, expression: Expression) -> tuple[str, ...] | None:
        """Return the known values of a column; None if any value may be compared with it."""
        return (
            self._sets.get((expression.source.table, expression.name))
            if isinstance(expression, ColumnOf)
            else None
        )

    # ---- literals

    def number(self, text: str) -> str:
        """Return a number; raises `SqlError` for one with too many digits."""
        written = number(text).text
        whole, _, fraction = written.lstrip("-").partition(".")
        if len(whole) > MAX_DIGITS or len(fraction) > MAX_FRACTION or written == "0.0":
            self._fail(f"the number {text[:50]} has too many digits, or none but 0")
        return written

    def literal(self, value: Expression, like: Expression) -> str:
        """Return a literal that is compared with an expression, in the form of that expression's type."""
        if not isinstance(value, Value):
            self._fail("a literal is expected here")
        kind = self.kind(like)
        if kind in ("int", "dec"):
            if not NUMBER.fullmatch(value.text.strip()):
                self._fail(f"{value.text[:50]!r} is not a number, but is compared with one")
            return self.number(value.text.strip())
        if kind in ("text", "coded"):
            return self._text(value, like)
        if kind == "date":
            return self._date(value)
        if kind == "time":
            return f"'{self._time(value.text)}'"
        if kind == "datetime":
            day, _, time = value.text.replace("T", " ").partition(" ")
            written = self._date(Value("text", day))
            return written if not time else f"{written[:-1]} {self._time(time)}'"
        self._fail("a column of this type cannot be compared with a literal")

    def _text(self, value: Value, like: Expression) -> str:
        if not is_writable(value.text):
            self._fail("text with control characters is not supported")
        values = self.known_values(like)
        if isinstance(like, ColumnOf) and values is not None and value.text not in values:
            self._fail(f"{value.text[:50]!r} is not a value of `{like.name}`", nearest(value.text, values))
        return string_literal(value.text)

    def _date(self, value: Value) -> str:
        try:
            if not DATE.fullmatch(value.text):
                raise ValueError
            date.fromisoformat(value.text)
        except ValueError:
            self._fail(f"{value.text[:50]!r} is not a date", "Write it as '2024-12-31'.")
        return f"'{value.text}'"

    def _time(self, text: str) -> str:
        found = TIME.fullmatch(text.strip())
        if found is None:
            self._fail(f"{text[:50]!r} is not a time", "Write it as '23:59:59'.")
        return f"{found[1]}:{found[2]}:{found[3] or '00'}"

    def truth(self, value: Expression) -> str:
        """Return a literal that is compared with a column of truth values."""
        text = value.text.upper() if isinstance(value, Value) else ""
        if text not in TRUE | FALSE:
            self._fail("a column of truth values is compared with TRUE or FALSE")
        return "TRUE" if text in TRUE else "FALSE"
