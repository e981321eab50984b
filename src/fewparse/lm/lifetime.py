"""When native memory may be used: not after it is freed, and not in a process forked from the one that owns it."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TypeVar

from fewparse.errors import ModelError
from fewparse.threads import start_with_stack

FORK_HINT = (
    "Load the model in the new process, and start that process without a fork, which copies no threads: "
    'multiprocessing.get_context("spawn").'
)

T = TypeVar("T")

_used_by: dict[str, int] = {}


def claim_library(name: str) -> None:
    """Record that this process uses a native library; raise `ModelError` if the process it was forked from did.

    The threads of the library do not exist in a forked process, which would wait for them for ever.
    """
    if _used_by.setdefault(name, os.getpid()) != os.getpid():
        raise ModelError(f"{name} was already used before this process was forked", FORK_HINT)


class Lifetime:
    """Guards the native memory of a model. Each native call is inside `with lifetime:`.

    That raises `ModelError` if the memory is freed or belongs to another process. `close` waits for calls under
    way. Its `query` runs `max_queries` queries at a time, and `close` waits for those too.
    """

    def __init__(self, name: str, max_queries: int = 1) -> None:
        self._name = name
        self._pid = os.getpid()
        self._closing = self._closed = False
        self._calls = self._queries = 0
        self._max_queries = max_queries
        self._mutex = threading.RLock()
        self._changed = threading.Condition(self._mutex)
        self._of_thread = threading.local()

    def __enter__(self) -> None:
        self._check_process()
        with self._mutex:
            if self._closed:
                raise self._closed_error()
            self._calls += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._mutex:
            self._calls -= 1
            if self._calls == 0:
                self._changed.notify_all()

    @contextmanager
    def query(self) -> Iterator[None]:
        """Wait while too many queries are under way, and hold the model; raise `ModelError` if it cannot be used.

        A query within a query of the same thread is part of it.
        """
        self._check_process()
        if self._in_query:
            yield
            return
        with self._mutex:
            self._changed.wait_for(lambda: self._closing or self._queries < self._max_queries)
            if self._closing:
                raise self._closed_error()
            self._queries += 1
        self._of_thread.in_query = True
        try:
            yield
        finally:
            self._of_thread.in_query = False
            with self._mutex:
                self._queries -= 1
                self._changed.notify_all()

    @property
    def _in_query(self) -> bool:
        """Whether the current thread is in a query."""
        return getattr(self._of_thread, "in_query", False)

    def close(self, free: Callable[[], None]) -> None:
        """Call `free` when no query and no call is under way, only once.

        Nothing is freed in a forked process, nor while the interpreter shuts down: threads may then be frozen in a
        call, and the operating system frees the memory.
        """
        if os.getpid() != self._pid or sys.is_finalizing():
            self._closing = self._closed = True
            return
        with self._mutex:
            if self._closing:  # a query that waited here would keep the other call from its end
                self._changed.wait_for(lambda: self._closed or self._in_query)
                return
            self._closing = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._queries == self._in_query)
            self._closed = True
            self._changed.wait_for(lambda: self._calls == 0)
            free()
            self._changed.notify_all()

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise ModelError(f"{self._name} was loaded before this process was forked", FORK_HINT)

    def _closed_error(self) -> ModelError:
        return ModelError(f"{self._name} is closed", "Open it again, or close it only after its last use.")


def with_stack(work: Callable[[], T], size: int) -> T:
    """Run native code in a thread with a stack of this many bytes; return its result, or raise its error."""
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    try:
        start_with_stack(run, size).join()
    except RuntimeError:
        raise ModelError("there is not enough memory for a long text", "Use a shorter text.") from None
    if errors:
        raise errors[0]
    return results[0]
