"""Each fault of the proxy is what it is called, and the log says which answers came through."""

import http.client
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import pytest

from support.faulty_proxy import (
    DROPPED_AFTER,
    DROPPED_BEFORE,
    DROPPED_WITHIN,
    FLIPPED,
    MOST_IN_A_ROW,
    SILENT,
    TRUNCATED,
    Fault,
    FaultyProxy,
    Rates,
    error,
    listening,
    request_hash,
    slow,
    too_many,
)
from support.toy_server import ToyServer

PATH = "/v1/completions"
BODY = json.dumps({"prompt": "pear", "seed": 1}).encode()


@contextmanager
def between(*faults: Fault | None, latency: float = 0) -> Iterator[tuple[FaultyProxy, ToyServer]]:
    """A proxy that plays these faults, before a server that is well."""
    with ToyServer() as server, FaultyProxy(server.url, faults, latency) as proxy:
        yield proxy, server


def ask(proxy: FaultyProxy, body: bytes = BODY, timeout: float = 10) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection(urlsplit(proxy.url).netloc, timeout=timeout)
    try:
        connection.request("POST", PATH, body, {"Content-Type": "application/json", "X-Mark": "kept"})
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


def test_without_a_fault_all_is_as_if_it_were_not_there() -> None:
    with between() as (proxy, server):
        response, read = ask(proxy)
        assert json.loads(read)["choices"][0]["index"] == 0
        assert response.headers["Content-Type"] == "application/json"
        assert server.requests[0].headers["X-Mark"] == "kept"
        assert server.requests[0].body == json.loads(BODY)
        record = proxy.log[0]
        assert (record.path, record.fault, record.status, record.forwarded) == (PATH, None, 200, True)
        assert proxy.succeeded() == Counter({request_hash("POST", PATH, BODY): 1})


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_a_refusal_comes_in_place_of_an_answer_and_the_next_is_well(status: int) -> None:
    with between(too_many() if status == 429 else error(status)) as (proxy, server):
        assert ask(proxy)[0].status == status
        assert (server.requests, proxy.log[0].forwarded, proxy.log[0].status) == ([], False, status)
        assert not proxy.succeeded()
        assert ask(proxy)[0].status == 200


def test_too_many_may_say_when_to_come_again() -> None:
    with between(too_many(), too_many(2), too_many(0.5), too_many(60, as_date=True)) as (proxy, _):
        told = [ask(proxy)[0].headers["Retry-After"] for _ in range(4)]
    assert told[:3] == [None, "2", "0.5"]
    assert parsedate_to_datetime(told[3]).timestamp() - time.time() == pytest.approx(60, abs=3)


@pytest.mark.parametrize(
    ("fault", "seen", "forwarded"),
    [
        (DROPPED_BEFORE, ConnectionResetError, False),
        (DROPPED_AFTER, http.client.RemoteDisconnected, True),
        (DROPPED_WITHIN, http.client.IncompleteRead, True),
    ],
)
def test_a_dropped_connection_is_seen_as_one(fault: Fault, seen: type[Exception], forwarded: bool) -> None:
    with between(fault) as (proxy, server):
        with pytest.raises(seen) as caught:
            ask(proxy)
        assert caught.type is seen  # a reset and an orderly end are not the same to a client
        assert len(server.requests) == forwarded
        assert proxy.log[0].forwarded is forwarded
        assert not proxy.succeeded()
        ask(proxy)
        assert list(proxy.succeeded().values()) == [1]


@pytest.mark.parametrize(("fault", "seen"), [(TRUNCATED, json.JSONDecodeError), (FLIPPED, UnicodeDecodeError)])
def test_a_garbled_answer_is_whole_by_its_length_and_no_json(fault: Fault, seen: type[Exception]) -> None:
    with between(None, fault) as (proxy, _):
        good = ask(proxy)[1]
        response, read = ask(proxy)
        assert (response.status, int(response.headers["Content-Length"])) == (200, len(read))
        assert len(read) == (len(good) if fault is FLIPPED else len(good) // 2)
        with pytest.raises(seen):
            json.loads(read)
        assert proxy.log[1].forwarded
        assert list(proxy.succeeded().values()) == [1]


def test_a_slow_answer_is_good_and_late() -> None:
    with between(slow(0.2)) as (proxy, _):
        assert elapsed(lambda: ask(proxy)) >= 0.2
        assert list(proxy.succeeded().values()) == [1]


def test_an_answer_that_nobody_waited_for_was_not_delivered() -> None:
    with between(slow(0.3)) as (proxy, server):
        with pytest.raises(TimeoutError):
            ask(proxy, timeout=0.1)
        time.sleep(0.4)
        assert len(server.requests) == 1
        assert proxy.log[0].forwarded
        assert not proxy.succeeded()


def test_whoever_has_hung_up_is_not_listening() -> None:
    one, other = socket.socketpair()
    with one:
        with other:
            assert listening(one)
            other.send(b"more")
            assert listening(one)
            one.recv(4)
        assert not listening(one)


def test_silence_lasts_until_somebody_gives_up_or_the_proxy_ends() -> None:
    threads = set(threading.enumerate())
    with between(SILENT) as (proxy, server):
        with pytest.raises(TimeoutError):
            ask(proxy, timeout=0.1)
        assert (server.requests, proxy.log[0].status) == ([], None)
    assert set(threading.enumerate()) <= threads


def test_latency_is_added_both_ways() -> None:
    with between(latency=50) as (proxy, _):
        assert elapsed(lambda: ask(proxy)) >= 0.1


def elapsed(action: Callable[[], Any]) -> float:
    begun = time.monotonic()
    action()
    return time.monotonic() - begun


def test_an_upstream_that_is_gone_is_a_bad_gateway() -> None:
    with ToyServer() as server:
        gone = server.url
    with FaultyProxy(gone) as proxy:
        assert ask(proxy)[0].status == 502
        assert (proxy.log[0].forwarded, proxy.succeeded()) == (False, Counter())


def test_what_the_upstream_refuses_is_passed_on_and_is_no_success() -> None:
    with between() as (proxy, _):
        assert ask(proxy, b"no JSON")[0].status == 400
        assert proxy.log[0].delivered
        assert not proxy.succeeded()


def test_faults_are_those_of_the_seed_and_the_request_in_whatever_order_they_are_asked() -> None:
    bodies = [json.dumps({"prompt": f"pear {i}"}).encode() for i in range(12)]

    def played(seed: int, asked: list[bytes]) -> dict[str, list[Fault | None]]:
        with ToyServer() as server, FaultyProxy(server.url, Rates(seed, delay=0)) as proxy:
            for body in asked:
                with suppress(OSError, http.client.HTTPException):
                    ask(proxy, body)
        faults: dict[str, list[Fault | None]] = {}
        for record in proxy.log:
            faults.setdefault(record.request, []).append(record.fault)
        return faults

    assert played(1, bodies * 2) == played(1, bodies[::-1] * 2)
    assert played(1, bodies) != played(2, bodies)


def test_faults_come_as_often_as_their_rates_say() -> None:
    rates = Rates(seed=1)
    drawn = [rates.fault(str(i), 0) for i in range(5000)]
    kinds = Counter("none" if fault is None else fault.kind for fault in drawn)
    refusals = Counter(fault.status for fault in drawn if fault is not None and fault.kind == "refused")
    assert refusals[429] / 5000 == pytest.approx(0.2, abs=0.02)
    assert sum(refusals[status] for status in (500, 502, 503)) / 5000 == pytest.approx(0.1, abs=0.015)
    dropped = kinds["dropped_before"] + kinds["dropped_after"] + kinds["dropped_within"]
    assert dropped / 5000 == pytest.approx(0.05, abs=0.012)
    assert (kinds["truncated"] + kinds["flipped"]) / 5000 == pytest.approx(0.05, abs=0.012)
    assert kinds["slow"] / 5000 == pytest.approx(0.05, abs=0.012)
    assert min(kinds.values()) > 0
    assert {rates.fault("again", seen) for seen in range(50)} > {None}


def test_a_request_that_comes_again_has_faults_drawn_anew() -> None:
    rates = Rates(1, too_many=0, error=0, dropped=0, garbled=0, slow=0.5, delay=0)
    with ToyServer() as server, FaultyProxy(server.url, rates) as proxy:
        for _ in range(12):
            ask(proxy)
    faults = [record.fault for record in proxy.log]
    assert set(faults) == {None, slow(0)}
    assert faults == [rates.fault(request_hash("POST", PATH, BODY), seen) for seen in range(12)]


def test_no_request_fails_more_than_three_times_in_a_row() -> None:
    with ToyServer() as server, FaultyProxy(server.url, Rates(1, too_many=0, error=1)) as proxy:
        assert [ask(proxy)[0].status == 200 for _ in range(8)] == ([False] * MOST_IN_A_ROW + [True]) * 2
        assert ask(proxy, b"{}")[0].status != 200


def test_many_clients_that_try_again_get_each_answer_once_and_the_log_knows() -> None:
    bodies = [json.dumps({"prompt": f"pear {i}", "seed": i}).encode() for i in range(60)]

    def until_answered(body: bytes) -> Any:
        while True:
            try:
                response, read = ask(proxy, body)
                if response.status == 200:
                    return json.loads(read)
            except (OSError, http.client.HTTPException, ValueError):
                continue

    with ToyServer() as server, FaultyProxy(server.url, Rates(seed=2, delay=0.01)) as proxy:
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(until_answered, bodies))
        assert proxy.succeeded() == Counter({request_hash("POST", PATH, body): 1 for body in bodies})
        assert len(proxy.log) > len(bodies)
        assert sum(record.forwarded for record in proxy.log) == len(server.requests)
        assert {record.fault for record in proxy.log} > {None}
    assert all(answer["choices"] for answer in answers)
