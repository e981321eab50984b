"""The schema of a database: plain values, stored as JSON in a domain folder."""

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

from pydantic import TypeAdapter

ColumnType = Literal["integer", "number", "text", "date", "time", "datetime", "boolean", "other"]
Value = str | int | float | bool
"""A value of a column as JSON; dates and times are ISO 8601 strings."""


@dataclass(frozen=True)
class Column:
    """A column; `values` are all its distinct values if they are few, None otherwise."""

    name: str
    type: ColumnType
    nullable: bool = True
    comment: str = ""
    values: tuple[Value, ...] | None = None


@dataclass(frozen=True)
class Table:
    """A table or a view; `primary_key` are names of its columns."""

    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    comment: str = ""

    @cached_property
    def by_name(self) -> dict[str, Column]:
        """The columns by name."""
        return {column.name: column for column in self.columns}


@dataclass(frozen=True)
class ForeignKey:
    """Columns of a table that refer to columns of another table, or of the same one."""

    table: str
    columns: tuple[str, ...]
    other_table: str
    other_columns: tuple[str, ...]


@dataclass(frozen=True)
class Database:
    """The schema of a database. `dialect` is sqlglot's name of its SQL dialect: sqlite, duckdb, postgres."""

    dialect: str
    tables: tuple[Table, ...]
    foreign_keys: tuple[ForeignKey, ...] = ()

    @cached_property
    def by_name(self) -> dict[str, Table]:
        """The tables by name."""
        return {table.name: table for table in self.tables}

    def as_dict(self) -> dict[str, Any]:
        """Return the schema as a JSON object."""
        return asdict(self)

    @staticmethod
    def from_dict(value: object) -> "Database":
        """Return the schema of a JSON object; raises pydantic's `ValidationError`."""
        return _READER.validate_python(value)


_READER = TypeAdapter(Database)
