"""Execute queries of a domain on its database: one read-only connection, with limits on rows and time."""

import os
import threading
from collections.abc import Sequence
from typing import Any

from fewparse.domains.sql.connection import Connection, open_database
from fewparse.domains.sql.rows import QueryLimits, Rows
from fewparse.domains.sql.urls import DatabaseUrl
from fewparse.errors import DatabaseError, ExecutionError
from fewparse.limits import ANSWER_BYTES, EXECUTION_SECONDS
from fewparse.text import is_unicode

MAX_ROWS = 1000
"""The default limit of rows in an answer."""
ALL_ROWS = 1_000_000
"""The limit when the rows of two queries are compared."""


class DatabaseExecutor:
    """Executes queries; calls from several threads run one after another.

    The connection is opened by the first query, and again after it was lost or in a forked process.
    """

    def __init__(
        self,
        url: DatabaseUrl,
        schemas: Sequence[str] = (),
        max_rows: int = MAX_ROWS,
        max_seconds: float | None = None,
    ) -> None:
        self.url = url
        self._schemas = tuple(schemas)
        self._max_rows = max_rows
        self._max_seconds = max_seconds
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._owner = os.getpid()

    def __call__(self, program: str) -> dict[str, Any]:
        """Return the answer of a query: its `columns`, its `rows`, and whether they are `truncated`.

        Raises `ExecutionError` if it fails or is refused, and `DatabaseError` if the database cannot be used.
        """
        return self.rows(program).as_dict()

    def rows(self, program: str, max_rows: int | None = None) -> Rows:
        """Return the rows of a query, by default as many as an answer may have."""
        if not is_unicode(program):
            raise ExecutionError("the query is not Unicode text")
        seconds = self._max_seconds or EXECUTION_SECONDS.value
        limits = QueryLimits(max_rows or self._max_rows, seconds, int(ANSWER_BYTES.value))
        with self._lock:
            try:
                return self._opened().query(program, limits)
            except DatabaseError:
                self._close()
                raise

    def check(self) -> None:
        """Raise `DatabaseError` if the database cannot be opened."""
        with self._lock:
            self._opened()

    def _opened(self) -> Connection:
        if self._owner != os.getpid():  # a forked process: the connection belongs to the other
            self._connection, self._owner = None, os.getpid()
        if self._connection is None:
            self._connection = open_database(self.url, self._schemas)
        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None
