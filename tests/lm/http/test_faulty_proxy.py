"""Each fault of the proxy has the effect of its name, and the log states which responses were delivered."""

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
    MAX_CONSECUTIVE_FAULTS,
    SILENT,
    TRUNCATED,
    Fault,
    FaultyProxy,
    Rates,
    error,
    is_connected,
    request_hash,
    slow,
    too_many,
)
from support.toy_server import ToyServer

PATH = "/v1/completions"
BODY = json.dumps({"prompt": "pear", "seed": 1}).encode()


@contextmanager
def proxied(*faults: Fault | None, latency: float = 0) -> Iterator[tuple[FaultyProxy, ToyServer]]:
    """A proxy that plays these faults, in front of a toy server."""
    with ToyServer() as server, FaultyProxy(server.url, faults, latency) as proxy:
        yield proxy, server


def post(proxy: FaultyProxy, body: bytes = BODY, timeout: float = 60) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection(urlsplit(proxy.url).netloc, timeout=timeout)
    try:
        connection.request("POST", PATH, body, {"Content-Type": "application/json", "X-Mark": "yes"})
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


def test_without_faults_the_proxy_is_transparent() -> None:
    with proxied() as (proxy, server):
        response, content = post(proxy)
        assert json.loads(content)["choices"][0]["index"] == 0
        assert response.headers["Content-Type"] == "application/json"
        assert server.requests[0].headers["X-Mark"] == "yes"
        assert server.requests[0].body == json.loads(BODY)
        record = proxy.log[0]
        assert (record.path, record.fault, record.status, record.forwarded) == (PATH, None, 200, True)
        assert proxy.succeeded() == Counter({request_hash("POST", PATH, BODY): 1})


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_an_error_status_replaces_one_response(status: int) -> None:
    with proxied(too_many() if status == 429 else error(status)) as (proxy, server):
        assert post(proxy)[0].status == status
        assert (server.requests, proxy.log[0].forwarded, proxy.log[0].status) == ([], False, status)
        assert not proxy.succeeded()
        assert post(proxy)[0].status == 200


def test_status_429_may_have_a_retry_after() -> None:
    with proxied(too_many(), too_many(2), too_many(0.5), too_many(60, as_date=True)) as (proxy, _):
        headers = [post(proxy)[0].headers["Retry-After"] for _ in range(4)]
    assert headers[:3] == [None, "2", "0.5"]
    assert parsedate_to_datetime(headers[3]).timestamp() - time.time() == pytest.approx(60, abs=30)


@pytest.mark.parametrize(
    ("fault", "expected", "forwarded"),
    [
        (DROPPED_BEFORE, ConnectionResetError, False),
        (DROPPED_AFTER, http.client.RemoteDisconnected, True),
        (DROPPED_WITHIN, http.client.IncompleteRead, True),
    ],
)
def test_a_dropped_connection_raises_the_matching_error(
    fault: Fault, expected: type[Exception], forwarded: bool
) -> None:
    with proxied(fault) as (proxy, server):
        with pytest.raises(expected) as caught:
            post(proxy)
        assert caught.type is expected  # a reset and an orderly end differ for a client
        assert len(server.requests) == forwarded
        assert proxy.log[0].forwarded is forwarded
        assert not proxy.succeeded()
        post(proxy)
        assert list(proxy.succeeded().values()) == [1]


@pytest.mark.parametrize(("fault", "expected"), [(TRUNCATED, json.JSONDecodeError), (FLIPPED, UnicodeDecodeError)])
def test_a_garbled_response_has_a_matching_length_and_is_not_json(fault: Fault, expected: type[Exception]) -> None:
    with proxied(None, fault) as (proxy, _):
        good = post(proxy)[1]
        response, content = post(proxy)
        assert (response.status, int(response.headers["Content-Length"])) == (200, len(content))
        assert len(content) == (len(good) if fault is FLIPPED else len(good) // 2)
        with pytest.raises(expected):
            json.loads(content)
        assert proxy.log[1].forwarded
        assert list(proxy.succeeded().values()) == [1]


def test_a_slow_response_is_good_and_delayed() -> None:
    with proxied(slow(0.2)) as (proxy, _):
        assert elapsed(lambda: post(proxy)) >= 0.2
        assert list(proxy.succeeded().values()) == [1]


def test_a_response_after_the_clients_timeout_is_not_delivered() -> None:
    with proxied(slow(2)) as (proxy, server):
        with pytest.raises(TimeoutError):
            post(proxy, timeout=1)
        while proxy.log[0].status is None:
            time.sleep(0.01)
    assert len(server.requests) == 1
    assert proxy.log[0].forwarded
    assert not proxy.succeeded()


def test_a_closed_connection_is_not_connected() -> None:
    one, other = socket.socketpair()
    with one:
        with other:
            assert is_connected(one)
            other.send(b"more")
            assert is_connected(one)
            one.recv(4)
        assert not is_connected(one)


def test_a_silent_fault_lasts_until_the_client_or_the_proxy_ends() -> None:
    threads = set(threading.enumerate())
    with proxied(SILENT) as (proxy, server):
        with pytest.raises(TimeoutError):
            post(proxy, timeout=1)
        assert (server.requests, proxy.log[0].status) == ([], None)
    assert set(threading.enumerate()) <= threads


def test_latency_is_added_in_both_directions() -> None:
    with proxied(latency=50) as (proxy, _):
        assert elapsed(lambda: post(proxy)) >= 0.1


def elapsed(action: Callable[[], Any]) -> float:
    start = time.monotonic()
    action()
    return time.monotonic() - start


def test_a_missing_upstream_is_a_bad_gateway() -> None:
    with ToyServer() as server:
        gone = server.url
    with FaultyProxy(gone) as proxy:
        assert post(proxy)[0].status == 502
        assert (proxy.log[0].forwarded, proxy.succeeded()) == (False, Counter())


def test_an_upstream_error_is_forwarded_and_no_success() -> None:
    with proxied() as (proxy, _):
        assert post(proxy, b"no JSON")[0].status == 400
        assert proxy.log[0].delivered
        assert not proxy.succeeded()


def test_faults_depend_on_seed_and_request_not_on_order() -> None:
    bodies = [json.dumps({"prompt": f"pear {i}"}).encode() for i in range(12)]

    def faults_of(seed: int, requests: list[bytes]) -> dict[str, list[Fault | None]]:
        with ToyServer() as server, FaultyProxy(server.url, Rates(seed, delay=0)) as proxy:
            for body in requests:
                with suppress(OSError, http.client.HTTPException):
                    post(proxy, body)
        faults: dict[str, list[Fault | None]] = {}
        for record in proxy.log:
            faults.setdefault(record.request, []).append(record.fault)
        return faults

    assert faults_of(1, bodies * 2) == faults_of(1, bodies[::-1] * 2)
    assert faults_of(1, bodies) != faults_of(2, bodies)


def test_fault_frequencies_match_the_rates() -> None:
    rates = Rates(seed=1)
    drawn = [rates.fault(str(i), 0) for i in range(5000)]
    kinds = Counter("none" if fault is None else fault.kind for fault in drawn)
    rejections = Counter(fault.status for fault in drawn if fault is not None and fault.kind == "rejected")
    assert rejections[429] / 5000 == pytest.approx(0.2, abs=0.02)
    assert sum(rejections[status] for status in (500, 502, 503)) / 5000 == pytest.approx(0.1, abs=0.015)
    dropped = kinds["dropped_before"] + kinds["dropped_after"] + kinds["dropped_within"]
    assert dropped / 5000 == pytest.approx(0.05, abs=0.012)
    assert (kinds["truncated"] + kinds["flipped"]) / 5000 == pytest.approx(0.05, abs=0.012)
    assert kinds["slow"] / 5000 == pytest.approx(0.05, abs=0.012)
    assert min(kinds.values()) > 0
    assert {rates.fault("again", earlier) for earlier in range(50)} > {None}


def test_faults_of_a_repeated_request_are_drawn_again() -> None:
    rates = Rates(1, too_many=0, error=0, dropped=0, garbled=0, slow=0.5, delay=0)
    with ToyServer() as server, FaultyProxy(server.url, rates) as proxy:
        for _ in range(12):
            post(proxy)
    faults = [record.fault for record in proxy.log]
    assert set(faults) == {None, slow(0)}
    assert faults == [rates.fault(request_hash("POST", PATH, BODY), earlier) for earlier in range(12)]


def test_no_request_fails_more_than_three_times_in_a_row() -> None:
    with ToyServer() as server, FaultyProxy(server.url, Rates(1, too_many=0, error=1)) as proxy:
        assert [post(proxy)[0].status == 200 for _ in range(8)] == ([False] * MAX_CONSECUTIVE_FAULTS + [True]) * 2
        assert post(proxy, b"{}")[0].status != 200


def test_retrying_clients_get_each_response_once_according_to_the_log() -> None:
    bodies = [json.dumps({"prompt": f"pear {i}", "seed": i}).encode() for i in range(60)]

    def until_successful(body: bytes) -> Any:
        while True:
            try:
                response, content = post(proxy, body)
                if response.status == 200:
                    return json.loads(content)
            except (OSError, http.client.HTTPException, ValueError):
                continue

    with ToyServer() as server, FaultyProxy(server.url, Rates(seed=2, delay=0.01)) as proxy:
        with ThreadPoolExecutor(8) as pool:
            responses = list(pool.map(until_successful, bodies))
        assert proxy.succeeded() == Counter({request_hash("POST", PATH, body): 1 for body in bodies})
        assert len(proxy.log) > len(bodies)
        assert sum(record.forwarded for record in proxy.log) == len(server.requests)
        assert {record.fault for record in proxy.log} > {None}
    assert all(response["choices"] for response in responses)
