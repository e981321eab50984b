"""The SQLite file of the response cache: responses as JSON text by key, with checksums and times of use.

Each function does one operation on an open file. It raises the errors of SQLite, or `Damaged` if the contents are
not what this module writes; `response_cache.py` handles both.
"""

import os
import sqlite3
import time
import zlib
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, TypeVar

T = TypeVar("T")
EVICTION_TARGET = 0.9
"""The part of the size limit that may remain in use after an eviction."""

SECONDS_BETWEEN_USES = 60
SECONDS_BETWEEN_OPENINGS = 0.02

APPLICATION, VERSION = 0x66657770, 2
SCHEMA = (
    """CREATE TABLE IF NOT EXISTS responses (
        id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, created REAL NOT NULL, last_used REAL NOT NULL,
        size INTEGER NOT NULL, checksum INTEGER NOT NULL, value TEXT NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS by_use ON responses (last_used, size)",
    "CREATE TABLE IF NOT EXISTS totals (id INTEGER PRIMARY KEY, entries INTEGER NOT NULL, bytes INTEGER NOT NULL)",
    "INSERT OR IGNORE INTO totals VALUES (1, 0, 0)",
    """CREATE TRIGGER IF NOT EXISTS add_to_totals AFTER INSERT ON responses BEGIN
        UPDATE totals SET entries = entries + 1, bytes = bytes + new.size; END""",
    """CREATE TRIGGER IF NOT EXISTS subtract_from_totals AFTER DELETE ON responses BEGIN
        UPDATE totals SET entries = entries - 1, bytes = bytes - old.size; END""",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)
# SQLITE_ERROR is included because the statements are constant: it means that the tables are not those above.
DAMAGE_CODES = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_ERROR}


class Damaged(Exception):
    """The database is corrupt, or was written by another program or version."""


class Contents(NamedTuple):
    """The number of responses, their total bytes, and the times of the oldest and the newest one."""

    entries: int = 0
    size: int = 0
    oldest: datetime | None = None
    newest: datetime | None = None


def connect(path: Path, timeout: float) -> sqlite3.Connection:
    """Open the file, creating it if necessary.

    Retries until the timeout, because SQLite reports SQLITE_BUSY at once, without waiting, when two processes
    change the journal mode of a new file at the same time.
    """
    deadline = time.monotonic() + timeout
    while True:
        connection = sqlite3.connect(path, timeout=timeout, isolation_level=None, check_same_thread=False)
        try:
            prepare(connection)
        except BaseException as error:
            connection.close()
            if primary_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
            time.sleep(SECONDS_BETWEEN_OPENINGS)
        else:
            return connection


def prepare(connection: sqlite3.Connection) -> None:
    """Check the application id and version of a database; create the tables if it is empty."""
    connection.text_factory = bytes  # invalid UTF-8 then affects one response only, not the whole file
    with connection:
        connection.execute("BEGIN")
        found = (number(connection, "PRAGMA application_id"), number(connection, "PRAGMA user_version"))
        tables = number(connection, "SELECT COUNT(*) FROM sqlite_schema")
    if found != (APPLICATION, VERSION):
        if tables or found != (0, 0):
            raise Damaged("it was written by another program or version")
        connection.execute("PRAGMA journal_mode = WAL")
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            for statement in SCHEMA:
                connection.execute(statement)
    connection.execute("PRAGMA synchronous = NORMAL")


def look_up(connection: sqlite3.Connection, key: str) -> bytes | None:
    """Return the text stored under a key, or None, and record the use.

    A use is recorded at most once a minute, as it needs a write. SQLite does not detect all damage: a text that
    does not match its checksum, or a value of another type, is deleted.
    """
    row = connection.execute("SELECT value, checksum, last_used FROM responses WHERE key = ?", (key,)).fetchone()
    if row is None:
        return None
    text, expected, last_used = row
    if not isinstance(text, bytes) or not isinstance(last_used, float) or expected != checksum(key, text):
        connection.execute("DELETE FROM responses WHERE key = ?", (key,))
        return None
    now = time.time()
    if abs(now - last_used) > SECONDS_BETWEEN_USES:
        connection.execute("UPDATE responses SET last_used = ? WHERE key = ?", (now, key))
    return text


def store(connection: sqlite3.Connection, key: str, text: str, limit: int) -> None:
    """Store a text under a key, replacing an older one.

    If all texts together would exceed `limit` bytes, the least recently used ones are deleted first.
    """
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM responses WHERE key = ?", (key,))
        total = number(connection, "SELECT bytes FROM totals")
        if total + len(text) > limit:
            evicted = []
            for row, size in connection.execute("SELECT id, size FROM responses ORDER BY last_used, id"):
                if total + len(text) <= EVICTION_TARGET * limit:
                    break
                evicted.append((row,))
                total -= checked(size, int)
            connection.executemany("DELETE FROM responses WHERE id = ?", evicted)
        now = time.time()
        connection.execute(
            "INSERT INTO responses (key, created, last_used, size, checksum, value) VALUES (?, ?, ?, ?, ?, ?)",
            (key, now, now, len(text), checksum(key, text.encode("ascii")), text),
        )


def delete_all(connection: sqlite3.Connection) -> int:
    """Delete all responses, shrink the file, and return how many there were."""
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        entries = number(connection, "SELECT entries FROM totals")
        connection.execute("DELETE FROM responses")
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return entries


def contents(connection: sqlite3.Connection) -> Contents:
    """Return the number, size and times of the responses."""
    with connection:
        connection.execute("BEGIN")
        entries, size = (number(connection, f"SELECT {column} FROM totals") for column in ("entries", "bytes"))
        ends = [
            connection.execute(f"SELECT created FROM responses ORDER BY id {order} LIMIT 1").fetchone()
            for order in ("ASC", "DESC")
        ]
    oldest, newest = (moment(row[0]) if row else None for row in ends)
    return Contents(entries, size, oldest, newest)


def moment(value: object) -> datetime:
    """Return a time of the file; raise `Damaged` if it is not one."""
    try:
        return datetime.fromtimestamp(checked(value, float), UTC)
    except (ValueError, OverflowError, OSError):
        raise Damaged("its contents are invalid") from None


def number(connection: sqlite3.Connection, query: str) -> int:
    """Return the single integer that a query selects."""
    row = connection.execute(query).fetchone()
    return checked(row and row[0], int)


def checked(value: object, kind: type[T]) -> T:
    """Return a value of the file; raise `Damaged` if it does not have the type with which it was written."""
    if not isinstance(value, kind):
        raise Damaged("its contents are invalid")
    return value


def checksum(key: str, text: bytes) -> int:
    """Return the CRC-32 of a key and its text."""
    return zlib.crc32(text, zlib.crc32(key.encode()))


def set_aside(path: Path, file: tuple[int, int] | None, timeout: float) -> Path | None:
    """Rename a damaged file and return its new path; None if another process has replaced it already.

    `file` is the identity of the damaged file. Its journal is renamed too: SQLite would apply it to the new file.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    aside = path.with_name(f"{path.name}.corrupt-{stamp}")
    with closing(sqlite3.connect(f"{path}.lock", timeout=timeout, isolation_level=None)) as lock:
        lock.execute("BEGIN EXCLUSIVE")
        if identity(path) != file:
            return None
        with suppress(FileNotFoundError):
            os.replace(f"{path}-wal", f"{aside}-wal")
        with suppress(FileNotFoundError):
            os.remove(f"{path}-shm")
        os.replace(path, aside)
    return aside


def identity(path: Path) -> tuple[int, int] | None:
    """Return the device and inode of a file, or None if it cannot be accessed."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def bytes_on_disk(path: Path) -> int:
    """Return the size of the file and its journal."""
    total = 0
    for part in (path, f"{path}-wal"):
        with suppress(OSError):
            total += os.stat(part).st_size
    return total


def primary_code(error: BaseException) -> int:
    """Return the primary result code of an SQLite error, which is in the lower eight bits."""
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)) & 0xFF


def is_damage(error: Exception) -> bool:
    """Return whether an error means that the file is damaged.

    A `UnicodeDecodeError` does: SQLite messages may quote names that are no longer valid UTF-8.
    """
    return isinstance(error, Damaged | UnicodeDecodeError) or primary_code(error) in DAMAGE_CODES
