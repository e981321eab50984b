"""Locks between processes: a lock belongs to a running process, so that none can be left behind."""

import errno
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from fewparse.errors import FewparseError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

POLL_SECONDS = 0.05
PID_BYTES = 20
UNSUPPORTED = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)

held: set[str] = set()
"""The files that this process has locked: the system's locks exclude other processes only."""
held_lock = Lock()


class Locked(FewparseError):
    """A file that another process or thread has locked; `pid` is the id of the process, if it is known."""

    def __init__(self, path: Path, pid: int | None) -> None:
        super().__init__(f"{path} is locked by " + ("another process" if pid is None else f"process {pid}"))
        self.pid = pid


@contextmanager
def file_lock(path: Path, wait_seconds: float = 0.0) -> Iterator[bool]:
    """Hold a lock on a file, which is created if necessary and stays.

    Yields whether other processes are excluded: some file systems have no locks. The system releases the lock when
    the process ends, however it ends; child processes do not inherit it. Raises `Locked` if it is not free within
    `wait_seconds`, and `OSError` if the file cannot be written.
    """
    end = time.monotonic() + wait_seconds
    name = os.path.realpath(path)
    while not reserve(name):
        if time.monotonic() >= end:
            raise Locked(path, os.getpid())
        time.sleep(POLL_SECONDS)
    try:
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT | getattr(os, "O_NONBLOCK", 0), 0o666)
        try:
            while (acquired := acquire(descriptor)) is False:
                if time.monotonic() >= end:
                    raise Locked(path, read_pid(descriptor))
                time.sleep(POLL_SECONDS)
            write_pid(descriptor)
            yield acquired is True
        finally:
            os.close(descriptor)  # which releases the lock
    finally:
        with held_lock:
            held.discard(name)


def reserve(name: str) -> bool:
    """Enter a file into the set of this process; return whether it was not in it."""
    with held_lock:
        if name in held:
            return False
        held.add(name)
        return True


def acquire(descriptor: int) -> bool | None:
    """Lock an open file and return True; False if another process has locked it, None if it cannot be locked."""
    try:
        if sys.platform == "win32":
            os.lseek(descriptor, PID_BYTES, os.SEEK_SET)  # the locked byte is behind the process id, which is read
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError as error:
        if error.errno in UNSUPPORTED:
            return None
        raise
    return True


def write_pid(descriptor: int) -> None:
    """Write the id of this process into the locked file, for the message of others."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, f"{os.getpid():<{PID_BYTES - 1}}\n".encode())


def read_pid(descriptor: int) -> int | None:
    """Return the process id in the file; None if there is none yet."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    text = os.read(descriptor, PID_BYTES).strip()
    return int(text) if text.isdigit() else None
