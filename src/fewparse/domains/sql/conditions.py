"""Write conditions of WHERE, HAVING and ON."""

from typing import Protocol

from fewparse.domains.sql.identifiers import string_literal
from fewparse.domains.sql.joins import is_link
from fewparse.domains.sql.names import Text
from fewparse.domains.sql.query import (
    Aggregate,
    Between,
    Both,
    Calculation,
    ColumnOf,
    Comparison,
    Condition,
    Exists,
    Expression,
    In,
    IsNull,
    Like,
    Query,
    Select,
    SubQuery,
    Value,
    has_aggregate,
)
from fewparse.domains.sql.scopes import Scopes
from fewparse.domains.sql.types import is_writable
from fewparse.domains.sql.values import ExpressionWriter, Fail


class SubQueries(Protocol):
    """Writes sub-queries."""

    def scalar(self, query: Query) -> str:
        """Return a sub-query with one value."""
        ...

    def listed(self, query: Query) -> str:
        """Return a sub-query with a list of values."""
        ...

    def related(self, query: Query, exists: bool = False) -> str:
        """Return a sub-query that refers to the query around it."""
        ...


class ConditionWriter:
    """Writes conditions of the current query."""

    def __init__(self, values: ExpressionWriter, queries: SubQueries, fail: Fail, text: Text) -> None:
        self._text = text
        self._values = values
        self._queries = queries
        self._fail = fail

    def link(self, condition: Condition) -> str:
        """Return a condition of ON."""
        assert isinstance(condition, Comparison)
        return f"{self._values.text(condition.left)} = {self._values.text(condition.right)}"

    def where(self, select: Select) -> str:
        """Return the WHERE clause."""
        if not select.where:
            return ""
        return " WHERE " + self._all(select.where, self._predicate)

    def having(self, select: Select) -> str:
        """Return the HAVING clause."""
        if not select.having:
            return ""
        for condition in select.having:
            if isinstance(condition, Both) and (
                len(select.having) > 1 or any(isinstance(p, Both) for p in condition.parts)
            ):
                self._fail("AND and OR together are not supported in HAVING")
        return " HAVING " + self._all(select.having, self._having)

    def _all(self, conditions: list[Condition], write: object) -> str:
        """Return a conjunction, with disjunctions in brackets unless there is nothing else."""
        if len(conditions) == 1:
            return write(conditions[0])  # type: ignore[operator, no-any-return]
        return " AND ".join(bracketed(c, write(c)) for c in conditions)  # type: ignore[operator]

    def _having(self, condition: Condition) -> str:
        with self._text.about(condition):
            return self._written_having(condition)

    def _written_having(self, condition: Condition) -> str:
        if isinstance(condition, Both):
            return f" {condition.operator} ".join(self._having(part) for part in condition.parts)
        left = getattr(condition, "value", None) or getattr(condition, "left", None)
        if not has_aggregate(left) if left is not None else True:
            if isinstance(condition, Comparison) and has_aggregate(condition.right):
                self._fail("write the aggregate on the left side of this condition of HAVING")
            self._fail("HAVING takes conditions on aggregates; others belong in WHERE")
        if isinstance(condition, Like | IsNull | Exists):
            self._fail("LIKE, IS NULL and EXISTS are not supported in HAVING")
        return self._predicate(condition)

    def _predicate(self, condition: Condition) -> str:
        with self._text.about(condition):
            return self._written(condition)

    def _written(self, condition: Condition) -> str:
        match condition:
            case Both(operator=operator, parts=parts):
                return f" {operator} ".join(bracketed(part, self._predicate(part)) for part in parts)
            case Comparison():
                return self._comparison(condition)
            case Between(value=value, low=low, high=high, negated=negated):
                self._check_free(value, "BETWEEN")
                bounds = " AND ".join(self._values.literal(bound, value) for bound in (low, high))
                return f"{self._value(value)} {'NOT ' if negated else ''}BETWEEN {bounds}"
            case In(value=value, choices=choices, negated=negated):
                return f"{self._value(value)} {'NOT ' if negated else ''}IN ({self._choices(value, choices)})"
            case Like():
                return self._like(condition)
            case IsNull(value=value, negated=negated):
                if not isinstance(value, ColumnOf):
                    self._fail("IS NULL takes a column")
                return f"{self._values.text(value)} IS {'NOT ' if negated else ''}NULL"
            case Exists(query=query, negated=negated):
                return f"{'NOT ' if negated else ''}EXISTS {self._queries.related(query, True)}"

    def _value(self, value: Expression) -> str:
        """Return the left side of a condition: an expression, or a sub-query that refers to the current query."""
        return self._queries.related(value.query) if isinstance(value, SubQuery) else self._values.text(value)

    def _check_free(self, value: Expression, what: str) -> None:
        """Columns with known values are compared with = and IN only."""
        if self._values.kind(value) in ("coded", "bool", "other") or self._values.known_values(value) is not None:
            self._fail(f"{what} is not supported for a column whose values are known")

    def _choices(self, value: Expression, choices: tuple[Expression, ...] | Query) -> str:
        if isinstance(choices, tuple):
            if self._values.kind(value) == "bool":
                self._fail("IN is not supported for truth values")
            return ", ".join(self._values.literal(choice, value) for choice in choices)
        written = self._queries.listed(choices)
        self._check_query_type(value, choices)
        return written

    def _check_query_type(self, value: Expression, query: Query) -> None:
        """Check that a value is compared with a sub-query of its type; those over derived tables are numbers."""
        first = query if isinstance(query, Select) else query.operands[0]
        if first.sources[0].query is None:
            self._check_types(value, first.items[0])
        elif self._values.type(value) != "num":
            self._fail("values of different types are compared")

    def _like(self, condition: Like) -> str:
        value, pattern = condition.value, condition.pattern
        if not isinstance(value, ColumnOf) or self._values.kind(value) != "text":
            self._fail("LIKE takes a column of text")
        if not pattern or "\\" in pattern or not is_writable(pattern):
            self._fail("LIKE takes a pattern without backslashes and control characters")
        return f"{self._values.text(value)} {'NOT ' if condition.negated else ''}LIKE {string_literal(pattern)}"

    def _check_types(self, one: Expression, other: Expression) -> None:
        types = self._values.type(one), self._values.type(other)
        if None in types or types[0] != types[1]:
            kinds = self._values.kind(one), self._values.kind(other)
            self._fail(f"values of different types are compared: {kinds[0]} and {kinds[1]}")

    def _comparison(self, condition: Comparison) -> str:
        operator, left, right = condition.operator, condition.left, condition.right
        if isinstance(right, Value):
            return self._literal_comparison(operator, left, right)
        if isinstance(left, SubQuery | Value):
            self._fail("this comparison of sub-queries is not supported")
        if isinstance(right, SubQuery):
            if isinstance(right.query, Select) and right.query.outer:
                if has_aggregate(left):
                    self._fail("a sub-query in HAVING cannot refer to the query around it")
                written = self._queries.related(right.query)
            else:
                written = self._queries.scalar(right.query)
            self._check_query_type(left, right.query)
            return f"{self._values.text(left)} {operator} {written}"
        if has_aggregate(left) != has_aggregate(right):
            self._fail("an aggregate and a column are compared")
        self._check_types(left, right)
        return f"{self._values.text(left)} {operator} {self._values.text(right)}"

    def _literal_comparison(self, operator: str, left: Expression, right: Value) -> str:
        if isinstance(left, Value):
            self._fail("a condition without a column is not supported")
        kind = self._values.kind(left)
        if kind == "bool":
            if operator not in ("=", "<>"):
                self._fail("truth values are compared with = only")
            truth = self._values.truth(right)
            if operator == "<>":
                truth = "FALSE" if truth == "TRUE" else "TRUE"
            return f"{self._values.text(left)} = {truth}"
        if operator not in ("=", "<>"):
            self._check_free(left, operator)
        return f"{self._value(left)} {operator} {self._values.literal(right, left)}"

    def related(self, query: Select, scopes: Scopes) -> str:
        """Return the conditions of a sub-query that refers to the query around it: a relation, and simple ones."""
        inner = query.sources[0]
        links = [c for c in query.where if is_relation(c, inner)]
        rest = [c for c in query.where if c not in links]
        oriented = [self._relation(c, inner) for c in links]
        if not oriented:
            self._fail("a sub-query must be related to the query around it by an equation of columns")
        pairs = {(one.name, other.name) for one, other in oriented}
        outer = oriented[0][1].source
        keys = scopes.foreign_keys(outer.table, inner.table) if outer.table != inner.table else []
        key_pairs = [
            list(
                zip(
                    *((k.columns, k.other_columns) if k.table == inner.table else (k.other_columns, k.columns)),
                    strict=True,
                )
            )
            for k in keys
        ]
        if len(keys) == 1 and pairs == set(key_pairs[0]):
            ordered = key_pairs[0]
        elif len(pairs) == 1:
            ordered = list(pairs)
            one, other = oriented[0]
            kinds = {self._values.kind(one), self._values.kind(other)}
            same = outer.table == inner.table and one.name == other.name
            if not is_link(links[0], [inner, outer], scopes.database) and not same:
                self._fail(f"columns of different types are related: {' and '.join(sorted(kinds))}")
        else:
            self._fail("a sub-query is related to the query around it by more than one equation")
        conditions = [
            f"{self._values.text(ColumnOf(inner, a))} = {self._values.text(ColumnOf(outer, b))}"
            for a, b in ordered
        ]
        for condition in rest:
            if not is_simple(condition, inner):
                self._fail("this condition is not supported in a sub-query that refers to the query around it")
            conditions.append(self._predicate(condition))
        return " WHERE " + " AND ".join(conditions)

    def _relation(self, condition: Condition, inner: object) -> tuple[ColumnOf, ColumnOf]:
        """Return the inner and the outer column of a relation."""
        assert isinstance(condition, Comparison)
        left, right = condition.left, condition.right
        assert isinstance(left, ColumnOf)
        assert isinstance(right, ColumnOf)
        return (left, right) if left.source is inner else (right, left)


def is_relation(condition: Condition, inner: object) -> bool:
    """Return whether a condition equates a column of the inner query with one of an outer query."""
    if not isinstance(condition, Comparison) or condition.operator != "=":
        return False
    left, right = condition.left, condition.right
    if not isinstance(left, ColumnOf) or not isinstance(right, ColumnOf):
        return False
    return (left.source is inner) != (right.source is inner)


def is_simple(condition: Condition, inner: object) -> bool:
    """Return whether a condition starts with a column and has no other."""
    match condition:
        case Comparison(left=ColumnOf(source=source), right=right):
            plain = not isinstance(right, ColumnOf | Calculation | Aggregate)
            return source is inner and plain and not is_correlated(right)
        case (
            Between(value=ColumnOf(source=source))
            | Like(value=ColumnOf(source=source))
            | IsNull(value=ColumnOf(source=source))
        ):
            return source is inner
        case In(value=ColumnOf(source=source), choices=choices):
            return source is inner and not (isinstance(choices, Select) and choices.outer)
    return False


def is_correlated(expression: Expression) -> bool:
    """Return whether an expression is a sub-query that refers to the query around it."""
    return (
        isinstance(expression, SubQuery) and isinstance(expression.query, Select) and bool(expression.query.outer)
    )


def bracketed(condition: Condition, text: str) -> str:
    """Return a condition as part of a conjunction or disjunction."""
    return f"({text})" if isinstance(condition, Both) else text
