"""Running a function on a list of items in several threads."""

from threading import Barrier, Event, Lock, get_ident

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewparse.threads import run_concurrently

TIMEOUT = 120


@given(st.integers(0, 30), st.integers(1, 8))
def test_the_function_is_called_once_for_every_item(count: int, max_concurrency: int) -> None:
    done: list[int] = []
    run_concurrently(range(count), done.append, max_concurrency, Event())
    assert sorted(done) == list(range(count))


def test_the_maximum_number_of_calls_run_at_the_same_time_and_no_more() -> None:
    barrier, lock = Barrier(4, timeout=TIMEOUT), Lock()
    running, largest = 0, 0

    def work(item: int) -> None:
        nonlocal running, largest
        with lock:
            running += 1
            largest = max(largest, running)
        barrier.wait()  # returns only when four calls are running
        with lock:
            running -= 1

    run_concurrently(range(12), work, 4, Event())
    assert largest == 4


def test_a_concurrency_of_one_uses_no_threads() -> None:
    done: list[tuple[int, int]] = []
    run_concurrently(range(3), lambda item: done.append((item, get_ident())), 1, Event())
    assert done == [(item, get_ident()) for item in range(3)]


def test_after_an_error_no_call_is_started_and_running_calls_are_finished() -> None:
    stopping, started, finished = Event(), list[int](), list[int]()
    both = Barrier(2, timeout=TIMEOUT)

    def work(item: int) -> None:
        started.append(item)
        both.wait()
        if item == 0:
            raise ZeroDivisionError("the first")
        assert stopping.wait(TIMEOUT), "set immediately"
        finished.append(item)

    with pytest.raises(ZeroDivisionError, match="the first"):
        run_concurrently(range(100), work, 2, stopping)
    assert (sorted(started), finished) == ([0, 1], [1])
