"""Threads: run a function on a list of items in several threads, or in one thread with a large stack."""

from collections.abc import Callable, Sequence
from itertools import islice
from threading import Event, Lock, Thread, stack_size
from typing import TypeVar

Item = TypeVar("Item")
JOIN_SECONDS = 0.2
"""The longest uninterrupted wait for a thread: an interrupt takes effect after it at the latest."""
STACK_UNIT = 1 << 16
_stack_size_lock = Lock()


def run_concurrently(
    items: Sequence[Item], function: Callable[[Item], None], max_concurrency: int, stopping: Event
) -> None:
    """Call a function on all items, started in order, at most `max_concurrency` at the same time.

    After an error no further call is started; the running ones are finished, then the first error is raised.
    `stopping` is set immediately, so that running calls can end early. An interrupt is raised without waiting for
    running calls: the threads are daemons, so that a pending request does not delay the end of the process either.
    """
    if max_concurrency == 1:
        for item in items:
            function(item)
        return
    remaining, lock = iter(items), Lock()
    errors: list[BaseException] = []

    def run_thread() -> None:
        while not stopping.is_set():
            with lock:
                next_item = list(islice(remaining, 1))
            if not next_item:
                return
            try:
                function(next_item[0])
            except BaseException as error:  # of any kind: it is raised again in the calling thread
                errors.append(error)
                stopping.set()

    threads = [Thread(target=run_thread, daemon=True) for _ in range(min(max_concurrency, len(items)))]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(JOIN_SECONDS)
    finally:
        stopping.set()
    if errors:
        raise errors[0]


def start_with_stack(function: Callable[[], None], stack_bytes: int) -> Thread:
    """Start a daemon thread with a stack of this size; only the part that is used takes up memory.

    Raises `RuntimeError` if there is not enough memory for it.
    """
    thread = Thread(target=function, daemon=True)
    with _stack_size_lock:  # the size is a setting of the whole process
        usual = stack_size(stack_bytes - stack_bytes % STACK_UNIT)
        try:
            thread.start()
        finally:
            stack_size(usual)
    return thread
