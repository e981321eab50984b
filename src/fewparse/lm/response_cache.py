"""The file of the answer cache: an SQLite database with answers as JSON text.

Each function does one thing with an open file and raises what SQLite raises, or `Damaged` where the contents are
not what is written here; `cache.py` decides what becomes of it.
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
LEFT_OF_LIMIT = 0.9
SECONDS_BETWEEN_USES = 60
SECONDS_BETWEEN_OPENINGS = 0.02

APPLICATION, VERSION = 0x66657770, 1
SCHEMA = (
    """CREATE TABLE IF NOT EXISTS answers (
        id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, made REAL NOT NULL, used REAL NOT NULL,
        size INTEGER NOT NULL, checksum INTEGER NOT NULL, value TEXT NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS by_use ON answers (used, size)",
    "CREATE TABLE IF NOT EXISTS total (id INTEGER PRIMARY KEY, entries INTEGER NOT NULL, bytes INTEGER NOT NULL)",
    "INSERT OR IGNORE INTO total VALUES (1, 0, 0)",
    """CREATE TRIGGER IF NOT EXISTS comes AFTER INSERT ON answers BEGIN
        UPDATE total SET entries = entries + 1, bytes = bytes + new.size; END""",
    """CREATE TRIGGER IF NOT EXISTS goes AFTER DELETE ON answers BEGIN
        UPDATE total SET entries = entries - 1, bytes = bytes - old.size; END""",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)
# The last: an error in statements that never change means that the tables are not those above.
DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_ERROR}


class Damaged(Exception):
    """A database that this program has not written, or that has changed since."""


class Kept(NamedTuple):
    """How many answers there are, their bytes, and when the first and the last of them were made."""

    entries: int = 0
    size: int = 0
    oldest: datetime | None = None
    newest: datetime | None = None


def opened(path: Path, timeout: float) -> sqlite3.Connection:
    """A connection to the file, which is made if it is not there.

    SQLite refuses at once, without waiting, where two processes change the journal of a new file: ask again.
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
    """Check that the database is ours, or make it so if it is empty."""
    connection.text_factory = bytes  # a text that is not UTF-8 any more is a matter of one answer, not of the file
    with connection:
        connection.execute("BEGIN")
        found = (number(connection, "PRAGMA application_id"), number(connection, "PRAGMA user_version"))
        tables = number(connection, "SELECT COUNT(*) FROM sqlite_schema")
    if found != (APPLICATION, VERSION):
        if tables or found != (0, 0):
            raise Damaged("another program or version wrote it")
        connection.execute("PRAGMA journal_mode = WAL")
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            for statement in SCHEMA:
                connection.execute(statement)
    connection.execute("PRAGMA synchronous = NORMAL")


def look_up(connection: sqlite3.Connection, key: str) -> bytes | None:
    """The text of an answer, which counts as used; not more than once a minute, for a use must be written.

    SQLite does not notice every damage. An answer that is not the one that was kept for this key is dropped.
    """
    row = connection.execute("SELECT value, checksum, used FROM answers WHERE key = ?", (key,)).fetchone()
    if row is None:
        return None
    text = checked(row[0], bytes)
    if row[1] != checksum(key, text):
        connection.execute("DELETE FROM answers WHERE key = ?", (key,))
        return None
    now = time.time()
    if abs(now - checked(row[2], float)) > SECONDS_BETWEEN_USES:
        connection.execute("UPDATE answers SET used = ? WHERE key = ?", (now, key))
    return text


def store(connection: sqlite3.Connection, key: str, text: str, limit: int) -> None:
    """Put an answer in place of an older one; if there is too much, the least recently used make room first."""
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM answers WHERE key = ?", (key,))
        kept = number(connection, "SELECT bytes FROM total")
        if kept + len(text) > limit:
            gone = []
            for row, size in connection.execute("SELECT id, size FROM answers ORDER BY used, id"):
                if kept + len(text) <= LEFT_OF_LIMIT * limit:
                    break
                gone.append((row,))
                kept -= checked(size, int)
            connection.executemany("DELETE FROM answers WHERE id = ?", gone)
        now = time.time()
        connection.execute(
            "INSERT INTO answers (key, made, used, size, checksum, value) VALUES (?, ?, ?, ?, ?, ?)",
            (key, now, now, len(text), checksum(key, text.encode("ascii")), text),
        )


def forget_all(connection: sqlite3.Connection) -> int:
    """Remove all answers and shrink the file; how many there were."""
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        entries = number(connection, "SELECT entries FROM total")
        connection.execute("DELETE FROM answers")
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return entries


def count(connection: sqlite3.Connection) -> Kept:
    """What is kept."""
    with connection:
        connection.execute("BEGIN")
        entries, size = (number(connection, f"SELECT {column} FROM total") for column in ("entries", "bytes"))
        ends = [
            connection.execute(f"SELECT made FROM answers ORDER BY id {order} LIMIT 1").fetchone()
            for order in ("ASC", "DESC")
        ]
    oldest, newest = (datetime.fromtimestamp(checked(row[0], float), UTC) if row else None for row in ends)
    return Kept(entries, size, oldest, newest)


def number(connection: sqlite3.Connection, query: str) -> int:
    """The one number that a query gives."""
    row = connection.execute(query).fetchone()
    return checked(row and row[0], int)


def checked(value: object, kind: type[T]) -> T:
    """A value out of the file, if it has the type with which it was written."""
    if not isinstance(value, kind):
        raise Damaged("its contents make no sense")
    return value


def checksum(key: str, text: bytes) -> int:
    """What tells whether an answer is still the one kept for its key."""
    return zlib.crc32(text, zlib.crc32(key.encode()))


def set_aside(path: Path, file: tuple[int, int] | None, timeout: float) -> Path | None:
    """Rename a file that is damaged; None if another process has done so, and this is another file already.

    The journal goes with it: beside a new file it would be taken for that one's.
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
    """What tells a file from another that takes its name later; None if there is none to be seen."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def bytes_on_disk(path: Path) -> int:
    """The size of the file with its journal."""
    total = 0
    for part in (path, f"{path}-wal"):
        with suppress(OSError):
            total += os.stat(part).st_size
    return total


def primary_code(error: BaseException) -> int:
    """SQLite's code for a kind of error, without the details in its upper bits."""
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)) & 0xFF


def is_damage(error: Exception) -> bool:
    """Whether the file is at fault, not what surrounds it; `UnicodeDecodeError` is SQLite quoting broken text."""
    return isinstance(error, Damaged | UnicodeDecodeError) or primary_code(error) in DAMAGED
