"""Records of each system on each item, appended to a file immediately, so that an interrupted run can resume.

Records are only appended, each by one write of a whole line. A last line that a killed run or a full disk has cut
off is removed by the next run; nothing before it is written again.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from fewparse.errors import ResultsError
from fewparse.evaluate.record_lines import FIRST_KEY, HINT, Key, Record, read_line, to_line
from fewparse.evaluate.system import SystemIdentity
from fewparse.example import Example
from fewparse.files import os_reason, read_bytes
from fewparse.locks import Locked, file_lock

LOCK_SUFFIX = ".lock"
BINARY = getattr(os, "O_BINARY", 0)


class Records:
    """The records of a run by system and item; with a file, also those of earlier runs.

    Failures are logged and never reused; the next run retries them. Records are added within `locked` only, which
    excludes other evaluations with the same file. `repairs` says what `locked` has repaired.
    """

    def __init__(self, path: Path | None = None, others: Sequence[Path] = ()) -> None:
        """Read a file, which is created if there is none; raise `ResultsError` if it is not one of records.

        The records of `others` are found too; these files are not written.
        """
        self.repairs: list[str] = []
        self._path = path
        self._records: dict[Key, Record] = {}
        self._read_bytes = self._read_lines = 0
        self._locked = False
        self._failure: ResultsError | None = None
        earlier = Records.read_only(others)
        self._records |= {key: record for key, record in earlier.items() if record.failure is None}
        if path is None:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        except (OSError, ValueError) as error:
            raise not_writable(path, error) from None
        self._read(path)

    @staticmethod
    def read_only(paths: Sequence[Path]) -> dict[Key, Record]:
        """Return the records of files, with the failures of items that have no other record.

        Nothing is created or repaired; raises `ResultsError` if a file is not one of records.
        """
        found: dict[Key, Record] = {}
        for path in paths:
            for number, line in enumerate(read_bytes(path, ResultsError).split(b"\n")[:-1], 1):
                key, record = read_line(line, number, path)
                if record.failure is None or key not in found:
                    found[key] = record
        return found

    @property
    def has_file(self) -> bool:
        """Whether the records are written to a file."""
        return self._path is not None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Exclude other evaluations from the file, read what they have added, and remove an incomplete last line.

        Raises `ResultsError` if another evaluation uses the file or it cannot be written. Nested, it does nothing.
        """
        if self._path is None or self._locked:
            yield
            return
        with ExitStack() as stack:
            try:
                stack.enter_context(file_lock(self._path.with_name(self._path.name + LOCK_SUFFIX)))
                self._repair(self._path)
            except Locked as error:
                raise ResultsError(
                    f"another evaluation writes to this file: {error.message}",
                    self._path,
                    hint="Wait for its end, or write the results elsewhere (--out).",
                ) from None
            except OSError as error:
                raise not_writable(self._path, error) from None
            self._locked = True
            try:
                yield
            finally:
                self._locked = False

    def find(self, system: SystemIdentity, item: Example, without: Sequence[Example]) -> Record | None:
        """Return the record of the same system settings, item and excluded examples, if there is one."""
        return self._records.get(record_key(system, item, without))

    def has(self, key: Key) -> bool:
        """Return whether there is a record of a key that is not a failure."""
        return key in self._records

    def add(self, system: SystemIdentity, item: Example, without: Sequence[Example], record: Record) -> None:
        """Add a record, and append it to the file; raise `ResultsError` if that fails or has failed before."""
        key = record_key(system, item, without)
        if self._path is not None:
            self._append(self._path, to_line(system.name, key, item.utterance, item.program, record))
        if record.failure is None:
            self._records[key] = record

    def _read(self, path: Path) -> bytes:
        """Read the lines that were not read yet; return what follows the last of them, an incomplete line."""
        *lines, rest = read_bytes(path, ResultsError)[self._read_bytes :].split(b"\n")
        for line in lines:
            key, record = read_line(line, self._read_lines + 1, path)
            if record.failure is None:
                self._records[key] = record
            self._read_bytes += len(line) + 1
            self._read_lines += 1
        start = rest.strip(b"\0")  # a power failure can leave zeros
        if not (start.startswith(FIRST_KEY) or FIRST_KEY.startswith(start)):
            raise ResultsError("not a record of an evaluation", path, self._read_lines + 1, hint=HINT)
        return rest

    def _repair(self, path: Path) -> None:
        """Remove the incomplete last line that a killed run has left; a record without its newline gets it.

        One system call does either, so that a process that is killed here changes nothing else.
        """
        if not (rest := self._read(path)):
            return
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | BINARY)
        try:
            if is_record(rest, path):
                os.write(descriptor, b"\n")
            else:
                os.ftruncate(descriptor, os.fstat(descriptor).st_size - len(rest))
                self.repairs.append(f"{path}: removed an incomplete last line; its item is parsed again")
        finally:
            os.close(descriptor)
        self._read(path)

    def _append(self, path: Path, line: bytes) -> None:
        """Append a line by one write. After a failure nothing is appended: the last line may be cut off."""
        assert self._locked, "records are added while the file is locked"
        if self._failure is not None:
            raise self._failure
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | BINARY, 0o666)
            try:
                while line:
                    line = line[os.write(descriptor, line) :]
            finally:
                os.close(descriptor)
        except OSError as error:
            self._failure = not_writable(path, error, "Free some disk space; the same command resumes the run.")
            raise self._failure from None


def is_record(line: bytes, path: Path) -> bool:
    """Return whether a line is a complete record."""
    try:
        read_line(line, 0, path)
    except ResultsError:
        return False
    return True


def not_writable(path: Path, error: OSError | ValueError, hint: str = HINT) -> ResultsError:
    """Return the error for a file of results that cannot be written."""
    return ResultsError(f"cannot be written: {os_reason(error)}", path, hint=hint)


def record_key(system: SystemIdentity, item: Example, without: Sequence[Example]) -> Key:
    """Return fingerprints of the system's settings, and of the item with the examples excluded for it."""
    return fingerprint(system.settings), item_fingerprint(item, without)


def item_fingerprint(item: Example, without: Sequence[Example]) -> str:
    """Return a fingerprint of an item with the examples excluded for it."""
    return fingerprint([item.key, *(example.key for example in without)])


def fingerprint(value: Any) -> str:
    """Return a short hash of a JSON-serializable value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]
