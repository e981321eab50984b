"""Event streams: the events of a search arrive before its result, and a search ends when its client goes."""

import signal
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fewparse.serve import server
from support.serving import LIMITS, UTTERANCE, GatedModel, Served, running


@pytest.fixture(scope="module")
def switches(gated: GatedModel, folder: Path) -> Iterator[Served]:
    """A server with a small domain, whose model can be stopped; two requests may wait."""
    with running(gated, folder, limits=replace(LIMITS, queue=2, streams=3)) as served:
        yield served


@pytest.fixture
def closed(gated: GatedModel, switches: Served) -> Iterator[GatedModel]:
    """The model while it is stopped."""
    while gated.waiting.acquire(blocking=False):
        pass
    gated.gate.clear()
    yield gated
    gated.gate.set()
    switches.wait_until_idle()


def wait_until_cancelled(served: Served) -> None:
    """Return when the searches that run have been cancelled."""
    deadline = time.monotonic() + 20
    while not all(flag.is_set() for flag in served.service.searches._running):
        assert time.monotonic() < deadline, "the search was not cancelled"
        time.sleep(0.01)


def test_the_events_of_a_search_come_in_order_and_end_with_the_parse(served: Served) -> None:
    events = list(served.events({"utterance": UTTERANCE}))
    names = [name for name, _ in events]
    assert names[:4] == ["Queued", "Started", "Prompted", "RoundStarted"]
    assert names[-2:] == ["RoundEnded", "Parsed"]
    assert UTTERANCE in events[2][1]["prompt"]
    (parse,) = served.post("/v1/parse", {"utterance": UTTERANCE}).json()["parses"]
    assert events[-1][1]["output"] == parse["output"] == "when is my next meeting with Elena"


def test_the_examples_of_a_prompt_come_with_their_similarity(switches: Served) -> None:
    events = dict(switches.events({"utterance": "lamp on in the hall", "options": {"retriever": "bm25"}}))
    prompted = events["Prompted"]
    assert len(prompted["examples"]) == len(prompted["similarities"]) == 2
    assert prompted["similarities"] == sorted(prompted["similarities"], reverse=True)
    assert prompted["similarities"][0] > 0


def test_the_first_event_comes_before_the_model_has_answered(switches: Served, closed: GatedModel) -> None:
    events = switches.events({"utterance": "lamp on in the hall"})
    assert [next(events)[0] for _ in range(4)] == ["Queued", "Started", "Prompted", "RoundStarted"]
    closed.gate.set()
    assert [name for name, _ in events][-1] == "Parsed"


def test_a_stream_that_fails_ends_with_the_reason(switches: Served, closed: GatedModel) -> None:
    events = list(switches.events({"utterance": "lamp on in the hall", "deadline": 0.05}))
    name, data = events[-1]
    assert (name, data["error"]["code"]) == ("Failed", "deadline_exceeded")


def test_a_deadline_ends_a_request_and_its_search(switches: Served, closed: GatedModel) -> None:
    response = switches.post("/v1/parse", {"utterance": "lamp on in the hall", "deadline": 0.05})
    assert (response.status_code, response.json()["error"]["code"]) == (504, "deadline_exceeded")
    closed.gate.set()
    switches.wait_until_idle()


@pytest.mark.parametrize("path", ["/v1/parse", "/v1/parse/stream"])
def test_a_search_ends_when_its_client_goes(
    switches: Served, closed: GatedModel, gated: GatedModel, path: str
) -> None:
    body = b'{"utterance": "lamp on in the hall"}'
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", int(switches.url.rpartition(":")[2]))) as connection:
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        assert closed.waiting.acquire(timeout=20)
    wait_until_cancelled(switches)
    calls_before = sum(1 for _ in iter(lambda: gated.waiting.acquire(blocking=False), False))
    closed.gate.set()
    switches.wait_until_idle()
    assert not gated.waiting.acquire(blocking=False), calls_before  # no further query was sent


def test_more_requests_than_may_wait_are_refused_and_can_be_repeated(switches: Served, closed: GatedModel) -> None:
    statuses: list[int] = []

    def parse() -> None:
        statuses.append(switches.post("/v1/parse", {"utterance": "lamp on in the hall"}).status_code)

    threads = [threading.Thread(target=parse) for _ in range(3)]
    for thread in threads:
        thread.start()
    while switches.service.searches.waiting < 2:
        time.sleep(0.01)
    refused = switches.post("/v1/parse", {"utterance": "lamp on in the hall"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "overloaded")
    assert int(refused.headers["Retry-After"]) >= 1
    stream = switches.post("/v1/parse/stream", {"utterance": "lamp on in the hall"})
    assert stream.status_code == 429
    closed.gate.set()
    for thread in threads:
        thread.join()
    assert statuses == [200, 200, 200]
    assert switches.post("/v1/parse", {"utterance": "lamp on in the hall"}).status_code == 200


def test_a_search_that_outlasts_the_grace_period_ends_with_the_reason(
    gated: GatedModel, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "CANCEL_SECONDS", server.GRACE_SECONDS)
    with running(gated, folder) as ending:
        gated.gate.clear()
        events = ending.events({"utterance": "lamp on in the hall"})
        assert [next(events)[0] for _ in range(4)][-1] == "RoundStarted"
        ending.server.handle_exit(signal.SIGTERM, None)
        wait_until_cancelled(ending)
        gated.gate.set()
        name, data = list(events)[-1]
    assert (name, data["error"]["code"]) == ("Failed", "cancelled")


def test_grammar_work_does_not_wait_for_searches(switches: Served, closed: GatedModel, tmp_path: Path) -> None:
    waiting = threading.Thread(target=switches.post, args=("/v1/parse", {"utterance": "lamp on in the hall"}))
    waiting.start()
    assert closed.waiting.acquire(timeout=20)
    assert switches.post("/v1/check", {"text": "(on lamp hall)"}).json()["accepted"] is True
    closed.gate.set()
    waiting.join()
