"""Remember the hashes of files, and which files passed a check, so that neither is repeated at every start.

The record is one JSON file in the cache folder. A hash is valid while path, size, times and inode of a file are
unchanged; a passed check belongs to a hash. Without a record, or with a damaged one, the work is done again.
"""

import json
import os
import stat
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fewparse.errors import DataError, FewparseError, ModelUnavailable
from fewparse.files import cache_folder, os_reason, read_bytes, write_atomically
from fewparse.lm.gguf import file_sha256

RECORD = "checked-files.json"
MAX_RECORD_BYTES = 4_000_000
MAX_ENTRIES = 1_000
RECENT_SECONDS = 2
"""A file changed this recently may change again without a change of its times."""


def checked_sha256(path: Path) -> str:
    """Return the hash of a regular file, computed only if the file has changed since the last time.

    Raises `ModelUnavailable` if it cannot be read.
    """
    try:
        identity = file_identity(path)
        key = os.path.abspath(path)
        known = read_record()["files"].get(key)
        if known is not None and known[:-1] == identity:
            return str(known[-1])
        sha256 = file_sha256(path)
        if file_identity(path) != identity:
            raise ModelUnavailable(f"the file {path} changes while it is read", "Wait until it is complete.")
    except (OSError, ValueError) as error:
        raise ModelUnavailable(f"the file {path} cannot be read: {os_reason(error)}") from None
    if abs(time.time() - identity[1] / 1e9) > RECENT_SECONDS:
        update_record("files", key, [*identity, sha256])
    return sha256


def has_passed(check: Sequence[str]) -> bool:
    """Return whether a check has been recorded as passed; it is named by hashes and versions."""
    return " ".join(check) in read_record()["passed"]


def record_passed(check: Sequence[str]) -> None:
    """Record that a check was passed."""
    update_record("passed", " ".join(check), True)


def file_identity(path: Path) -> list[int]:
    """Return numbers that change when a regular file changes: size, times of change, inode and device."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "not a regular file"
        raise ModelUnavailable(f"the file {path} cannot be read: it is {kind}", "Give the path of a GGUF file.")
    return [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev]


def read_record() -> dict[str, dict[str, Any]]:
    """Return the record: identities and hashes by path, and passed checks; empty if it is not valid."""
    try:
        record = json.loads(read_bytes(cache_folder() / RECORD, DataError, MAX_RECORD_BYTES))
        files = {
            path: entry
            for path, entry in record["files"].items()
            if isinstance(entry, list)
            and [type(value) for value in entry] == [int] * 5 + [str]
            and len(entry[-1]) == 64
        }
        passed = {name: True for name, value in record["passed"].items() if value is True}
    except (FewparseError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {"files": {}, "passed": {}}
    return {"files": files, "passed": passed}


def update_record(part: str, key: str, value: Any) -> None:
    """Add an entry to the record, dropping the oldest beyond a limit; do nothing if it cannot be written."""
    record = read_record()
    entries = record[part]
    entries.pop(key, None)
    entries[key] = value
    record[part] = dict(list(entries.items())[-MAX_ENTRIES:])
    try:
        write_atomically(cache_folder() / RECORD, json.dumps(record, indent=1).encode())
    except (OSError, ValueError):
        return
