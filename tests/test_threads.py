"""Working through a list with several threads."""

from threading import Barrier, Event, Lock, get_ident

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewparse.threads import work_through

PATIENCE = 20


@given(st.integers(0, 30), st.integers(1, 8))
def test_every_item_is_worked_on_once(count: int, max_concurrency: int) -> None:
    done: list[int] = []
    work_through(range(count), done.append, max_concurrency, Event())
    assert sorted(done) == list(range(count))


def test_so_many_are_worked_on_at_once_and_no_more() -> None:
    together, lock = Barrier(4, timeout=PATIENCE), Lock()
    busy, most = 0, 0

    def work(item: int) -> None:
        nonlocal busy, most
        with lock:
            busy += 1
            most = max(most, busy)
        together.wait()  # passes only if four are here
        with lock:
            busy -= 1

    work_through(range(12), work, 4, Event())
    assert most == 4


def test_one_at_a_time_is_no_matter_of_threads() -> None:
    done: list[tuple[int, int]] = []
    work_through(range(3), lambda item: done.append((item, get_ident())), 1, Event())
    assert done == [(item, get_ident()) for item in range(3)]


def test_after_an_error_none_is_begun_and_those_begun_are_finished() -> None:
    stopping, begun, finished = Event(), list[int](), list[int]()
    both = Barrier(2, timeout=PATIENCE)

    def work(item: int) -> None:
        begun.append(item)
        both.wait()
        if item == 0:
            raise ZeroDivisionError("the first")
        assert stopping.wait(PATIENCE), "told at once"
        finished.append(item)

    with pytest.raises(ZeroDivisionError, match="the first"):
        work_through(range(100), work, 2, stopping)
    assert (sorted(begun), finished) == ([0, 1], [1])
