"""A persistent cache of the responses of remote models, so that no request is paid for twice.

One SQLite file, shared by all threads and processes of a user, holds responses by the keys of their requests. The
cache is optional: reading and writing never raise. A damaged file is renamed and replaced by an empty one; if the
file cannot be used at all, the cache is disabled. Either is reported as a warning.
"""

import hashlib
import json
import sqlite3
import threading
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from fewparse.files import cache_folder
from fewparse.lm import response_store

T = TypeVar("T")
DEFAULT_LIMIT = 1 << 30
TIMEOUT_SECONDS = 10.0
MAX_ATTEMPTS = 3


def response_cache_path() -> Path:
    """Return the path of the user's response cache."""
    return cache_folder() / "responses.sqlite"


def cache_key(request: Mapping[str, Any]) -> str:
    """Return the key of a request: a hash of its JSON, independent of the order of keys."""
    text = json.dumps(request, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def warn(message: str) -> None:
    """Issue a Python warning."""
    warnings.warn(message, stacklevel=2)


@dataclass(frozen=True)
class CacheStatistics:
    """The contents of the cache, and the hits and misses of this process; `limit` is in bytes of entries."""

    entries: int
    entry_bytes: int
    file_bytes: int
    limit: int
    hits: int
    misses: int
    oldest: datetime | None
    newest: datetime | None


class ResponseCache:
    """JSON values by key in an SQLite file of limited size, with eviction of the least recently used.

    `limit` is the maximum total size of the responses in bytes. `on_warning` is called with a message if the file
    is damaged or cannot be used, for example because another process locks it for more than `timeout` seconds.
    `content` is what these messages call the entries.
    """

    def __init__(
        self,
        path: Path,
        limit: int = DEFAULT_LIMIT,
        on_warning: Callable[[str], None] = warn,
        timeout: float = TIMEOUT_SECONDS,
        content: str = "response",
    ) -> None:
        self.path = path
        self._content = content
        self.limit = limit
        self._on_warning = on_warning
        self._timeout = timeout
        # One connection with a lock is enough: a read takes microseconds, and SQLite allows one writer at a time.
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._working = True
        self._hits = self._misses = 0

    @property
    def working(self) -> bool:
        """Whether the cache is in use: neither disabled by an error nor closed."""
        return self._working

    def get(self, key: str) -> Any | None:
        """Return the value stored under a key; None if there is none, or it is not JSON or too large."""
        text = self._attempt(lambda connection: response_store.look_up(connection, key), None)
        value = None if text is None or len(text) > self.limit else parse_stored(text)
        with self._lock:
            self._hits += value is not None
            self._misses += value is None
        return value

    def put(self, key: str, value: Any) -> None:
        """Store a value; when this returns, it is on disk even if the process is killed.

        Values that are larger than the limit or that JSON cannot represent (NaN, infinity, too deeply nested) are
        not stored.
        """
        try:
            text = json.dumps(value, separators=(",", ":"), allow_nan=False)
        except (ValueError, RecursionError):
            return
        if len(text) <= self.limit:
            self._attempt(lambda connection: response_store.store(connection, key, text, self.limit), None)

    def statistics(self) -> CacheStatistics:
        """Return the current statistics; a cache that cannot be used counts as empty."""
        contents = self._attempt(response_store.contents, response_store.Contents())
        return CacheStatistics(
            entries=contents.entries,
            entry_bytes=contents.size,
            file_bytes=response_store.bytes_on_disk(self.path),
            limit=self.limit,
            hits=self._hits,
            misses=self._misses,
            oldest=contents.oldest,
            newest=contents.newest,
        )

    def clear(self) -> int:
        """Delete all responses, shrink the file, and return how many there were."""
        return self._attempt(response_store.delete_all, 0)

    def close(self) -> None:
        """Close the file; later reads find nothing and later writes are ignored."""
        with self._lock:
            self._working = False
            self._disconnect()

    def _attempt(self, operation: Callable[[sqlite3.Connection], T], default: T) -> T:
        """Run an operation on the file, again on a new file if it is damaged; return the default on failure."""
        with self._lock:
            for attempt in range(MAX_ATTEMPTS):
                if not self._working:
                    break
                try:
                    return operation(self._connected())
                except (sqlite3.Error, response_store.Damaged, UnicodeDecodeError, OSError) as error:
                    self._disconnect()
                    self._recover(error, may_retry=attempt < MAX_ATTEMPTS - 1)
        return default

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = response_store.identity(self.path)
            self._connection = response_store.connect(self.path, self._timeout)
            self._file = response_store.identity(self.path)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _recover(self, error: Exception, may_retry: bool) -> None:
        """Set a damaged file aside, so that the next attempt creates a new one; otherwise disable the cache."""
        if may_retry and response_store.is_damage(error):
            try:
                aside = response_store.set_aside(self.path, self._file, self._timeout)
            except (sqlite3.Error, OSError) as failure:
                error = failure
            else:
                if aside is not None:
                    self._on_warning(
                        f"the {self._content} cache {self.path} is damaged or of another version "
                        f"({reason(error)}) and was replaced by an empty one. The old file is now {aside} and can "
                        "be deleted."
                    )
                return
        self._working = False
        self._on_warning(
            f"the {self._content} cache {self.path} cannot be used ({reason(error)}): continuing without it. "
            "To use another folder, set FEWPARSE_CACHE."
        )


def parse_stored(text: bytes) -> Any | None:
    """Return the value of a stored JSON text; None if it is not valid."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def reason(error: Exception) -> str:
    """Return the message of an error, without the number and file name of an `OSError`."""
    return (isinstance(error, OSError) and error.strerror) or str(error)
