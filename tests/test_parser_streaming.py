"""Streaming many parses, and cancelling a parse."""

import asyncio
import itertools
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from fewparse import Parser
from fewparse.errors import ParseCancelled
from fewparse.lm.model import NextTokens
from support.letters_domain import make_letters
from support.toy_model import LongContextToyModel

WAIT = 60.0


class GatedModel(LongContextToyModel):
    """A toy model whose calls wait until their prompt is released; it counts concurrent calls."""

    max_concurrency = 3

    def __init__(self) -> None:
        super().__init__()
        self.released: dict[str, threading.Event] = {}
        self.started: list[str] = []
        self.running = 0
        self.max_running = 0
        self._lock = threading.Lock()

    def gate(self, utterance: str) -> threading.Event:
        with self._lock:
            return self.released.setdefault(utterance, threading.Event())

    def next_tokens(self, prompt: Any, prefixes: Sequence[Any], *rest: Any, **named: Any) -> list[NextTokens]:
        utterance = prompt.text.rsplit("; ", 1)[1].strip()
        with self._lock:
            first = utterance not in self.started
            if first:
                self.started.append(utterance)
            self.running += 1
            self.max_running = max(self.max_running, self.running)
        try:
            assert self.gate(utterance).wait(WAIT), "never released"
        finally:
            with self._lock:
                self.running -= 1
        return super().next_tokens(prompt, prefixes, *rest, **named)


@pytest.fixture
def gated() -> Iterator[GatedModel]:
    model = GatedModel()
    yield model
    for gate in model.released.values():
        gate.set()


def utterances(count: int) -> list[str]:
    return [f"item {i}" for i in range(count)]


def test_async_parses_come_in_order_as_soon_as_they_are_finished(tmp_path: Path, gated: GatedModel) -> None:
    parser = Parser.from_domain(make_letters(tmp_path), gated)

    async def run() -> list[str]:
        stream = parser.aparse_many(utterances(6))
        gated.gate("item 0").set()
        first = await asyncio.wait_for(anext(stream), WAIT)  # the others are still waiting
        for name in utterances(6):
            gated.gate(name).set()
        return [first.utterance, *[parse.utterance async for parse in stream]]

    assert asyncio.run(run()) == utterances(6)
    assert gated.max_running <= gated.max_concurrency


def test_an_infinite_iterator_of_utterances_is_read_lazily(tmp_path: Path, gated: GatedModel) -> None:
    parser = Parser.from_domain(make_letters(tmp_path), gated)
    read = 0

    def endless() -> Iterator[str]:
        nonlocal read
        for read in itertools.count(1):
            gated.gate(f"item {read}").set()
            yield f"item {read}"

    parses = parser.parse_many(endless())
    assert [next(parses).utterance for _ in range(5)] == [f"item {i}" for i in range(1, 6)]
    assert read <= 5 + 2 * gated.max_concurrency
    parses.close()  # type: ignore[attr-defined]

    async def run() -> list[str]:
        stream = parser.aparse_many(endless())
        found = [(await anext(stream)).utterance for _ in range(5)]
        await stream.aclose()  # type: ignore[attr-defined]
        return found

    assert asyncio.run(run()) == [f"item {i}" for i in range(1, 6)]
    assert read <= 5 + 2 * gated.max_concurrency


def test_a_parse_is_cancelled_from_another_thread(tmp_path: Path, gated: GatedModel) -> None:
    parser = Parser.from_domain(make_letters(tmp_path), gated)
    cancel = threading.Event()
    errors: list[BaseException] = []

    def work() -> None:
        try:
            parser.parse("item 0", cancel=cancel)
        except ParseCancelled as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    cancel.set()
    gated.gate("item 0").set()
    thread.join(WAIT)
    assert [str(error) for error in errors] == ["the parse was cancelled"]
    gated.gate("item 1").set()
    assert parser.parse("item 1").program is not None, "the parser still works"


def test_a_parse_that_waits_for_the_model_can_be_cancelled(tmp_path: Path, gated: GatedModel) -> None:
    gated.max_concurrency = 1
    parser = Parser.from_domain(make_letters(tmp_path), gated)
    busy = threading.Thread(target=parser.parse, args=("item 0",))
    busy.start()
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(ParseCancelled):
        parser.parse("item 1", cancel=cancel)
    gated.gate("item 0").set()
    busy.join(WAIT)
    assert not busy.is_alive()


def test_sampling_stops_when_a_parse_is_cancelled(tmp_path: Path) -> None:
    cancel = threading.Event()
    drawn = 0

    class Counting(LongContextToyModel):
        def logprobs(self, context: Sequence[int]) -> list[float]:
            nonlocal drawn
            drawn += 1
            cancel.set()
            return super().logprobs(context)

    parser = Parser.from_domain(make_letters(tmp_path), Counting(), decoder="speculative", width=8)
    with pytest.raises(ParseCancelled):
        parser.parse("item 0", cancel=cancel)
    assert drawn <= 8, "at most one token per sample"


def test_cancelling_the_task_cancels_the_parse(tmp_path: Path, gated: GatedModel) -> None:
    parser = Parser.from_domain(make_letters(tmp_path), gated, decoder="beam", width=2)

    async def run() -> None:
        task = asyncio.create_task(parser.aparse("item 0"))
        while not gated.started:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gated.gate("item 0").set()

    asyncio.run(run())
    before = gated.started.copy()
    assert before == ["item 0"]
    gated.gate("item 1").set()
    assert parser.parse("item 1").program is not None
