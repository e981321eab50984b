"""Reflect a database: its tables, columns and keys, and the values of columns that have few."""

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from fewparse.domains.sql.connection import Connection, Reflected
from fewparse.domains.sql.database import Column, Database, Table
from fewparse.domains.sql.rows import QueryLimits, QueryTimeout
from fewparse.errors import DatabaseError, ExecutionError, UnknownName, listed

SECRET = re.compile(
    r"passw|pwd|passphrase|secret|token|salt|hash|api_?key|private_?key|credential|ssn|social_?security|iban|"
    r"card_?(number|no)|credit_?card|cvv|(^|_)pin($|_)",
    re.IGNORECASE,
)
"""Names of columns whose values are never read."""
NEARLY_ALL = 0.9
"""The share of rows that have a value of their own in a column of names."""
Values = tuple[str, ...]
ColumnKey = tuple[str, str]
"""The names of a table and of one of its columns."""
WITH_VALUES = ("text",)
"""The types of columns whose values are listed: those that people name rather than compute."""


@dataclass(frozen=True)
class ValueLimits:
    """When the values of a column are few: per column, in all, and how long they may take to read.

    `max_names` is the limit for a column in which nearly every row has a value of its own, such as the names of
    customers: more will be added.
    """

    max_values: int = 500
    max_names: int = 100
    max_value_chars: int = 60
    max_total_chars: int = 60_000
    max_seconds: float = 1.0
    max_total_seconds: float = 15.0


def reflect(connection: Connection, tables: Sequence[str] = (), limits: ValueLimits | None = None) -> Reflected:
    """Return the schema of a database with the values of columns that have few.

    `tables` are names of tables, with wildcards, if not all are wanted. Raises `DatabaseError` if there are no
    tables, or the database cannot be read.
    """
    reflected = connection.reflect()
    if not reflected.database.tables:
        raise no_tables(connection, reflected)
    database = select_tables(reflected.database, tables)
    reader = ValueReader(connection, limits or ValueLimits())
    found = {
        (table.name, column): values
        for table in database.tables
        for column, values in reader.values(table).items()
    }
    kept = within_total(share_values(found, reader.limits.max_values), reader.limits.max_total_chars)
    filled = tuple(
        replace(table, columns=tuple(with_values(c, kept.get((table.name, c.name))) for c in table.columns))
        for table in database.tables
    )
    notes = (*reflected.notes, *reader.notes)
    return replace(reflected, database=replace(database, tables=filled), notes=notes)


def no_tables(connection: Connection, reflected: Reflected) -> DatabaseError:
    """Return the error for a database without tables."""
    if reflected.other_schemas:
        hint = f"Other schemas have some: --schema {' or --schema '.join(reflected.other_schemas[:5])}"
        return DatabaseError(f"the schema of {connection.url.text} has no tables", hint)
    if reflected.notes:
        return DatabaseError(f"{connection.url.text} has no tables that can be read: {reflected.notes[0]}")
    return DatabaseError(f"the database {connection.url.text} has no tables", "Is it the right one?")


def select_tables(database: Database, patterns: Sequence[str]) -> Database:
    """Return a database with some of its tables; raise `UnknownName` for a pattern that fits none."""
    if not patterns:
        return database
    for pattern in patterns:
        if not any(fnmatchcase(table.name, pattern) for table in database.tables):
            raise UnknownName("table", pattern, [table.name for table in database.tables])
    tables = tuple(t for t in database.tables if any(fnmatchcase(t.name, pattern) for pattern in patterns))
    names = {table.name for table in tables}
    keys = tuple(key for key in database.foreign_keys if key.table in names and key.other_table in names)
    return replace(database, tables=tables, foreign_keys=keys)


class ValueReader:
    """Reads the values of columns that have few, within a time for all of them; `notes` say what was left out."""

    def __init__(self, connection: Connection, limits: ValueLimits) -> None:
        self.limits = limits
        self._connection = connection
        self._deadline = time.monotonic() + limits.max_total_seconds
        self._slow: list[str] = []

    @property
    def notes(self) -> tuple[str, ...]:
        """What was not read because it took too long."""
        if not self._slow:
            return ()
        return (
            f"the values of these columns are not listed, because reading took too long: {listed(self._slow)}",
        )

    def values(self, table: Table) -> dict[str, Values]:
        """Return the values of the columns of a table that have few."""
        found = {}
        for column in table.columns:
            if column.type in WITH_VALUES and column.values is None and not SECRET.search(column.name):
                values = self._read(table, column)
                if values is not None:
                    found[column.name] = values
        if any(len(values) > self.limits.max_names for values in found.values()):
            rows = self._count(table)
            return {name: values for name, values in found.items() if not self._are_names(values, rows)}
        return found

    def _are_names(self, values: Values, rows: int) -> bool:
        return len(values) > self.limits.max_names and len(values) > NEARLY_ALL * rows

    def _count(self, table: Table) -> int:
        """Return the number of rows of a table; 0 if counting takes too long, because there are many then."""
        sql = f"SELECT COUNT(*) FROM {self._connection.quote(table.name)}"
        try:
            return int(
                self._connection.query_trusted(sql, QueryLimits(1, self.limits.max_seconds, 1000)).rows[0][0]
            )
        except ExecutionError:
            return 0

    def _read(self, table: Table, column: Column) -> Values | None:
        """Return the values of a column, sorted; None if they are many, long or slow to read."""
        limits = self.limits
        seconds = min(limits.max_seconds, self._deadline - time.monotonic())
        if seconds <= 0:
            self._slow.append(f"{table.name}.{column.name}")
            return None
        name = self._connection.quote(column.name)
        sql = f"SELECT DISTINCT {name} FROM {self._connection.quote(table.name)} WHERE {name} IS NOT NULL"
        max_bytes = 8 * limits.max_values * limits.max_value_chars
        try:
            rows = self._connection.query_trusted(sql, QueryLimits(limits.max_values, seconds, max_bytes))
        except QueryTimeout:
            self._slow.append(f"{table.name}.{column.name}")
            return None
        except ExecutionError:  # such as a view that fails
            return None
        values = [value for (value,) in rows.rows]
        if rows.truncated or not values or not all(is_listable(value, limits) for value in values):
            return None
        return tuple(sorted(values))


def is_listable(value: object, limits: ValueLimits) -> bool:
    """Return whether a value is a short text on one line."""
    return isinstance(value, str) and 0 < len(value) <= limits.max_value_chars and value.isprintable()


def share_values(found: dict[ColumnKey, Values], max_values: int) -> dict[ColumnKey, Values]:
    """Return the values of columns, with those of related columns: a state without a river is still a state.

    Columns of the same name have all values of each other. A column that has at least half of another's values,
    and no others, gets all of them.
    """
    by_name: dict[str, set[str]] = {}
    for (_, column), values in found.items():
        by_name.setdefault(column.casefold(), set()).update(values)
    shared = {
        key: set(values) if len(by_name[key[1].casefold()]) > max_values else by_name[key[1].casefold()]
        for key, values in found.items()
    }
    sets = sorted(
        {frozenset(values) for values in shared.values()}, key=lambda values: (len(values), sorted(values))
    )
    larger = {
        values: next(
            (other for other in reversed(sets) if values < other and 2 * len(values) >= len(other)), values
        )
        for values in sets
    }
    return {key: tuple(sorted(larger[frozenset(values)])) for key, values in shared.items()}


def within_total(found: dict[ColumnKey, Values], max_chars: int) -> dict[ColumnKey, Values]:
    """Return as many different lists of values as have `max_chars` characters in all, the shortest first."""
    lists = set[Values]()
    for values in sorted(set(found.values()), key=lambda values: (size(values), values)):
        max_chars -= size(values)
        if max_chars < 0:
            break
        lists.add(values)
    return {column: values for column, values in found.items() if values in lists}


def size(values: Iterable[str]) -> int:
    """Return the number of characters of values."""
    return sum(len(value) for value in values)


def with_values(column: Column, values: Values | None) -> Column:
    """Return a column with the values that were read, if any."""
    return column if values is None else replace(column, values=values)
