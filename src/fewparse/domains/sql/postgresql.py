"""PostgreSQL: every query runs in a read-only transaction with a time limit that is always rolled back."""

import os
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fewparse.domains.sql.connection import Connection, Reflected, quote_name
from fewparse.domains.sql.inspection import inspect_schemas
from fewparse.domains.sql.rows import QueryLimits, Rows, fetch_rows, too_slow
from fewparse.domains.sql.statement import check_query
from fewparse.domains.sql.urls import DatabaseUrl
from fewparse.errors import DatabaseError, ExecutionError

if TYPE_CHECKING:
    import psycopg

CONNECT_SECONDS = 10
GRACE_SECONDS = 1.0
"""How long the server has to end a query by itself before it is cancelled from here."""
STALLED_MILLISECONDS = 30_000
"""How long a connection may be without any answer of the server's network."""
PARTITIONS = "SELECT relname FROM pg_catalog.pg_class WHERE relispartition"
"""Tables that are a part of another table, which has all of their rows."""
REFLECTION_LIMITS = QueryLimits(1_000_000, 30.0, 100_000_000)


class PostgresqlConnection(Connection):
    """A connection to a PostgreSQL server."""

    def __init__(self, url: DatabaseUrl, schemas: Sequence[str] = ()) -> None:
        super().__init__(url, schemas)
        self._connection = self._open()

    def _open(self) -> "psycopg.Connection[Any]":
        try:
            import psycopg
        except ImportError:
            install = "Install it: pip install 'fewparse[postgresql]'"
            raise DatabaseError("the driver of PostgreSQL, psycopg, is not installed", install) from None
        rest = self.url.text.partition("://")[2]
        settings: dict[str, Any] = {} if self.url.password is None else {"password": self.url.password}
        try:
            connection = psycopg.connect(
                f"postgresql://{rest}",
                connect_timeout=CONNECT_SECONDS,
                tcp_user_timeout=STALLED_MILLISECONDS,
                application_name="fewparse",
                **settings,
            )
        except (psycopg.Error, UnicodeError, ValueError) as error:
            reason = self.url.hide_password(str(error).strip().split("\n")[0])
            message = f"the database {self.url.text} cannot be opened: {reason}"
            raise DatabaseError(message, password_hint(reason)) from None
        self._finalizer = weakref.finalize(self, close, connection, os.getpid())
        connection.read_only = True
        connection.prepare_threshold = None
        return connection

    def query(self, sql: str, limits: QueryLimits) -> Rows:
        """Run one query that calls safe functions only, as sqlglot writes it."""
        return self.query_trusted(check_query(sql, "postgres"), limits)

    def query_trusted(self, sql: str, limits: QueryLimits) -> Rows:
        """Run a query by a cursor of the server: it is for queries only, and sends no more rows than asked for."""
        import psycopg

        if self._connection.closed:
            self._connection = self._open()
        try:
            with self._transaction(limits.max_seconds), self._connection.cursor(name="fewparse") as cursor:
                cursor.execute(sql)
                columns = [column.name for column in cursor.description or ()]
                return fetch_rows(columns, cursor.fetchmany, limits)
        except psycopg.errors.QueryCanceled:
            raise too_slow(limits) from None
        except psycopg.Error as error:
            message = self.url.hide_password(error.diag.message_primary or str(error).strip().split("\n")[0])
            if self._connection.closed or (isinstance(error, psycopg.OperationalError) and not error.sqlstate):
                raise DatabaseError(f"the connection to {self.url.text} was lost: {message}") from None
            raise ExecutionError(message) from None

    @contextmanager
    def _transaction(self, seconds: float) -> Iterator[None]:
        """Run a read-only transaction with limits, and roll it back."""
        timer = threading.Timer(seconds + GRACE_SECONDS, self._cancel)
        timer.daemon = True
        timer.start()
        try:
            milliseconds = max(1, int(1000 * seconds))
            self._connection.execute(f"SET LOCAL statement_timeout = {milliseconds}")
            if self.schemas:
                path = ", ".join(map(quote_name, self.schemas))
                self._connection.execute(f"SET LOCAL search_path = {path}")
            yield
        finally:
            timer.cancel()
            with suppress(Exception):  # the connection is lost: that was the error
                self._connection.rollback()

    def _cancel(self) -> None:
        with suppress(Exception):
            self._connection.cancel_safe(timeout=CONNECT_SECONDS)

    def reflect(self) -> Reflected:
        """Read the schema by SQLAlchemy."""
        from sqlalchemy import create_engine
        from sqlalchemy.pool import StaticPool

        engine = create_engine("postgresql+psycopg://", creator=lambda: self._connection, poolclass=StaticPool)
        reflected = inspect_schemas(engine, "postgres", self.schemas)
        partitions = {name for (name,) in self.query_trusted(PARTITIONS, REFLECTION_LIMITS).rows}
        database = reflected.database
        tables = tuple(table for table in database.tables if table.name not in partitions)
        keys = tuple(key for key in database.foreign_keys if key.table not in partitions)
        return replace(reflected, database=replace(database, tables=tables, foreign_keys=keys))

    def close(self) -> None:
        """Close the connection."""
        self._finalizer()


def close(connection: "psycopg.Connection[Any]", owner: int) -> None:
    """Close a connection, unless this process is a fork of the one that opened it, whose session it would end."""
    if os.getpid() == owner:
        connection.close()


def password_hint(reason: str) -> str | None:
    """Return what to do about a connection that was refused."""
    if "password" in reason:
        return (
            "Set the environment variable that `password_variable` under [database] names, or PGPASSWORD, or add "
            "the server to ~/.pgpass."
        )
    return "Is the server running, and do host and port fit?" if "refused" in reason else None
