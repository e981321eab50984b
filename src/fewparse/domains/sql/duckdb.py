"""DuckDB: files are opened to read only, without access to other files, the network or extensions."""

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from fewparse.domains.sql.connection import (
    Connection,
    Reflected,
    SchemaKey,
    SchemaTable,
    check_file,
    merge_schemas,
    quote_name,
)
from fewparse.domains.sql.database import Column, ColumnType, ForeignKey, Table
from fewparse.domains.sql.functions import not_a_query
from fewparse.domains.sql.rows import QueryLimits, Rows, fetch_rows, too_slow
from fewparse.domains.sql.statement import check_query
from fewparse.domains.sql.urls import DatabaseUrl, file_kind
from fewparse.errors import DatabaseError, ExecutionError
from fewparse.limits import EXECUTION_MEMORY

SETTINGS = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",  # else the name of a Python variable is a table
    "temp_directory": "",  # else large queries write files
}
TYPES: dict[str, ColumnType] = {
    "TINYINT": "integer",
    "SMALLINT": "integer",
    "INTEGER": "integer",
    "BIGINT": "integer",
    "HUGEINT": "integer",
    "UTINYINT": "integer",
    "USMALLINT": "integer",
    "UINTEGER": "integer",
    "UBIGINT": "integer",
    "UHUGEINT": "integer",
    "DECIMAL": "number",
    "FLOAT": "number",
    "DOUBLE": "number",
    "VARCHAR": "text",
    "BOOLEAN": "boolean",
    "DATE": "date",
    "TIME": "time",
    "TIMESTAMP": "datetime",
    "TIMESTAMP_S": "datetime",
    "TIMESTAMP_MS": "datetime",
    "TIMESTAMP_NS": "datetime",
    "TIMESTAMP WITH TIME ZONE": "datetime",
}
REFLECTION_LIMITS = QueryLimits(1_000_000, 30.0, 100_000_000)


class DuckdbConnection(Connection):
    """A connection to a DuckDB file."""

    def __init__(self, url: DatabaseUrl, schemas: Sequence[str] = ()) -> None:
        super().__init__(url, schemas)
        assert url.path is not None
        self._path = url.path
        self._connection = self._open()

    def _open(self) -> Any:
        try:
            import duckdb
        except ImportError:
            install = "Install it: pip install 'fewparse[duckdb]'"
            raise DatabaseError("DuckDB is not installed", install) from None
        check_file(self._path)
        if (kind := file_kind(self._path)) != "duckdb":
            hint = f"Use its URL: sqlite:///{self._path}" if kind == "sqlite" else None
            raise DatabaseError(f"{self._path} is not a DuckDB database", hint)
        settings: dict[str, Any] = {**SETTINGS, "memory_limit": f"{int(EXECUTION_MEMORY.value)}B"}
        try:
            connection = duckdb.connect(str(self._path), read_only=True, config=settings)
        except duckdb.Error as error:
            if "lock" in str(error).lower():
                hint = "End the program that has opened it to write."
                raise DatabaseError(f"{self._path} is locked by another program", hint) from None
            raise DatabaseError(f"{self._path} cannot be opened: {first_line(str(error))}") from None
        try:
            if self.schemas:
                path = ",".join(map(quote_name, self.schemas)).replace("'", "''")
                connection.execute(f"SET search_path = '{path}'")
        except duckdb.Error as error:
            connection.close()
            raise DatabaseError(f"{self._path}: {first_line(str(error))}", "Check the names of schemas.") from None
        return connection

    def query(self, sql: str, limits: QueryLimits) -> Rows:
        """Run one SELECT that calls safe functions only."""
        import duckdb

        check_query(sql, "duckdb")
        try:
            statements = self._connection.extract_statements(sql)
        except duckdb.Error as error:
            raise ExecutionError(first_line(str(error))) from None
        if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
            raise ExecutionError(not_a_query(sql))
        return self.query_trusted(sql, limits)

    def query_trusted(self, sql: str, limits: QueryLimits) -> Rows:
        """Run a query, and interrupt it at the time limit."""
        import duckdb

        try:
            with self._time_limit(limits.max_seconds):
                result = self._connection.execute(sql)
                columns = [column[0] for column in result.description]
                return fetch_rows(columns, result.fetchmany, limits)
        except duckdb.InterruptException:
            raise too_slow(limits) from None
        except (duckdb.FatalException, duckdb.InternalException, duckdb.IOException) as error:
            raise DatabaseError(f"{self._path}: {first_line(str(error))}") from None
        except duckdb.Error as error:
            message = first_line(str(error))
            hint = "Install it: pip install pytz" if "pytz" in message else None
            raise ExecutionError(message, hint) from None

    @contextmanager
    def _time_limit(self, seconds: float) -> Iterator[None]:
        timer = threading.Timer(seconds, self._connection.interrupt)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def reflect(self) -> Reflected:
        """Read the schema from DuckDB's own catalogue."""
        schemas = self.schemas or (self._rows("SELECT current_schema()")[0][0],)
        own = "WHERE database_name = current_database() AND NOT internal"
        comments = {
            (schema, name): comment or ""
            for schema, name, comment in self._rows(
                f"SELECT schema_name, table_name, comment FROM duckdb_tables() {own} "
                f"UNION ALL SELECT schema_name, view_name, comment FROM duckdb_views() {own}"
            )
        }
        columns: dict[tuple[str, str], list[Column]] = {}
        for schema, table, *column in self._rows(
            "SELECT schema_name, table_name, column_name, data_type, is_nullable, comment "
            f"FROM duckdb_columns() {own} ORDER BY table_oid, column_index"
        ):
            columns.setdefault((schema, table), []).append(as_column(*column))
        constraints = self._rows(
            "SELECT schema_name, table_name, constraint_type, constraint_column_names, referenced_table, "
            "referenced_column_names FROM duckdb_constraints() WHERE database_name = current_database()"
        )
        keys = {(row[0], row[1]): tuple(row[3]) for row in constraints if row[2] == "PRIMARY KEY"}
        tables = [
            SchemaTable(key[0], Table(key[1], tuple(found), keys.get(key, ()), comments.get(key, "")))
            for key, found in columns.items()
        ]
        foreign_keys = [
            SchemaKey(row[0], row[0], ForeignKey(row[1], tuple(row[3]), row[4], tuple(row[5])))
            for row in constraints
            if row[2] == "FOREIGN KEY"
        ]
        return merge_schemas("duckdb", schemas, tables, foreign_keys)

    def _rows(self, sql: str) -> Sequence[tuple[Any, ...]]:
        return self.query_trusted(sql, REFLECTION_LIMITS).rows

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def first_line(message: str) -> str:
    """Return the first line of an error message."""
    return message.strip().split("\n")[0]


def as_column(name: str, declared: str, nullable: bool, comment: str | None) -> Column:
    """Return a column of the catalogue; the values of an enumeration are part of its type."""
    kind = TYPES.get(declared.partition("(")[0], "other")
    labels = re.findall(r"'((?:[^']|'')*)'", declared) if declared.startswith("ENUM(") else None
    values = None if labels is None else tuple(label.replace("''", "'") for label in labels)
    return Column(name, kind, bool(nullable), comment or "", values)
