"""Run a function on a list of items in several threads, and stop early on errors and interrupts."""

from collections.abc import Callable, Sequence
from itertools import islice
from threading import Event, Lock, Thread
from typing import TypeVar

Item = TypeVar("Item")
JOIN_SECONDS = 0.2
"""The longest uninterrupted wait for a thread: an interrupt takes effect after it at the latest."""


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
