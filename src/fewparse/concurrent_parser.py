"""Many parses with a parser: in order, several at a time, and from asyncio."""

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property, partial

from fewparse.events import Listener, ignore
from fewparse.example import Parse


class ConcurrentParser(ABC):
    """A parser; subclasses define `parse` and `max_concurrency`, the rest is derived."""

    @property
    @abstractmethod
    def max_concurrency(self) -> int:
        """How many parses may run at a time."""

    @abstractmethod
    def parse(
        self,
        utterance: str,
        context: str = "",
        emit: Listener = ignore,
        *,
        cancel: threading.Event | None = None,
    ) -> Parse:
        """Parse one utterance; see `Parser.parse`."""

    def parse_many(self, utterances: Iterable[str]) -> Iterator[Parse]:
        """Yield parses in order, as many at a time as the model serves; utterances are read as they are needed."""
        if self.max_concurrency == 1:
            yield from map(self.parse, utterances)
            return
        running: deque[Future[Parse]] = deque()
        with ThreadPoolExecutor(self.max_concurrency) as pool:
            try:
                for utterance in utterances:
                    running.append(pool.submit(self.parse, utterance))
                    if len(running) == self._max_in_flight:
                        yield running.popleft().result()
                while running:
                    yield running.popleft().result()
            finally:
                for future in running:
                    future.cancel()

    async def aparse(self, utterance: str, context: str = "") -> Parse:
        """Run `parse` in a thread; cancelling the task cancels the parse."""
        import asyncio

        cancel = threading.Event()
        work = partial(self.parse, utterance, context, cancel=cancel)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            cancel.set()

    async def aparse_many(self, utterances: Iterable[str]) -> AsyncIterator[Parse]:
        """Yield parses in order, each as soon as it and those before it are finished.

        At most as many parses run at a time as the model serves. Closing the iterator cancels those that run.
        """
        import asyncio

        running: deque[asyncio.Task[Parse]] = deque()
        try:
            for utterance in utterances:
                running.append(asyncio.create_task(self.aparse(utterance)))
                if len(running) == self._max_in_flight:
                    yield await running.popleft()
            while running:
                yield await running.popleft()
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    @property
    def _max_in_flight(self) -> int:
        """How many parses of a stream are unfinished or not yet yielded: enough to keep the model busy."""
        return 2 * self.max_concurrency

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        """The threads of `aparse`: asyncio's own pool may have fewer than the model serves."""
        return ThreadPoolExecutor(self.max_concurrency, thread_name_prefix="fewparse")
