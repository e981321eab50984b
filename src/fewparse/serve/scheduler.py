"""Run work in threads: a fixed number at a time, a bounded queue, and turns that are fair to every client."""

import asyncio
import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from fewparse.serve.problems import Problem

T = TypeVar("T")
Work = Callable[[threading.Event], T]
"""Runs in a thread; should end soon after the flag is set."""
MAX_RETRY_AFTER = 60
SMOOTHING = 0.1
"""The weight of the newest duration in the moving average."""


@dataclass(eq=False)
class Waiting:
    """A place in the queue; `turn` is done when its work may start."""

    client: str
    turn: "asyncio.Future[None]"


class Scheduler:
    """Runs work on an event loop's behalf, `slots` at a time.

    Clients take turns: with several of them waiting, each gets the next slot in the order of its last one. If
    `capacity` requests wait already, the newest of the client with the most waiting requests is refused.
    """

    def __init__(self, slots: int, capacity: int, name: str = "work") -> None:
        self.slots, self.capacity = slots, capacity
        self._free = slots
        self._queues: OrderedDict[str, deque[Waiting]] = OrderedDict()
        self._threads = ThreadPoolExecutor(slots, thread_name_prefix=f"fewparse-{name}")
        self._mean_seconds = 0.0
        self._running: set[threading.Event] = set()
        self._closed = False

    @property
    def waiting(self) -> int:
        """The number of requests in the queue."""
        return sum(map(len, self._queues.values()))

    @property
    def full(self) -> bool:
        """Whether no further request can wait."""
        return self.waiting >= self.capacity

    @property
    def running(self) -> int:
        """The number of requests that run."""
        return self.slots - self._free

    async def run(self, client: str, work: Work[T], on_start: Callable[[], None] = lambda: None) -> T:
        """Wait for a turn, and return the result of the work in a thread; `on_start` is called when it starts.

        If the task is cancelled, the flag of the work is set, and its slot is free when the work has ended.
        """
        await self._turn(client)
        cancel, started = threading.Event(), time.perf_counter()
        self._running.add(cancel)
        try:
            on_start()
            future = asyncio.get_running_loop().run_in_executor(self._threads, work, cancel)
        except BaseException:
            self._finished(cancel, started)
            raise
        future.add_done_callback(lambda done: self._finished(cancel, started, done))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            cancel.set()
            raise

    async def _turn(self, client: str) -> None:
        """Wait for a slot; raise `Problem` if the queue is full or the server ends."""
        if self._closed:
            raise shutting_down()
        if self._free:
            self._free -= 1
            return
        if self.full:
            self._refuse_one(client)
        waiting = Waiting(client, asyncio.get_running_loop().create_future())
        self._queues.setdefault(client, deque()).append(waiting)
        try:
            await waiting.turn
        except asyncio.CancelledError:
            if waiting.turn.done() and not waiting.turn.cancelled() and waiting.turn.exception() is None:
                self._release()
            else:
                self._remove(waiting)
            raise

    def _refuse_one(self, client: str) -> None:
        """Refuse the newest request of the client with the most; raise `Problem` if it is that of the caller."""
        largest = max(self._queues, key=lambda name: len(self._queues[name]), default=client)
        if len(self._queues.get(largest, ())) <= len(self._queues.get(client, ())) + 1:
            raise self.overloaded()
        refused = self._queues[largest][-1]
        self._remove(refused)
        if not refused.turn.done():
            refused.turn.set_exception(self.overloaded())

    def _remove(self, waiting: Waiting) -> None:
        queue = self._queues.get(waiting.client)
        if queue is not None and waiting in queue:
            queue.remove(waiting)
            if not queue:
                del self._queues[waiting.client]

    def _finished(self, cancel: threading.Event, started: float, done: "asyncio.Future[T] | None" = None) -> None:
        self._running.discard(cancel)
        seconds = time.perf_counter() - started
        self._mean_seconds += (seconds - self._mean_seconds) * (SMOOTHING if self._mean_seconds else 1)
        if done is not None and not done.cancelled():
            done.exception()  # retrieved, also if the task that waited for it was cancelled
        self._release()

    def _release(self) -> None:
        """Give the slot to the next client in turn."""
        while self._queues:
            client, queue = next(iter(self._queues.items()))
            following = queue.popleft()
            if queue:
                self._queues.move_to_end(client)
            else:
                del self._queues[client]
            if not following.turn.done():
                following.turn.set_result(None)
                return
        self._free += 1

    def overloaded(self) -> Problem:
        """Return the response to a request for which there is no place in the queue."""
        seconds = math.ceil(self._mean_seconds * (self.waiting + 1) / self.slots)
        retry_after = min(max(1, seconds), MAX_RETRY_AFTER)
        hint = f"Try again in {retry_after} seconds, as the header Retry-After says."
        return Problem(429, "overloaded", "too many requests are waiting", hint, retry_after=retry_after)

    def drain(self) -> None:
        """Refuse new and waiting requests; those that run are finished."""
        self._closed = True
        for queue in self._queues.values():
            for waiting in queue:
                if not waiting.turn.done():
                    waiting.turn.set_exception(shutting_down())
        self._queues.clear()

    def cancel(self) -> None:
        """End the requests that run as soon as possible."""
        for cancel in list(self._running):
            cancel.set()

    def close(self) -> None:
        """Refuse all requests, and end those that run as soon as possible; return when they have ended."""
        self.drain()
        self.cancel()
        self._threads.shutdown(wait=True, cancel_futures=True)


def shutting_down() -> Problem:
    """Return the response to a request while the server ends."""
    return Problem(503, "shutting_down", "the server is shutting down", "Send the request again.", retry_after=1)
