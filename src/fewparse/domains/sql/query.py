"""Queries as trees: read from SQL, brought into the forms of the language, and written as canonical SQL."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal as OneOf

from fewparse.domains.sql.database import Column
from fewparse.domains.sql.types import Kind


@dataclass(eq=False)
class Source:
    """An occurrence of a table, or of a derived table (`query`), in a FROM clause; `alias` is its name there."""

    table: str
    alias: str
    columns: dict[str, Column] = field(default_factory=dict)
    query: "Query | None" = None


@dataclass(frozen=True)
class ColumnOf:
    """A column of a source; of a derived table, the item of the given name."""

    source: Source
    name: str


@dataclass(frozen=True)
class Value:
    """A literal: its text is written as such in SQL, except for quotation marks."""

    kind: Kind
    text: str


@dataclass(frozen=True)
class Calculation:
    """Arithmetic with two operands."""

    operator: OneOf["+", "-", "*", "/"]
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True)
class Aggregate:
    """An aggregate function; without an argument, it counts rows."""

    function: OneOf["COUNT", "SUM", "AVG", "MIN", "MAX"]
    argument: "Expression | None" = None
    distinct: bool = False


@dataclass(frozen=True)
class SubQuery:
    """A sub-query as a value."""

    query: "Query"


@dataclass(frozen=True)
class Star:
    """All columns of a source, or of all sources."""

    source: Source | None = None


Expression = ColumnOf | Value | Calculation | Aggregate | SubQuery | Star


@dataclass(frozen=True)
class Both:
    """A conjunction or disjunction of at least two conditions."""

    operator: OneOf["AND", "OR"]
    parts: tuple["Condition", ...]


@dataclass(frozen=True)
class Comparison:
    """A comparison: =, <>, <, >, <= or >=."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Between:
    """Whether a value is between two literals."""

    value: Expression
    low: Expression
    high: Expression
    negated: bool


@dataclass(frozen=True)
class In:
    """Whether a value is one of some literals, or in the answer of a query."""

    value: Expression
    choices: "tuple[Expression, ...] | Query"
    negated: bool


@dataclass(frozen=True)
class Like:
    """Whether a text matches a pattern."""

    value: Expression
    pattern: str
    negated: bool


@dataclass(frozen=True)
class IsNull:
    """Whether a value is NULL."""

    value: Expression
    negated: bool


@dataclass(frozen=True)
class Exists:
    """Whether a query has an answer."""

    query: "Query"
    negated: bool


Condition = Both | Comparison | Between | In | Like | IsNull | Exists


@dataclass(frozen=True)
class SortKey:
    """A key of ORDER BY."""

    value: Expression
    descending: bool


@dataclass
class Join:
    """A source and how it is joined: `outer` for LEFT JOIN; the first source of a query has no condition."""

    source: Source
    conditions: list[Condition] = field(default_factory=list)
    outer: bool = False


@dataclass
class Select:
    """A SELECT statement; `where` and `having` are conjunctions."""

    items: list[Expression]
    joins: list[Join]
    where: list[Condition] = field(default_factory=list)
    distinct: bool = False
    groups: list[Expression] = field(default_factory=list)
    having: list[Condition] = field(default_factory=list)
    order: list[SortKey] = field(default_factory=list)
    limit: int | None = None
    offset: int | None = None
    names: list[str] = field(default_factory=list)
    """The names of the items."""
    outer: list[ColumnOf] = field(default_factory=list)
    """The columns of queries around this one to which it refers."""

    @property
    def sources(self) -> list[Source]:
        """The sources in the order of the FROM clause."""
        return [join.source for join in self.joins]

    @property
    def is_aggregated(self) -> bool:
        """Whether the answer is one row of aggregates."""
        return not self.groups and any(has_aggregate(item) for item in self.items)


@dataclass
class Combination:
    """A set operation of at least two queries; the values of `order` are positions."""

    operator: str
    operands: list[Select]
    order: list[SortKey] = field(default_factory=list)
    limit: int | None = None
    offset: int | None = None

    @property
    def names(self) -> list[str]:
        """The names of the items."""
        return self.operands[0].names


Query = Select | Combination


def parts_of(expression: Expression) -> Iterator[Expression]:
    """Yield an expression and all expressions within it, without those of sub-queries."""
    yield expression
    if isinstance(expression, Calculation):
        yield from parts_of(expression.left)
        yield from parts_of(expression.right)
    elif isinstance(expression, Aggregate) and expression.argument is not None:
        yield from parts_of(expression.argument)


def has_aggregate(expression: Expression) -> bool:
    """Return whether an expression contains an aggregate of its own query."""
    return any(isinstance(part, Aggregate) for part in parts_of(expression))


def values_of(condition: Condition) -> Iterator[Expression]:
    """Yield the expressions that a condition compares, without those of sub-queries."""
    match condition:
        case Both(parts=parts):
            for part in parts:
                yield from values_of(part)
        case Comparison(left=left, right=right):
            yield left
            yield right
        case Between(value=value, low=low, high=high):
            yield from (value, low, high)
        case In(value=value, choices=tuple() as choices):
            yield from (value, *choices)
        case Exists():
            return
        case _:
            yield condition.value


def columns_of(condition: Condition) -> Iterator[ColumnOf]:
    """Yield the columns of a condition, without those of sub-queries."""
    for value in values_of(condition):
        for part in parts_of(value):
            if isinstance(part, ColumnOf):
                yield part


def derived_query(query: Select) -> Query | None:
    """Return the query of the derived table that a query is over."""
    return query.joins[0].source.query if len(query.joins) == 1 else None


def patterns_of(select: Select) -> tuple[str, str]:
    """Return the order of columns and aggregates in a select list, and the same without aggregates at its end."""
    pattern = "".join("a" if has_aggregate(item) else "g" for item in select.items)
    return pattern, pattern.rstrip("a") if pattern.startswith("g") else pattern


def direction(key: SortKey) -> str:
    """Return the direction of a key of ORDER BY."""
    return " DESC" if key.descending else ""


def limit_text(limit: int | None, offset: int | None) -> str:
    """Return the LIMIT clause."""
    text = "" if limit is None else f" LIMIT {limit}"
    return text if not offset else f"{text} OFFSET {offset}"


@dataclass
class Level:
    """A query that is being written: the names of its sources, and whether columns are written with them."""

    names: dict[Source, str] = field(default_factory=dict)
    qualified: bool = False
    single: bool = True
    """Whether the query is over one table."""
