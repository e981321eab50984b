"""Answers of remote models, kept so that no question is paid for twice.

One file, shared by all threads and processes of a user, holds the answers by the keys of their requests. It is a
convenience: whatever happens to it, looking and keeping raise nothing. A damaged file is set aside and a new one
begun; where the file cannot be used, work goes on without. Either is said.
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

from fewparse.lm import response_cache
from fewparse.lm.weights import cache_folder

T = TypeVar("T")
LIMIT = 1 << 30
SECONDS_TO_WAIT = 10.0
MOST_ATTEMPTS = 3


def answers_path() -> Path:
    """Where answers are kept."""
    return cache_folder() / "answers.sqlite"


def cache_key(request: Mapping[str, Any]) -> str:
    """The key of a request: the same for the same JSON, however its objects are ordered."""
    text = json.dumps(request, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def warn(message: str) -> None:
    """Say it as a warning of Python."""
    warnings.warn(message, stacklevel=2)


@dataclass(frozen=True)
class CacheStatistics:
    """What is kept, and how often this process has found what it looked for."""

    entries: int
    answer_bytes: int
    file_bytes: int
    limit: int
    hits: int
    misses: int
    oldest: datetime | None
    newest: datetime | None


class ResponseCache:
    """JSON values by key in one file of bounded size; the least recently used go first.

    `limit` is in bytes of the answers. `tell` hears of a damaged file and of one that cannot be used, also
    because another process has locked it for more than `timeout` seconds.
    """

    def __init__(
        self,
        path: Path,
        limit: int = LIMIT,
        tell: Callable[[str], None] = warn,
        timeout: float = SECONDS_TO_WAIT,
    ) -> None:
        self.path = path
        self.limit = limit
        self._tell = tell
        self._timeout = timeout
        # One connection behind a lock: a look takes microseconds, and a file has one writer at a time anyway.
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._working = True
        self._hits = self._misses = 0

    @property
    def working(self) -> bool:
        """Whether the cache has neither been given up nor closed."""
        return self._working

    def find(self, key: str) -> Any | None:
        """The value kept for a key, or None."""
        text = self._attempt(lambda connection: response_cache.look_up(connection, key), None)
        with self._lock:
            self._hits += text is not None
            self._misses += text is None
        return None if text is None else json.loads(text)

    def keep(self, key: str, value: Any) -> None:
        """Keep a value; once this has returned, it survives this process, however that ends.

        A value beyond the limit is not kept, nor one that JSON cannot say: with NaN or an infinity, or too deep.
        """
        try:
            text = json.dumps(value, separators=(",", ":"), allow_nan=False)
        except (ValueError, RecursionError):
            return
        if len(text) <= self.limit:
            self._attempt(lambda connection: response_cache.store(connection, key, text, self.limit), None)

    def statistics(self) -> CacheStatistics:
        """The numbers of this moment; where the file cannot be used, it counts as empty."""
        kept = self._attempt(response_cache.count, response_cache.Kept())
        return CacheStatistics(
            entries=kept.entries,
            answer_bytes=kept.size,
            file_bytes=response_cache.bytes_on_disk(self.path),
            limit=self.limit,
            hits=self._hits,
            misses=self._misses,
            oldest=kept.oldest,
            newest=kept.newest,
        )

    def clear(self) -> int:
        """Remove all answers and give their room back; how many there were."""
        return self._attempt(response_cache.forget_all, 0)

    def close(self) -> None:
        """Let go of the file. Nothing is found or kept from now on."""
        with self._lock:
            self._working = False
            self._disconnect()

    def _attempt(self, work: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        """Work with the file; if it is damaged, with the new one that takes its place."""
        with self._lock:
            for attempt in range(MOST_ATTEMPTS):
                if not self._working:
                    break
                try:
                    return work(self._connected())
                except (sqlite3.Error, response_cache.Damaged, UnicodeDecodeError, OSError) as error:
                    self._disconnect()
                    self._recover(error, may_try_again=attempt < MOST_ATTEMPTS - 1)
        return otherwise

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = response_cache.identity(self.path)
            self._connection = response_cache.opened(self.path, self._timeout)
            self._file = response_cache.identity(self.path)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _recover(self, error: Exception, may_try_again: bool) -> None:
        """See to it that the next attempt has a better file, or give the cache up."""
        if may_try_again and response_cache.is_damage(error):
            try:
                aside = response_cache.set_aside(self.path, self._file, self._timeout)
            except (sqlite3.Error, OSError) as trouble:
                error = trouble
            else:
                if aside is not None:
                    self._tell(
                        f"the answer cache {self.path} is damaged or of another version ({reason(error)}): "
                        f"a new one is begun. The old one is {aside} and can be deleted."
                    )
                return
        self._working = False
        self._tell(
            f"the answer cache {self.path} cannot be used ({reason(error)}): work goes on without it. "
            "FEWPARSE_CACHE can name another folder."
        )


def reason(error: Exception) -> str:
    """What an error says, without its number and file."""
    return (isinstance(error, OSError) and error.strerror) or str(error)
