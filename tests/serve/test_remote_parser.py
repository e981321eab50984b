"""`Parser.from_url`: its parses are those of `Parser`, it obeys the same laws, and it repeats failed requests."""

import asyncio
import gc
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fewparse import (
    Event,
    Parse,
    ParseCancelled,
    Parser,
    RetryPolicy,
    ServerRejected,
    ServerUnavailable,
    ServerUnsupported,
    UsageError,
)
from fewparse.client import RemoteParser, RequestOptions
from fewparse.concurrent_parser import ConcurrentParser
from fewparse.lm.embedded import EmbeddedModel
from support.loopback import Headers, LoopbackServer, RequestHandler, unused_address
from support.serving import GatedModel, Served, running

UTTERANCES = ["lamp on in the hall", "radio off in the attic", "lamp off in the office"]
ONCE = RetryPolicy(max_attempts=1)
KEY = "a key of twenty characters".replace(" ", "-")


class Flaky(LoopbackServer):
    """Fails in these ways, one after the other; then passes requests on."""

    def __init__(self, target: Served, failures: list[tuple[int, bytes, Headers]]) -> None:
        super().__init__()
        self._target, self._failures = target, failures

    def respond(self, handler: RequestHandler, body: bytes) -> None:
        if self._failures:
            handler.reply(*self._failures.pop(0))
            return
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
        found = self._target.client.post("/v1/parse/stream", content=body, headers=headers)
        handler.reply(found.status_code, found.content)


@pytest.fixture(scope="module")
def served(gated: GatedModel, folder: Path) -> Iterator[Served]:
    with running(gated, folder, api_keys=[KEY]) as started:
        yield started


@pytest.fixture(scope="module")
def local(embedded: EmbeddedModel, folder: Path) -> Parser:
    return Parser.from_domain(folder, embedded)


@pytest.fixture(scope="module")
def remote(served: Served) -> Iterator[RemoteParser]:
    with Parser.from_url(served.url, api_key=KEY) as parser:
        yield parser


@pytest.fixture(params=["local", "remote"])
def parser(request: pytest.FixtureRequest) -> ConcurrentParser:
    found: ConcurrentParser = request.getfixturevalue(request.param)
    return found


def compared(parse: Parse) -> object:
    return {**parse.as_dict(), "usage": None, "model": None}, parse.examples, parse.prompt.text, parse.trace


def test_a_remote_parse_equals_a_local_one(local: Parser, remote: RemoteParser) -> None:
    for utterance in UTTERANCES:
        assert compared(remote.parse(utterance)) == compared(local.parse(utterance))


def test_options_are_sent_with_the_request(served: Served, local: Parser) -> None:
    options: RequestOptions = {"decoder": "beam", "width": 2, "n_best": 2}
    with Parser.from_url(served.url, "switches", api_key=KEY, **options) as wider:
        assert len(wider.parse(UTTERANCES[0]).candidates) == 2


def test_the_listener_receives_the_prompt_and_every_event_of_the_trace(parser: ConcurrentParser) -> None:
    events: list[Event] = []
    parse = parser.parse(UTTERANCES[0], emit=events.append)
    assert tuple(events[1:]) == parse.trace
    assert type(events[0]).__name__ == "Prompted"


def test_many_utterances_are_parsed_in_order(parser: ConcurrentParser) -> None:
    assert [parse.utterance for parse in parser.parse_many(UTTERANCES)] == UTTERANCES

    async def stream() -> list[str]:
        return [parse.utterance async for parse in parser.aparse_many(UTTERANCES)]

    assert asyncio.run(stream()) == UTTERANCES


def test_a_parse_from_asyncio_is_the_same(parser: ConcurrentParser) -> None:
    assert compared(asyncio.run(parser.aparse(UTTERANCES[0]))) == compared(parser.parse(UTTERANCES[0]))


@pytest.mark.parametrize("utterance", ["", " \n", "a \ud800"])
def test_an_utterance_that_cannot_be_parsed_is_an_error(parser: ConcurrentParser, utterance: str) -> None:
    with pytest.raises(UsageError):
        parser.parse(utterance)


def test_a_cancelled_parse_ends_before_it_begins(parser: ConcurrentParser) -> None:
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(ParseCancelled):
        parser.parse(UTTERANCES[0], cancel=cancel)


def test_a_cancelled_parse_ends_on_the_server_too(served: Served, remote: RemoteParser, gated: GatedModel) -> None:
    cancel, ended = threading.Event(), list[type[BaseException]]()
    while gated.waiting.acquire(blocking=False):
        pass
    gated.gate.clear()

    def parse() -> None:
        with pytest.raises(ParseCancelled) as raised:
            remote.parse(UTTERANCES[0], cancel=cancel)
        ended.append(raised.type)

    thread = threading.Thread(target=parse)
    thread.start()
    assert gated.waiting.acquire(timeout=30)
    cancel.set()
    thread.join(30)
    assert ended == [ParseCancelled]
    deadline = time.monotonic() + 20
    while not all(flag.is_set() for flag in served.service.searches._running):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    gated.gate.set()
    served.wait_until_idle()


@pytest.mark.parametrize(
    ("domain", "key", "options", "error", "words"),
    [
        (None, KEY + "x", {}, ServerRejected, "key is missing or wrong"),
        ("switch", KEY, {}, UsageError, "Did you mean switches"),
        (None, KEY, {"width": 50}, UsageError, "at most 20"),
    ],
)
def test_a_wrong_key_an_unknown_domain_and_a_wrong_option_are_explained(
    served: Served, domain: str | None, key: str, options: RequestOptions, error: type[Exception], words: str
) -> None:
    with Parser.from_url(served.url, domain, api_key=key, **options) as parser, pytest.raises(error, match=words):
        parser.parse(UTTERANCES[0])


def test_an_address_without_a_scheme_is_refused() -> None:
    with pytest.raises(UsageError, match="not the address"):
        Parser.from_url("localhost:8000")


def test_connections_are_used_again_and_closed_with_the_parser(served: Served) -> None:
    with Flaky(served, []) as server:
        parser = Parser.from_url(server.url.removesuffix("v1"))
        for utterance in UTTERANCES:
            parser.parse(utterance)
        assert (server.connections, server.open_connections) == (1, 1)
        del parser
        gc.collect()
        deadline = time.monotonic() + 20
        while server.open_connections:
            assert time.monotonic() < deadline, "the connection was not closed"
            time.sleep(0.01)


def test_a_busy_server_is_asked_again(served: Served) -> None:
    failures: list[tuple[int, bytes, Headers]] = [
        (429, b"{}", [("Retry-After", "0")]),
        (503, b"not json", []),
        (200, b"", []),
        (200, b'event: Failed\ndata: {"error": {"code": "shutting_down", "message": "m", "hint": null}}\n\n', []),
    ]
    with Flaky(served, failures) as server, Parser.from_url(server.url.removesuffix("v1")) as parser:
        found = parser.parse(UTTERANCES[0])
    assert found.program is not None
    assert failures == []


def test_a_request_that_may_have_executed_a_program_is_not_repeated(served: Served) -> None:
    lost: tuple[int, bytes, Headers] = (200, b"event: Started\ndata: {}\n\n", [])
    failures = [lost, lost]
    with (
        Flaky(served, failures) as server,
        Parser.from_url(server.url.removesuffix("v1"), execute=True) as parser,
        pytest.raises(ServerUnavailable, match="was lost"),
    ):
        parser.parse(UTTERANCES[0])
    assert failures == [lost]


def test_a_server_that_does_not_respond_or_is_another_one_is_an_error(served: Served) -> None:
    address = unused_address().removesuffix("v1")
    with Parser.from_url(address, retry=ONCE) as parser, pytest.raises(ServerUnavailable, match="did not respond"):
        parser.parse(UTTERANCES[0])
    with (
        Flaky(served, [(200, b"event: Parsed\ndata: {}\n\n", [])]) as server,
        Parser.from_url(server.url.removesuffix("v1"), retry=ONCE) as parser,
        pytest.raises(ServerUnsupported),
    ):
        parser.parse(UTTERANCES[0])
