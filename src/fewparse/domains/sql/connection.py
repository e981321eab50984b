"""The protocol of a read-only connection to a database, and the table of its implementations."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from fewparse.domains.sql.database import Database, ForeignKey, Table
from fewparse.domains.sql.rows import QueryLimits, Rows
from fewparse.domains.sql.urls import DatabaseUrl
from fewparse.errors import DatabaseError, SourceError
from fewparse.files import opened
from fewparse.registry import Registry


@dataclass(frozen=True)
class Reflected:
    """The schema of a database without values of columns, except those of enumerations.

    `notes` say what was left out, and why; `other_schemas` are schemas that were not asked for and have tables.
    """

    database: Database
    notes: tuple[str, ...] = ()
    other_schemas: tuple[str, ...] = ()


class SchemaTable(NamedTuple):
    """A table, and the schema that it belongs to."""

    schema: str
    table: Table


class SchemaKey(NamedTuple):
    """A foreign key, and the schemas of its two tables."""

    schema: str
    other_schema: str
    key: ForeignKey


class Connection(ABC):
    """A connection that can only read.

    The constructor of a subclass takes the URL of the database and the schemas whose tables may be named without
    their schema; none means the default schema. It raises `DatabaseError` if the database cannot be opened.
    """

    def __init__(self, url: DatabaseUrl, schemas: Sequence[str] = ()) -> None:
        self.url = url
        self.schemas = tuple(schemas)

    @abstractmethod
    def query(self, sql: str, limits: QueryLimits) -> Rows:
        """Return the answer of a query from outside.

        Raises `ExecutionError` if it is no query, calls a function that is not known to be safe, fails or takes
        too long, and `DatabaseError` if the database cannot be reached.
        """

    @abstractmethod
    def query_trusted(self, sql: str, limits: QueryLimits) -> Rows:
        """Return the answer of a query that fewparse itself has written, which is not checked."""

    @abstractmethod
    def reflect(self) -> Reflected:
        """Return the tables, columns and keys of the database."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    def quote(self, name: str) -> str:
        """Return the name of a table or column as an identifier of SQL."""
        return quote_name(name)


def quote_name(name: str) -> str:
    """Return a name as a quoted identifier of standard SQL."""
    return '"' + name.replace('"', '""') + '"'


CONNECTIONS: Registry[type[Connection]] = Registry(
    "database",
    {
        "sqlite": "fewparse.domains.sql.sqlite:SqliteConnection",
        "duckdb": "fewparse.domains.sql.duckdb:DuckdbConnection",
        "postgresql": "fewparse.domains.sql.postgresql:PostgresqlConnection",
    },
)
"""The kinds of databases on which queries are executed: those that can be made read-only."""


def merge_schemas(
    dialect: str,
    schemas: Sequence[str],
    tables: Sequence[SchemaTable],
    foreign_keys: Sequence[SchemaKey],
) -> Reflected:
    """Return one database of the tables of several schemas, in the order of the search path.

    Tables are named without their schema. Of several tables with the same name, the first is kept: it is the one
    that the database finds.
    """
    chosen: dict[str, SchemaTable] = {}
    notes = []
    for schema in schemas:
        for found in (found for found in tables if found.schema == schema):
            if found.table.name in chosen:
                first = chosen[found.table.name].schema
                notes.append(f"the table {found.table.name} of {schema} is left out: {first} has one of that name")
            else:
                chosen[found.table.name] = found
    own = {found.table.name: found.schema for found in chosen.values()}
    keys = tuple(
        key
        for schema, other_schema, key in foreign_keys
        if own.get(key.table) == schema
        and own.get(key.other_table) == other_schema
        and len(key.columns) == len(key.other_columns)
    )
    others = tuple(sorted({found.schema for found in tables} - set(schemas)))
    return Reflected(Database(dialect, tuple(f.table for f in chosen.values()), keys), tuple(notes), others)


def check_file(path: Path) -> None:
    """Raise `DatabaseError` if there is no regular file that can be read."""
    try:
        with opened(path, SourceError):
            pass
    except SourceError as error:
        raise DatabaseError(f"the database {error.message}", "Check the path in its URL.") from None


def open_database(url: DatabaseUrl, schemas: Sequence[str] = ()) -> Connection:
    """Open a database to read it; raise `DatabaseError` if that is impossible.

    Any database that SQLAlchemy has a driver for can be reflected; queries run on those of `CONNECTIONS`.
    """
    if url.kind in CONNECTIONS:
        return CONNECTIONS[url.kind](url, schemas)
    from fewparse.domains.sql.inspection import ReflectedConnection

    return ReflectedConnection(url, schemas)
