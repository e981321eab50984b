"""Bring queries into the forms of the language, with the same answers.

Derived tables are merged into the queries around them where possible, joins are put in order with their conditions
in ON, and the columns of the select list and of GROUP BY are made to agree.
"""

from dataclasses import replace

from fewparse.domains.sql.database import Database
from fewparse.domains.sql.joins import ordered_joins
from fewparse.domains.sql.names import Text
from fewparse.domains.sql.query import (
    Aggregate,
    Between,
    Both,
    Calculation,
    ColumnOf,
    Combination,
    Comparison,
    Condition,
    Expression,
    Query,
    Select,
    Source,
    Value,
    has_aggregate,
    values_of,
)
from fewparse.domains.sql.rewrite import in_condition, in_expression, in_order, with_queries


def simplified(query: Query, database: Database, text: Text) -> Query:
    """Return a query in the forms of the language; raises `SqlError` for one that has none."""
    return Simplifier(database, text).query(query)


class Simplifier:
    """Simplifies queries, inner ones first."""

    def __init__(self, database: Database, text: Text) -> None:
        self._database = database
        self._text = text
        self._fail = text.fail

    def query(self, query: Query) -> Query:
        """Return a simplified query."""
        if isinstance(query, Combination):
            simplified = [self.query(operand) for operand in query.operands]
            operands = [operand for operand in simplified if isinstance(operand, Select)]
            if len(operands) < len(simplified):
                self._fail("a derived table within a set operation is not supported")
            return replace(query, operands=operands)
        return self._select(with_queries(query, self.query))

    def _select(self, select: Select) -> Query:
        with self._text.about(select.sources[0]):
            return self._simplified(select)

    def _simplified(self, select: Select) -> Query:
        select.where = [plain_between(condition) for condition in select.where if not is_true(condition)]
        for join in select.joins:
            if join.source.query is not None:
                inner = self.query(join.source.query)
                join.source.query = inner
                merged = self._merged(select, join.source, inner)
                return merged if merged is not None else select
        select = replace(select, joins=list(select.joins))
        select.joins, select.where = ordered_joins(select, self._database, self._text)
        if select.is_aggregated and not select.groups and select.offset:
            self._fail("OFFSET after aggregates has no rows")
        return self._grouped(without_redundancy(select))

    def _merged(self, outer: Select, source: Source, inner: Query) -> Query | None:
        """Return a query with a derived table merged into it; None if the derived table remains."""
        alone = len(outer.joins) == 1
        if isinstance(inner, Combination):
            if not alone:
                self._fail("a set operation in FROM cannot be joined")
            return None
        values = dict(zip(inner.names, inner.items, strict=True))

        def change(expression: Expression) -> Expression:
            if isinstance(expression, ColumnOf) and expression.source is source:
                return values[expression.name]
            return expression

        limited = inner.limit is not None or inner.distinct
        if not limited and not inner.groups and not inner.is_aggregated:
            return self._select(self._flattened(outer, source, inner, change))
        if not alone:
            self._fail("a derived table with groups, DISTINCT or LIMIT cannot be joined")
        plain = not (outer.is_aggregated or outer.groups or outer.distinct)
        if limited:
            if plain and not outer.where and not outer.order and outer.limit is None and not inner.distinct:
                items = [in_expression(item, change) for item in outer.items]
                return replace(inner, items=items, names=outer.names)
            same = outer.items == [ColumnOf(source, name) for name in inner.names]
            if plain and not outer.where and same and inner.limit is None:
                order = in_order(outer.order, change)
                return replace(inner, order=order, limit=outer.limit, offset=outer.offset)
            if outer.where:
                self._fail("conditions on a derived table with DISTINCT or LIMIT are not supported")
            return None
        for condition in outer.where:
            changed = in_condition(condition, change)
            (inner.having if any(map(has_aggregate, values_of(changed))) else inner.where).append(changed)
        outer.where = []
        if not plain:
            source.query = self._grouped(inner) if isinstance(inner, Select) else inner
            return None
        items = [in_expression(item, change) for item in outer.items]
        order = in_order(outer.order, change)
        limit, offset = outer.limit, outer.offset
        return self._grouped(
            replace(inner, items=items, names=outer.names, order=order, limit=limit, offset=offset)
        )

    def _flattened(self, outer: Select, source: Source, inner: Select, change: object) -> Select:
        """Return a query over the tables of a derived table without groups or limits."""
        joins = []
        for join in outer.joins:
            if join.source is not source:
                joins.append(replace(join, conditions=[in_condition(c, change) for c in join.conditions]))  # type: ignore[arg-type]
                continue
            if join.outer and (len(inner.joins) > 1 or inner.where):
                self._fail("LEFT JOIN with a derived table is not supported")
            first, *rest = inner.joins
            conditions = [in_condition(c, change) for c in join.conditions]  # type: ignore[arg-type]
            joins += [replace(first, conditions=conditions, outer=join.outer), *rest]
        links = [c for join in inner.joins if not join.outer for c in join.conditions]
        return replace(
            outer,
            joins=joins,
            items=[in_expression(item, change) for item in outer.items],  # type: ignore[arg-type]
            where=[in_condition(c, change) for c in outer.where] + links + inner.where,  # type: ignore[arg-type]
            groups=[in_expression(group, change) for group in outer.groups],  # type: ignore[arg-type]
            having=[in_condition(c, change) for c in outer.having],  # type: ignore[arg-type]
            order=in_order(outer.order, change),  # type: ignore[arg-type]
        )

    def _grouped(self, select: Select) -> Select:
        """Make the items and the groups of a query agree."""
        if not select.groups:
            if select.is_aggregated and any(not_aggregated(item) for item in select.items):
                self._fail("a column beside an aggregate needs GROUP BY")
            return select
        groups = list(dict.fromkeys(select.groups))
        if not all(isinstance(group, ColumnOf) for group in groups):
            self._fail("GROUP BY takes columns only")
        for item in (*select.items, *(key.value for key in select.order)):
            with self._text.about(item):
                if isinstance(item, ColumnOf) and item not in groups:
                    groups = self._with_group(select, groups, item)
                elif not isinstance(item, ColumnOf) and not_aggregated(item):
                    self._fail("an expression that is neither grouped nor an aggregate is not supported")
        kept: list[Condition] = []
        for condition in select.having:
            if any(map(has_aggregate, values_of(condition))):
                kept.append(condition)
            else:
                select.where.append(condition)
        aggregates = [*kept, *(i for i in (*select.items, *(k.value for k in select.order)) if has_aggregate(i))]
        if not aggregates and set(groups) == set(select.items):
            return replace(select, groups=[], having=[], distinct=True)
        distinct = select.distinct and not set(groups) <= set(select.items)
        return replace(select, groups=groups, having=kept, distinct=distinct)

    def _with_group(self, select: Select, groups: list[Expression], item: ColumnOf) -> list[Expression]:
        """Return the groups with a column of the select list, if that changes no group."""
        equal = equal_columns(select, item)
        for index, group in enumerate(groups):
            if group in equal and not any(group == other for other in select.items):
                return [*groups[:index], item, *groups[index + 1 :]]
        if any(group in equal for group in groups):
            return [*groups, item]
        table = self._database.by_name[item.source.table]
        key = [ColumnOf(item.source, name) for name in table.primary_key]
        if key and all(equal_columns(select, column) & set(groups) for column in key):
            return [*groups, item]
        self._fail(
            f"the column `{item.name}` is neither in GROUP BY nor in an aggregate",
            hint="Add it to GROUP BY.",
        )


def without_redundancy(select: Select) -> Select:
    """Drop what has no effect on one row of aggregates."""
    if not select.is_aggregated:
        return select
    return replace(select, distinct=False, order=[], limit=None)


def not_aggregated(expression: Expression) -> bool:
    """Return whether an expression contains a column outside aggregates."""
    match expression:
        case Calculation(left=left, right=right):
            return not_aggregated(left) or not_aggregated(right)
        case Aggregate() | Value():
            return False
    return True


def equal_columns(select: Select, column: ColumnOf) -> set[ColumnOf]:
    """Return the columns that inner joins make equal to a column."""
    pairs = [
        (condition.left, condition.right)
        for join in select.joins
        if not join.outer
        for condition in join.conditions
        if isinstance(condition, Comparison)
    ]
    found, growing = {column}, True
    while growing:
        before = len(found)
        for pair in pairs:
            if set(pair) & found:
                found |= {side for side in pair if isinstance(side, ColumnOf)}
        growing = len(found) > before
    return found


def is_true(condition: Condition) -> bool:
    """Return whether a condition equates a literal with itself, such as 1 = 1."""
    return (
        isinstance(condition, Comparison)
        and condition.operator == "="
        and isinstance(condition.left, Value)
        and condition.left == condition.right
    )


def plain_between(condition: Condition) -> Condition:
    """Replace BETWEEN with bounds that are not literals by two comparisons."""
    if isinstance(condition, Both):
        return replace(condition, parts=tuple(plain_between(part) for part in condition.parts))
    if not isinstance(condition, Between) or all(isinstance(b, Value) for b in (condition.low, condition.high)):
        return condition
    value, operators = condition.value, ("<", ">") if condition.negated else (">=", "<=")
    bounds = zip(operators, (condition.low, condition.high), strict=True)
    parts = tuple(Comparison(operator, value, bound) for operator, bound in bounds)
    return Both("OR" if condition.negated else "AND", parts)
