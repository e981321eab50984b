"""Return freed memory to the operating system, so that the size of a long-running process stays level.

A search that takes long holds many parser states and logits. glibc keeps their memory after they are freed, so
that the process would stay at the size of its largest search.
"""

import ctypes
import os
import threading
from functools import cache

GROWTH = 1.03
"""Memory is returned when the process is larger by this factor than after the last time."""


class MemoryTrimmer:
    """Returns freed memory when the process has grown. Thread-safe."""

    def __init__(self) -> None:
        self._size = 0.0
        self._lock = threading.Lock()

    def trim(self) -> None:
        """Return freed memory if the process has grown since the last time; do nothing without glibc or /proc."""
        size = resident_bytes()
        if size is None or size <= GROWTH * self._size or (release := malloc_trim()) is None:
            return
        if self._lock.acquire(blocking=False):  # another thread does it already otherwise
            try:
                release(0)
                self._size = resident_bytes() or size
            finally:
                self._lock.release()


def resident_bytes() -> int | None:
    """Return the resident memory of this process; None if the system does not say."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


@cache
def malloc_trim() -> "ctypes._NamedFuncPointer | None":
    """Return the function of the C library that returns freed memory; None if it has none."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):  # TypeError: Windows
        return None


TRIMMER = MemoryTrimmer()
"""One for the process."""
