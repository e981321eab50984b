"""Put the tables of a FROM clause in order, each joined with one before it by conditions in ON."""

from typing import NoReturn

from fewparse.domains.sql.database import Database
from fewparse.domains.sql.names import Text
from fewparse.domains.sql.query import ColumnOf, Comparison, Condition, Join, Select, Source
from fewparse.domains.sql.types import JOIN_KINDS, kind_of


def ordered_joins(select: Select, database: Database, text: Text) -> tuple[list[Join], list[Condition]]:
    """Return the joins of a query in canonical order, and its other conditions.

    Inner joins start with the first table of the schema; then follows always the first table that is joined with
    one before it. With a LEFT JOIN, the order is that of the query.
    """
    if len(select.joins) == 1:
        return select.joins, select.where
    links = [c for c in select.where if is_link(c, select.sources, database)]
    rest = [c for c in select.where if c not in links]
    if any(join.outer for join in select.joins):
        found = [
            placed(join, select.sources[:index], links, database, text) for index, join in enumerate(select.joins)
        ]
    else:
        found = in_schema_order(select.sources, links, database, text)
    used = [condition for join in found if not join.outer for condition in join.conditions]
    return found, [c for c in links if c not in used and reversed_link(c) not in used] + rest


def is_link(condition: Condition, sources: list[Source], database: Database) -> bool:
    """Return whether a condition equates columns of two sources of a query, by which they can be joined."""
    if not isinstance(condition, Comparison) or condition.operator != "=":
        return False
    left, right = condition.left, condition.right
    if not isinstance(left, ColumnOf) or not isinstance(right, ColumnOf):
        return False
    if left.source is right.source or left.source not in sources or right.source not in sources:
        return False
    return can_join(left, right, database)


def can_join(left: ColumnOf, right: ColumnOf, database: Database) -> bool:
    """Return whether two columns can join tables: both of one type, or related by a foreign key."""
    kinds = {kind_of(column.source.columns[column.name]) for column in (left, right)}
    if len(kinds) == 1 and kinds <= set(JOIN_KINDS):
        return True
    ends = {(left.source.table, left.name), (right.source.table, right.name)}
    for key in database.foreign_keys:
        for own, other in zip(key.columns, key.other_columns, strict=True):
            if ends == {(key.table, own), (key.other_table, other)}:
                return True
    return False


def reversed_link(condition: Condition) -> Condition:
    """Return an equation with its sides exchanged."""
    assert isinstance(condition, Comparison)
    return Comparison("=", condition.right, condition.left)


def oriented(condition: Condition, source: Source) -> Condition:
    """Return an equation with the column of a source on the right."""
    assert isinstance(condition, Comparison)
    assert isinstance(condition.right, ColumnOf)
    return condition if condition.right.source is source else reversed_link(condition)


def between(condition: Condition, source: Source, earlier: list[Source]) -> bool:
    """Return whether an equation links a source with an earlier one."""
    assert isinstance(condition, Comparison)
    assert isinstance(condition.left, ColumnOf)
    assert isinstance(condition.right, ColumnOf)
    sides = condition.left.source, condition.right.source
    return source in sides and any(side in earlier for side in sides)


def placed(join: Join, earlier: list[Source], links: list[Condition], database: Database, text: Text) -> Join:
    """Return a join with its conditions, where a LEFT JOIN keeps those of the query."""
    if not earlier:
        return Join(join.source)
    if join.outer:
        for condition in join.conditions:
            if not is_link(condition, [*earlier, join.source], database) or not between(
                condition, join.source, earlier
            ):
                with text.about(condition):
                    text.fail(
                        "the condition of LEFT JOIN must equate columns of both tables, of the same type",
                        hint="Other conditions belong in WHERE, or the query is outside the language.",
                    )
        conditions = join.conditions
    else:
        conditions = [condition for condition in links if between(condition, join.source, earlier)]
    if not conditions:
        not_joined([*earlier, join.source], text)
    return Join(join.source, [oriented(condition, join.source) for condition in conditions], join.outer)


def in_schema_order(sources: list[Source], links: list[Condition], database: Database, text: Text) -> list[Join]:
    """Return inner joins in canonical order."""
    order = {table.name: index for index, table in enumerate(database.tables)}
    waiting = sorted(sources, key=lambda source: order[source.table])
    found = [Join(waiting.pop(0))]
    while waiting:
        earlier = [join.source for join in found]
        for source in waiting:
            conditions = [oriented(c, source) for c in links if between(c, source, earlier)]
            if conditions:
                found.append(Join(source, conditions))
                waiting.remove(source)
                break
        else:
            not_joined(sources, text)
    return found


def not_joined(sources: list[Source], text: Text) -> NoReturn:
    """Raise `SqlError` for tables without a condition that joins them."""
    tables = ", ".join(source.table for source in sources)
    text.fail(
        f"the tables {tables} are not joined by equal columns of the same type",
        hint="Join them with ON a.x = b.y.",
    )
