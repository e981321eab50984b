"""The queue of requests: bounded, fair to every client, and orderly at its end."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fewparse.serve.problems import Problem
from fewparse.serve.scheduler import Scheduler

Run = Callable[[str, str], Coroutine[Any, Any, str]]


class Jobs:
    """Work that waits for its gate and records the order in which it ran."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.gate = threading.Event()
        self.started: list[str] = []
        self.cancelled: list[str] = []

    async def run(self, client: str, name: str) -> str:
        def work(cancel: threading.Event) -> str:
            self.started.append(name)
            while not self.gate.wait(0.001):
                if cancel.is_set():
                    self.cancelled.append(name)
                    break
            return name

        return await self.scheduler.run(client, work)

    async def submit(self, *jobs: tuple[str, str]) -> "list[asyncio.Task[str]]":
        """Submit jobs in order."""
        tasks = []
        for client, name in jobs:
            tasks.append(asyncio.create_task(self.run(client, name)))
            await asyncio.sleep(0)
        return tasks


@asynccontextmanager
async def jobs_of(slots: int, capacity: int) -> AsyncIterator[Jobs]:
    jobs = Jobs(Scheduler(slots, capacity))
    try:
        yield jobs
    finally:
        jobs.gate.set()
        jobs.scheduler.drain()
        await asyncio.to_thread(jobs.scheduler.close)


async def code_of(task: "asyncio.Task[str]") -> str:
    try:
        return await task
    except Problem as problem:
        return problem.code


def test_clients_take_turns_however_many_requests_one_of_them_sends() -> None:
    async def scenario() -> None:
        async with jobs_of(1, 10) as jobs:
            names = [("a", "a1"), ("a", "a2"), ("a", "a3"), ("a", "a4"), ("b", "b1"), ("c", "c1"), ("b", "b2")]
            tasks = await jobs.submit(*names)
            jobs.gate.set()
            assert await asyncio.gather(*tasks) == [name for _, name in names]
            assert jobs.started == ["a1", "a2", "b1", "c1", "a3", "b2", "a4"]

    asyncio.run(scenario())


def test_no_more_run_at_a_time_than_there_are_slots() -> None:
    async def scenario() -> None:
        async with jobs_of(2, 10) as jobs:
            tasks = await jobs.submit(*[("a", str(number)) for number in range(5)])
            while len(jobs.started) < 2:
                await asyncio.sleep(0.001)
            assert (jobs.scheduler.running, jobs.scheduler.waiting, len(jobs.started)) == (2, 3, 2)
            jobs.gate.set()
            await asyncio.gather(*tasks)
            assert (jobs.scheduler.running, jobs.scheduler.waiting) == (0, 0)

    asyncio.run(scenario())


def test_a_full_queue_refuses_with_the_time_after_which_to_try_again() -> None:
    async def scenario() -> None:
        async with jobs_of(1, 2) as jobs:
            await jobs.submit(("a", "a1"), ("a", "a2"), ("a", "a3"))
            with pytest.raises(Problem) as refused:
                await jobs.run("a", "a4")
            assert (refused.value.status, refused.value.code) == (429, "overloaded")
            assert refused.value.retry_after is not None
            assert int(refused.value.headers["Retry-After"]) >= 1

    asyncio.run(scenario())


def test_a_client_that_fills_the_queue_gives_way_to_another() -> None:
    async def scenario() -> None:
        async with jobs_of(1, 3) as jobs:
            tasks = await jobs.submit(("a", "a1"), ("a", "a2"), ("a", "a3"), ("a", "a4"), ("b", "b1"))
            assert await code_of(tasks[3]) == "overloaded"
            jobs.gate.set()
            assert [await code_of(task) for task in (*tasks[:3], tasks[4])] == ["a1", "a2", "a3", "b1"]

    asyncio.run(scenario())


def test_a_cancelled_request_leaves_the_queue_or_ends_its_work_and_frees_its_slot() -> None:
    async def scenario() -> None:
        async with jobs_of(1, 10) as jobs:
            running, waiting, last = await jobs.submit(("a", "running"), ("a", "waiting"), ("b", "last"))
            while not jobs.started:
                await asyncio.sleep(0.001)
            waiting.cancel()
            running.cancel()
            await asyncio.gather(running, waiting, return_exceptions=True)
            while len(jobs.started) < 2:
                await asyncio.sleep(0.001)
            assert jobs.cancelled == ["running"]
            assert jobs.started == ["running", "last"]
            jobs.gate.set()
            assert await last == "last"

    asyncio.run(scenario())


def test_draining_finishes_what_runs_and_refuses_the_rest() -> None:
    async def scenario() -> None:
        async with jobs_of(1, 10) as jobs:
            running, waiting = await jobs.submit(("a", "running"), ("a", "waiting"))
            jobs.scheduler.drain()
            (late,) = await jobs.submit(("b", "late"))
            assert [await code_of(waiting), await code_of(late)] == ["shutting_down", "shutting_down"]
            jobs.gate.set()
            assert await running == "running"

    asyncio.run(scenario())


def test_an_error_of_the_work_reaches_its_request_and_frees_the_slot() -> None:
    async def scenario() -> None:
        async with jobs_of(1, 10) as jobs:
            with pytest.raises(ZeroDivisionError):
                await jobs.scheduler.run("a", lambda cancel: 1 // 0)
            jobs.gate.set()
            assert await jobs.run("a", "next") == "next"

    asyncio.run(scenario())
