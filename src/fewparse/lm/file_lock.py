"""A lock between processes, which the operating system releases when its holder ends, however it ends."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

POLL_SECONDS = 0.2


@contextmanager
def file_lock(path: Path, seconds: float) -> Iterator[bool]:
    """Wait until no other process holds the lock of this file, and hold it; create the file if it is missing.

    Yields whether the lock is held: file systems without locks cannot give it. Raises `TimeoutError` if another
    process holds it for longer than `seconds`, and `OSError` if the file cannot be opened.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield acquire(descriptor, time.monotonic() + seconds)
    finally:
        os.close(descriptor)


def acquire(descriptor: int, deadline: float) -> bool:
    """Lock an open file; return False if its file system has no locks."""
    while True:
        try:
            lock(descriptor)
            return True
        except (BlockingIOError, PermissionError):  # another process holds it
            if time.monotonic() > deadline:
                raise TimeoutError("another process holds its lock") from None
            time.sleep(POLL_SECONDS)
        except OSError:
            return False


def lock(descriptor: int) -> None:
    """Lock an open file, or raise `BlockingIOError` or `PermissionError` if another process has locked it."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
