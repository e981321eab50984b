"""SQLite: files are opened to read only, and an authorizer allows nothing but SELECT and functions of a list."""

import os
import sqlite3
import time
from collections.abc import Sequence
from contextlib import suppress

from fewparse.domains.sql.connection import Connection, Reflected, check_file, quote_name
from fewparse.domains.sql.functions import READ_ONLY, SAFE_FUNCTIONS, not_a_query, refused_function
from fewparse.domains.sql.rows import QueryLimits, Rows, fetch_rows, too_slow
from fewparse.domains.sql.sqlite_schema import reflect_sqlite
from fewparse.domains.sql.urls import DatabaseUrl, file_kind
from fewparse.errors import DatabaseError, ExecutionError, FewparseError
from fewparse.limits import ANSWER_BYTES

BUSY_SECONDS = 5.0
INSTRUCTIONS = 2000
"""Instructions of SQLite's virtual machine between two checks of the time limit: well below a millisecond."""
MAX_SQL_BYTES = 1_000_000
REFLECTION_LIMITS = QueryLimits(100_000, 2.0, 100_000_000)


class UnicodeTrouble(Exception):
    """A text that is not UTF-8, which SQLite does not prevent."""


class SqliteConnection(Connection):
    """A connection to a SQLite file."""

    def __init__(self, url: DatabaseUrl, schemas: Sequence[str] = ()) -> None:
        super().__init__(url, schemas)
        if schemas:
            raise DatabaseError("a SQLite database has no schemas", "Omit them: --schema, or `schemas`.")
        assert url.path is not None
        self._path = url.path
        self._refused: str | None = None
        self._connection = self._open()
        self._connection.set_authorizer(self._authorize)

    def _open(self) -> sqlite3.Connection:
        """Open and harden the connection; raise `DatabaseError` with the reason if that fails."""
        check_file(self._path)
        try:
            return harden(connect(self._path.absolute().as_uri() + "?mode=ro"))
        except sqlite3.Error as error:
            # Without the files of its write-ahead log, a database in a folder that is not writable can only be
            # opened as one that nobody changes.
            if not is_locked(error) and not os.path.exists(f"{self._path}-wal"):
                with suppress(sqlite3.Error):
                    return harden(connect(self._path.absolute().as_uri() + "?mode=ro&immutable=1"))
            raise self._explain(error) from None

    def _explain(self, error: sqlite3.Error) -> DatabaseError:
        """Return the error for a database that cannot be opened."""
        kind = file_kind(self._path)
        if kind == "duckdb":
            return DatabaseError(f"{self._path} is a DuckDB database", f"Use its URL: duckdb:///{self._path}")
        if is_locked(error):
            hint = "End the program that writes to it, or wait until it has finished."
            return DatabaseError(f"{self._path} is locked by another program", hint)
        if kind is None:
            return DatabaseError(f"{self._path} is not a SQLite database")
        return DatabaseError(f"{self._path} cannot be opened: {error}")

    def _authorize(
        self, action: int, first: str | None, second: str | None, database: str | None, source: str | None
    ) -> int:
        """Allow SELECT, reading columns, recursion and safe functions; remember what was refused."""
        if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION and second is not None:
            if second.lower() in SAFE_FUNCTIONS:
                return sqlite3.SQLITE_OK
            self._refused = self._refused or refused_function(second)
        elif action == sqlite3.SQLITE_PRAGMA and first == "data_version":  # full-text search reads it
            return sqlite3.SQLITE_OK
        else:
            self._refused = self._refused or READ_ONLY
        return sqlite3.SQLITE_DENY

    def query(self, sql: str, limits: QueryLimits) -> Rows:
        """Run one SELECT under the authorizer and the limits."""
        self._refused = None
        try:
            return self._run(sql, limits)
        except ExecutionError as error:
            if self._refused is None:
                raise
            message = not_a_query(sql) if self._refused == READ_ONLY else self._refused
            raise ExecutionError(message) from error

    def query_trusted(self, sql: str, limits: QueryLimits) -> Rows:
        """Run a query without the authorizer, which would refuse the pragmas of reflection."""
        self._connection.set_authorizer(None)
        try:
            return self._run(sql, limits)
        finally:
            self._connection.set_authorizer(self._authorize)

    def _run(self, sql: str, limits: QueryLimits) -> Rows:
        try:
            return self._fetch(sql, limits)
        except UnicodeTrouble:
            self._connection.text_factory = lambda content: content.decode(errors="replace")
            return self._fetch(sql, limits)

    def _fetch(self, sql: str, limits: QueryLimits) -> Rows:
        deadline = time.monotonic() + limits.max_seconds
        self._connection.set_progress_handler(lambda: time.monotonic() > deadline, INSTRUCTIONS)
        try:
            cursor = self._connection.execute(sql)
            if cursor.description is None:
                raise ExecutionError("this is not a query", "Write one SELECT statement.")
            return fetch_rows((column[0] for column in cursor.description), cursor.fetchmany, limits)
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            if str(error).startswith("Could not decode") and self._connection.text_factory is str:
                raise UnicodeTrouble from None
            raise self._failure(error, limits) from None

    def _failure(self, error: Exception, limits: QueryLimits) -> FewparseError:
        """Return the error of a query that failed."""
        message = str(error)
        if message == "interrupted":
            return too_slow(limits)
        if isinstance(error, sqlite3.Error) and is_locked(error):
            return DatabaseError(f"{self._path} is locked by another program", "Try again when it has finished.")
        if isinstance(error, sqlite3.DatabaseError) and message == "database disk image is malformed":
            return DatabaseError(f"{self._path} is damaged", "Restore it from a copy.")
        if "too big" in message:
            return ExecutionError("a value is too large", ANSWER_BYTES.hint)
        if "one statement at a time" in message:
            return ExecutionError("there is more than one statement", "Write one SELECT statement.")
        return ExecutionError(message)

    def reflect(self) -> Reflected:
        """Read the schema by SQLite's pragmas; the types of columns also from stored values."""
        return reflect_sqlite(lambda sql: self.query_trusted(sql, REFLECTION_LIMITS).rows, self.quote)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def connect(uri: str) -> sqlite3.Connection:
    """Open a URI; every statement is prepared anew, so that the authorizer sees it."""
    return sqlite3.connect(
        uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=0
    )


def harden(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Limit what the connection and a hostile file can do; raise `sqlite3.Error` if it cannot be read."""
    try:
        for setting in ("query_only = ON", "trusted_schema = OFF", "cell_size_check = ON"):
            connection.execute(f"PRAGMA {setting}")
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE sql LIKE 'create virtual%'"
        ).fetchall():
            with suppress(sqlite3.Error):  # its module opens it now: the authorizer would refuse that later
                connection.execute(f"SELECT 1 FROM {quote_name(name)} LIMIT 0")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, int(ANSWER_BYTES.value))
        connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, MAX_SQL_BYTES)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    except BaseException:
        connection.close()
        raise
    return connection


def is_locked(error: sqlite3.Error) -> bool:
    """Return whether another program has locked the database."""
    return getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
