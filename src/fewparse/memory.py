"""Return freed memory to the operating system, and pause garbage collection while large objects are made.

A search that takes long holds many parser states and logits. glibc keeps their memory after they are freed, so
that the process would stay at the size of its largest search.
"""

import ctypes
import gc
import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

GROWTH = 1.03
"""Memory is returned when the process is larger than its smallest size by this factor."""
INTERVAL = 5
"""Calls until the next attempt if the process stays larger: it may need the memory, or still use it."""


class MemoryTrimmer:
    """Returns freed memory when the process has grown. Thread-safe."""

    def __init__(self) -> None:
        self._smallest = math.inf
        self._waiting = 0
        self._lock = threading.Lock()

    def trim(self) -> None:
        """Return freed memory if the process has grown; do nothing without glibc or /proc."""
        if not self._lock.acquire(blocking=False):  # another thread does it already
            return
        try:
            if self._waiting:
                self._waiting -= 1
            elif self._has_grown() and (release := malloc_trim()) is not None:
                release(0)
                self._smallest = min(self._smallest, resident_bytes() or math.inf)
                self._waiting = INTERVAL if self._has_grown() else 0
        finally:
            self._lock.release()

    def _has_grown(self) -> bool:
        size = resident_bytes()
        return size is not None and (self._smallest == math.inf or size > GROWTH * self._smallest)


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


class Collection:
    """Garbage collection of the process, which can be paused. Thread-safe."""

    def __init__(self) -> None:
        self._pauses = 0
        self._was_enabled = False
        self._lock = threading.Lock()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause garbage collection, for objects without cycles: every collection would visit all of them again."""
        with self._lock:
            if not self._pauses:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._pauses += 1
        try:
            yield
        finally:
            with self._lock:
                self._pauses -= 1
                if not self._pauses and self._was_enabled:
                    gc.enable()


COLLECTION = Collection()
"""One for the process."""
