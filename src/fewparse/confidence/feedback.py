"""The feedback log: parses, what was decided, and what the user chose or corrected, in an SQLite file."""

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from platformdirs import user_data_path

from fewparse.domains.domain import Domain
from fewparse.errors import FeedbackError, UnknownName, UsageError
from fewparse.example import Decision, Parse, Target
from fewparse.lm.response_store import Damaged, identity, is_damage, number, set_aside

T = TypeVar("T")
Outcome = Literal["accepted", "chosen", "rejected", "corrected", "out_of_scope"]
"""What the user said: the best candidate is right; another one is; none is; a program or canonical utterance of
their own; nothing in the domain expresses the utterance."""
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
WITH_PROGRAM = ("chosen", "corrected")

FILE = "feedback.sqlite"
WAIT_SECONDS = 10.0
APPLICATION, VERSION = 0x66657766, 1
COLUMNS = (
    "time",
    "utterance",
    "context",
    "target",
    "model",
    "version",
    "candidates",
    "confidence",
    "decision",
    "outcome",
    "program",
    "reviewed",
)
SCHEMA = (
    """CREATE TABLE entries (
        id INTEGER PRIMARY KEY AUTOINCREMENT, time TEXT NOT NULL, utterance TEXT NOT NULL, context TEXT NOT NULL,
        target TEXT NOT NULL, model TEXT NOT NULL, version TEXT NOT NULL, candidates TEXT NOT NULL,
        confidence REAL, decision TEXT, outcome TEXT, program TEXT, reviewed INTEGER NOT NULL DEFAULT 0)""",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)


class LoggedCandidate(NamedTuple):
    """A candidate as it was logged."""

    text: str
    program: str | None
    score: float


@dataclass(frozen=True)
class FeedbackEntry:
    """A parse in the log.

    `outcome` is what the user said, None until they do; `program` is the program that they chose or corrected to.
    `reviewed` is whether a review has dealt with it.
    """

    id: int
    time: str
    utterance: str
    context: str
    target: Target
    model: str
    version: str
    candidates: tuple[LoggedCandidate, ...]
    confidence: float | None
    decision: Decision | None
    outcome: Outcome | None
    program: str | None
    reviewed: bool

    def as_dict(self) -> dict[str, Any]:
        """Return the entry as a JSON object."""
        return asdict(self) | {"candidates": [candidate._asdict() for candidate in self.candidates]}


def feedback_path(domain: Domain) -> Path:
    """Return the path of a domain's log: in its folder; of an installed one, in the user's data directory."""
    if domain.data == domain.folder and not domain.installed:
        return domain.data_file(FILE)
    return user_data_path("fewparse") / "feedback" / f"{domain.name.replace('/', '-')}.sqlite"


class FeedbackLog:
    """The log of a domain, which threads and processes may share; each operation is one transaction.

    A damaged file is set aside and a new one begun; `on_warning` is called with a message that says so. Raises
    `FeedbackError` if the file cannot be read or written.
    """

    def __init__(self, path: Path, on_warning: Callable[[str], None] = lambda message: None) -> None:
        self.path = path
        self._on_warning = on_warning

    @classmethod
    def of(cls, domain: Domain, on_warning: Callable[[str], None] = lambda message: None) -> "FeedbackLog":
        """Return the log of a domain."""
        return cls(feedback_path(domain), on_warning)

    def record(self, parse: Parse, context: str = "") -> int:
        """Add a parse; return the id by which `resolve` refers to it."""
        candidates = [(candidate.text, candidate.program, candidate.score) for candidate in parse.candidates]
        values = (
            datetime.now(UTC).isoformat(timespec="milliseconds"),
            parse.utterance,
            context,
            parse.target,
            parse.model,
            version("fewparse"),
            json.dumps(candidates),
            parse.confidence,
            parse.decision,
            None,
            None,
            0,
        )
        places = ", ".join("?" * len(COLUMNS))
        statement = f"INSERT INTO entries ({', '.join(COLUMNS)}) VALUES ({places})"
        return self._run(lambda connection: int(connection.execute(statement, values).lastrowid or 0))

    def resolve(self, entry: int, outcome: Outcome, program: str | None = None) -> None:
        """Add what the user said about an entry; `program` is what they chose or corrected to.

        A later answer replaces an earlier one. Raises `UsageError` if there is no such entry.
        """
        if outcome not in OUTCOMES:
            raise UnknownName("outcome", outcome, OUTCOMES)
        if (program is not None) != (outcome in WITH_PROGRAM):
            raise UsageError(
                f"the outcome `{outcome}` {'needs a' if outcome in WITH_PROGRAM else 'has no'} program",
                f"A program belongs to {' and '.join(WITH_PROGRAM)}.",
            )
        statement = "UPDATE entries SET outcome = ?, program = ?, reviewed = 0 WHERE id = ?"
        if not self._run(lambda connection: connection.execute(statement, (outcome, program, entry)).rowcount):
            raise UsageError(f"the feedback log has no entry {entry}", f"It is in {self.path}.")

    def mark_reviewed(self, entry: int) -> bool:
        """Mark an entry, and all others with its utterance and context, as reviewed.

        Returns whether one of them was not before, in this process or another.
        """
        statement = (
            "UPDATE entries SET reviewed = 1 WHERE reviewed = 0 AND "
            "(utterance, context) = (SELECT utterance, context FROM entries WHERE id = ?)"
        )
        return self._run(lambda connection: connection.execute(statement, (entry,)).rowcount > 0)

    def entries(self, ids: Sequence[int] | None = None) -> list[FeedbackEntry]:
        """Return the entries, oldest first: all, or those with these ids."""
        if not self.path.exists():
            return []
        found = self._run(lambda connection: [read_row(row) for row in connection.execute(SELECT)])
        wanted = None if ids is None else set(ids)
        return [entry for entry in found if wanted is None or entry.id in wanted]

    def forget(self, ids: Sequence[int] | None = None) -> int:
        """Delete entries, all or those with these ids, also from free pages of the file; return how many."""
        if not self.path.exists():
            return 0

        def delete(connection: sqlite3.Connection) -> int:
            connection.execute("PRAGMA secure_delete = ON")
            if ids is None:
                return connection.execute("DELETE FROM entries").rowcount
            return sum(connection.execute("DELETE FROM entries WHERE id = ?", (i,)).rowcount for i in set(ids))

        return self._run(delete)

    def _run(self, operation: Callable[[sqlite3.Connection], T]) -> T:
        """Run an operation in a transaction; on a damaged file, once more on a new one."""
        file = identity(self.path)
        try:
            with self._connected() as connection:
                return operation(connection)
        except (sqlite3.Error, Damaged, ValueError, OSError) as error:
            if not (is_damage(error) or isinstance(error, ValueError)):
                raise FeedbackError(f"the feedback log {self.path} cannot be used: {error}") from None
            self._replace(file, error)
        try:
            with self._connected() as connection:
                return operation(connection)
        except (sqlite3.Error, Damaged, ValueError, OSError) as error:
            raise FeedbackError(f"the feedback log {self.path} cannot be used: {error}") from None

    def _replace(self, file: tuple[int, int] | None, error: Exception) -> None:
        """Set a damaged file aside."""
        try:
            aside = set_aside(self.path, file, WAIT_SECONDS)
        except (sqlite3.Error, OSError) as failure:
            raise FeedbackError(f"the damaged feedback log {self.path} cannot be set aside: {failure}") from None
        if aside is not None:
            self._on_warning(
                f"the feedback log {self.path} is damaged ({error}); a new one was begun, the old one is {aside}"
            )

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """Open the file, created if necessary, within a transaction."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, timeout=WAIT_SECONDS, isolation_level=None)
        with closing(connection), connection:
            connection.execute("BEGIN IMMEDIATE")
            prepare(connection)
            yield connection


SELECT = f"SELECT id, {', '.join(COLUMNS)} FROM entries ORDER BY id"


def prepare(connection: sqlite3.Connection) -> None:
    """Create the table in an empty file; raise `Damaged` for a file of another program or version."""
    found = (number(connection, "PRAGMA application_id"), number(connection, "PRAGMA user_version"))
    if found == (APPLICATION, VERSION):
        return
    if found != (0, 0) or number(connection, "SELECT COUNT(*) FROM sqlite_schema"):
        raise Damaged("it was written by another program or version")
    for statement in SCHEMA:
        connection.execute(statement)


def read_row(row: tuple[Any, ...]) -> FeedbackEntry:
    """Return a row as an entry; raise `ValueError` if it is not one that `record` wrote."""
    entry_id, values = row[0], dict(zip(COLUMNS, row[1:], strict=True))
    values["reviewed"] = bool(values["reviewed"])
    values["candidates"] = tuple(LoggedCandidate(*each) for each in json.loads(values["candidates"]))
    return FeedbackEntry(entry_id, **values)
