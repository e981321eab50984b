"""Patterns of usual questions about a schema: queries with real values, which may have no answer."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fewparse.domains.sql.connection import quote_name
from fewparse.domains.sql.database import Column, Database, ForeignKey, Table
from fewparse.domains.sql.execution import DatabaseExecutor
from fewparse.domains.sql.reflect import SECRET
from fewparse.errors import ExecutionError

ROUNDS = 12
"""How often each pattern is tried on each table."""
SAMPLE = 30
"""How many values of a column are read."""
NUMBERS = ("integer", "number")
LABELS = ("name", "title", "label", "subject", "description")
"""Parts of the names of columns by which people call a row."""


@dataclass(frozen=True)
class Link:
    """Columns by which the rows of a table refer to those of another."""

    table: Table
    other: Table
    condition: str


class Queries:
    """An iterator over queries of all patterns and tables, in random order."""

    def __init__(self, database: Database, executor: DatabaseExecutor, seed: int) -> None:
        self._database = database
        self._executor = executor
        self._random = random.Random(seed)
        self._values: dict[tuple[str, str], list[Any]] = {}

    def __iter__(self) -> Iterator[str]:
        patterns: list[Callable[[Table], str | None]] = [
            self._count,
            self._listing,
            self._counted_rows,
            self._attribute,
            self._extreme,
            self._first,
            self._aggregate,
            self._groups,
            self._comparison,
            self._different,
            self._missing,
            self._two_conditions,
            self._joined,
            self._joined_groups,
            self._joined_total,
            self._most,
            self._without,
        ]
        tables = list(self._database.tables)
        for _ in range(ROUNDS):
            self._random.shuffle(patterns)
            self._random.shuffle(tables)
            for i in range(len(patterns) * len(tables)):  # neighbours differ in pattern and table
                pattern, table = patterns[i % len(patterns)], tables[(i + i // len(patterns)) % len(tables)]
                if (sql := pattern(table)) is not None:
                    yield sql

    # Patterns: each returns a query, or None if the table has no columns for it.

    def _count(self, table: Table) -> str | None:
        return f"SELECT COUNT(*) FROM {name(table)}"

    def _listing(self, table: Table) -> str | None:
        return self._filtered(self._label(table), table, self._category(table))

    def _counted_rows(self, table: Table) -> str | None:
        return self._filtered("COUNT(*)", table, self._category(table))

    def _attribute(self, table: Table) -> str | None:
        label = self._label_column(table)
        others = [column for column in table.columns if column != label and is_shown(column)]
        return self._filtered(name(self._random.choice(others)), table, label) if others else None

    def _extreme(self, table: Table) -> str | None:
        number, function = self._number(table), self._random.choice(["MAX", "MIN"])
        if number is None:
            return None
        best = f"(SELECT {function}({name(number)}) FROM {name(table)})"
        return f"SELECT {self._label(table)} FROM {name(table)} WHERE {name(number)} = {best}"

    def _first(self, table: Table) -> str | None:
        number = self._number(table)
        if number is None:
            return None
        rest = f"ORDER BY {name(number)} DESC LIMIT {self._random.choice([1, 3, 5])}"
        return f"SELECT {self._label(table)} FROM {name(table)} {rest}"

    def _aggregate(self, table: Table) -> str | None:
        number, function = self._number(table), self._random.choice(["AVG", "SUM", "MAX", "MIN"])
        if number is None:
            return None
        selected = f"{function}({name(number)})"
        filtered = self._random.random() < 0.5 and self._filtered(selected, table, self._category(table))
        return filtered or f"SELECT {selected} FROM {name(table)}"

    def _groups(self, table: Table) -> str | None:
        category = self._category(table)
        if category is None:
            return None
        return f"SELECT {name(category)}, COUNT(*) FROM {name(table)} GROUP BY {name(category)}"

    def _comparison(self, table: Table) -> str | None:
        compared = self._pick(table, lambda c: c.type in (*NUMBERS, "date", "datetime") and not is_key(table, c))
        operator = self._random.choice([">", "<", ">=", "<="])
        return self._filtered(self._label(table), table, compared, operator)

    def _different(self, table: Table) -> str | None:
        category = self._category(table)
        return None if category is None else f"SELECT DISTINCT {name(category)} FROM {name(table)}"

    def _missing(self, table: Table) -> str | None:
        column = self._pick(table, lambda c: c.nullable and is_shown(c))
        if column is None:
            return None
        return f"SELECT {self._label(table)} FROM {name(table)} WHERE {name(column)} IS NULL"

    def _two_conditions(self, table: Table) -> str | None:
        first, number = self._listing(table), self._number(table)
        value = None if number is None else self._literal(table, number)
        return f"{first} AND {name(number)} > {value}" if first and number and value else None

    def _joined(self, table: Table) -> str | None:
        link = self._link(table)
        if link is None:
            return None
        label = self._label_column(link.other)
        value = None if label is None else self._literal(link.other, label)
        if label is None or value is None:
            return None
        condition = f"{full(link.other, label)} = {value}"
        return f"SELECT {self._full_label(table)} FROM {joined(link)} WHERE {condition}"

    def _joined_groups(self, table: Table) -> str | None:
        link = self._link(table)
        if link is None:
            return None
        label = self._full_label(link.other)
        return f"SELECT {label}, COUNT(*) FROM {joined(link)} GROUP BY {label}"

    def _joined_total(self, table: Table) -> str | None:
        link, number = self._link(table), self._number(table)
        if link is None or number is None:
            return None
        label = self._full_label(link.other)
        return f"SELECT {label}, SUM({full(table, number)}) FROM {joined(link)} GROUP BY {label}"

    def _most(self, table: Table) -> str | None:
        link = self._link(table)
        if link is None:
            return None
        label = self._full_label(link.other)
        return f"SELECT {label} FROM {joined(link)} GROUP BY {label} ORDER BY COUNT(*) DESC LIMIT 1"

    def _without(self, table: Table) -> str | None:
        link = self._link(table)
        if link is None:
            return None
        related = f"SELECT 1 FROM {name(table)} WHERE {link.condition}"
        negated = self._random.choice(["", "NOT "])
        return f"SELECT {self._full_label(link.other)} FROM {name(link.other)} WHERE {negated}EXISTS ({related})"

    # Columns and values.

    def _filtered(self, selected: str, table: Table, column: Column | None, operator: str = "=") -> str | None:
        value = None if column is None else self._literal(table, column)
        if column is None or value is None:
            return None
        return f"SELECT {selected} FROM {name(table)} WHERE {name(column)} {operator} {value}"

    def _pick(self, table: Table, fits: Callable[[Column], bool]) -> Column | None:
        columns = [column for column in table.columns if fits(column) and not SECRET.search(column.name)]
        return self._random.choice(columns) if columns else None

    def _category(self, table: Table) -> Column | None:
        label = self._label_column(table)
        return self._pick(table, lambda c: c != label and c.values is not None and len(c.values) > 1)

    def _number(self, table: Table) -> Column | None:
        return self._pick(
            table, lambda c: c.type in NUMBERS and not is_key(table, c) and not self._is_foreign(table, c)
        )

    def _is_foreign(self, table: Table, column: Column) -> bool:
        return any(key.table == table.name and column.name in key.columns for key in self._database.foreign_keys)

    def _label_column(self, table: Table) -> Column | None:
        texts = [column for column in table.columns if column.type == "text" and is_shown(column)]
        named = [column for column in texts if any(part in column.name.lower() for part in LABELS)]
        return next(iter([*named, *texts]), None)

    def _label(self, table: Table) -> str:
        label = self._label_column(table)
        return "*" if label is None else name(label)

    def _full_label(self, table: Table) -> str:
        return full(table, self._label_column(table) or table.columns[0])

    def _link(self, table: Table) -> Link | None:
        found = [link for link in self._links if link.table == table]
        return self._random.choice(found) if found else None

    @cached_property
    def _links(self) -> list[Link]:
        """Foreign keys; if the database has none, columns with the same name and the same values."""
        tables = self._database.by_name
        if self._database.foreign_keys:
            return [
                Link(tables[key.table], tables[key.other_table], equal_columns(key))
                for key in self._database.foreign_keys
                if key.table != key.other_table
            ]
        return [
            Link(table, other, f"{full(table, column)} = {full(other, column)}")
            for table in self._database.tables
            for other in self._database.tables
            for column in table.columns
            if table != other and len(column.values or ()) > 1 and column.values == values_of(other, column.name)
        ]

    def _literal(self, table: Table, column: Column) -> str | None:
        """Return one of the values of a column as a literal; None if it has none."""
        values = self._values.get((table.name, column.name))
        if values is None:
            values = self._values[table.name, column.name] = self._read(table, column)
        return literal(self._random.choice(values)) if values else None

    def _read(self, table: Table, column: Column) -> list[Any]:
        if SECRET.search(column.name):
            return []
        rows = f"SELECT {name(column)} AS value FROM {name(table)} WHERE {name(column)} IS NOT NULL LIMIT 1000"
        try:
            found = self._executor.rows(f"SELECT DISTINCT value FROM ({rows}) AS found", SAMPLE)
        except ExecutionError:
            return []
        return [value for (value,) in found.rows if literal(value) is not None]


def name(named: Table | Column) -> str:
    """Return the name of a table or a column as an identifier."""
    return quote_name(named.name)


def full(table: Table, column: Column) -> str:
    """Return a column with its table."""
    return f"{name(table)}.{name(column)}"


def joined(link: Link) -> str:
    """Return the FROM clause of two tables."""
    return f"{name(link.table)} JOIN {name(link.other)} ON {link.condition}"


def equal_columns(key: ForeignKey) -> str:
    """Return the condition of a foreign key."""
    table, other = quote_name(key.table), quote_name(key.other_table)
    pairs = zip(key.columns, key.other_columns, strict=True)
    return " AND ".join(f"{table}.{quote_name(a)} = {other}.{quote_name(b)}" for a, b in pairs)


def values_of(table: Table, column: str) -> tuple[Any, ...] | None:
    """Return the listed values of a column; None if there is no such column, or they are not listed."""
    return table.by_name[column].values if column in table.by_name else None


def is_key(table: Table, column: Column) -> bool:
    """Return whether a column is a number without a meaning of its own."""
    return column.name in table.primary_key or column.name.lower().endswith(("_id", "id"))


def is_shown(column: Column) -> bool:
    """Return whether a column may be asked for."""
    return column.type != "other" and not SECRET.search(column.name)


def literal(value: Any) -> str | None:
    """Return a value as a literal of SQL; None if it is not one that people would write."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return str(value) if abs(value) < 1e12 and len(str(value)) <= 12 else None
    if not isinstance(value, str) or not 0 < len(value) <= 60 or not value.isprintable():
        return None
    return "'" + value.replace("'", "''") + "'"
