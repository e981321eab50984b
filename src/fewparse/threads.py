"""Work through a list with several threads, and stop as soon as there is a reason to."""

from collections.abc import Callable, Sequence
from itertools import islice
from threading import Event, Lock, Thread
from typing import TypeVar

Item = TypeVar("Item")
NAP = 0.2
"""The longest wait: an interrupt that one of them should not notice is noticed after it."""


def work_through(
    items: Sequence[Item], work: Callable[[Item], None], max_concurrency: int, stopping: Event
) -> None:
    """Do the work on all items, so many at once, each begun in its turn.

    After an error none is begun, those begun are finished, and then the first error is raised; `stopping` is set
    at once, for work that has a place to end early. An interrupt waits for nothing: the threads are daemons, so
    that a request under way does not hold up the end of the process either.
    """
    if max_concurrency == 1:
        for item in items:
            work(item)
        return
    waiting, turn = iter(items), Lock()
    errors: list[BaseException] = []

    def take_turns() -> None:
        while not stopping.is_set():
            with turn:
                taken = list(islice(waiting, 1))
            if not taken:
                return
            try:
                work(taken[0])
            except BaseException as error:  # whatever it is, it is raised where the work was asked for
                errors.append(error)
                stopping.set()

    threads = [Thread(target=take_turns, daemon=True) for _ in range(min(max_concurrency, len(items)))]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(NAP)
    finally:
        stopping.set()
    if errors:
        raise errors[0]
