"""Servers that never finish, send too much or send nonsense: the time and the memory of a request stay limited."""

import gzip
import json
import socket
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from fewparse.errors import FewparseError, ServerError, ServerUnavailable, ServerUnsupported, UsageError
from fewparse.limits import RESPONSE_BYTES
from fewparse.lm.http import client as client_module
from fewparse.lm.http.client import HttpClient
from fewparse.lm.http.wire import parse_reply
from fewparse.retry import RetryPolicy
from support.hostile_servers import (
    CHUNKED,
    ENDLESS,
    ESCAPES,
    GZIPPED,
    OK,
    SURROGATE,
    EndlessServer,
    RawServer,
    gzip_bomb,
)
from support.remote_models import GOOD, CannedResponse, ScriptedServer, http_client

RETRY = RetryPolicy(timeout=0.3, deadline=0.6)
LONGEST = 5.0
"""Far more than the deadline, for a busy machine, and far less than endless."""
BODY = {"model": "toy", "prompt": "pear"}
LIMIT = 1_000_000


def post(client: HttpClient, body: Any = None) -> Any:
    return client.post("/v1/completions", body or BODY, lambda payload: payload).content


@contextmanager
def within_the_deadline() -> Iterator[None]:
    start = time.monotonic()
    yield
    assert time.monotonic() - start < LONGEST


@pytest.fixture
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RESPONSE_BYTES.variable, str(LIMIT))


# Time


@pytest.mark.parametrize("pause", [0.02, 0], ids=["slowly", "fast"])
@pytest.mark.parametrize("name", ENDLESS)
def test_no_endless_response_outlasts_the_deadline(name: str, pause: float) -> None:
    with (
        EndlessServer(*ENDLESS[name], pause) as server,
        http_client(server.url, retry=RETRY) as client,
        within_the_deadline(),
        pytest.raises(ServerError) as caught,
    ):
        post(client)
    assert caught.value.hint


def test_a_server_that_reads_no_request_does_not_outlast_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, within_the_deadline():
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        with http_client(url, retry=RETRY) as client, pytest.raises(ServerUnavailable, match="no response within"):
            post(client, {"prompt": "x" * 30_000_000})


@contextmanager
def raw_listener(talk: Callable[[socket.socket], None]) -> Iterator[int]:
    """Listen on a port and talk to each connection in a thread of its own."""
    threads: list[threading.Thread] = []

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threads.append(threading.Thread(target=talk, args=(connection,), daemon=True))
                threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=serve, daemon=True)
        server.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        server.join()
    for thread in threads:
        thread.join()


def test_a_request_that_is_read_slowly_does_not_outlast_the_deadline() -> None:
    stopping = threading.Event()

    def read_slowly(connection: socket.socket) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with connection, suppress(OSError):
            while not stopping.wait(0.02) and connection.recv(4096):
                pass

    with raw_listener(read_slowly) as port, within_the_deadline():
        with http_client(f"http://127.0.0.1:{port}/v1", retry=RETRY) as client, pytest.raises(ServerUnavailable):
            post(client, {"prompt": "x" * 30_000_000})
        stopping.set()


def test_a_slow_tls_handshake_does_not_outlast_the_deadline() -> None:
    stopping = threading.Event()

    def shake_hands_slowly(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.sendall(b"\x16\x03\x03\x40\x00")
            while not stopping.wait(0.02):
                connection.sendall(b"\x02")

    with raw_listener(shake_hands_slowly) as port, within_the_deadline():
        with http_client(f"https://127.0.0.1:{port}/v1", retry=RETRY) as client, pytest.raises(ServerUnavailable):
            post(client)
        stopping.set()


def test_a_name_that_is_never_resolved_does_not_outlast_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()

    def unresolved(*_arguments: object, **_more: object) -> list[Any]:
        released.wait(30)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", unresolved)
    with (
        within_the_deadline(),
        http_client("http://slow.example/v1", retry=RETRY) as client,
        pytest.raises(ServerUnavailable, match="no connection within"),
    ):
        post(client)
    released.set()


def test_a_name_that_cannot_be_a_name_is_an_unknown_host() -> None:
    with http_client(f"http://{'a' * 70}.example/v1", retry=RETRY) as client, pytest.raises(FewparseError):
        post(client)


def test_all_addresses_of_a_host_share_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first addresses refuse, the last one is the server."""
    real = socket.getaddrinfo
    with ScriptedServer() as server:
        port = int(server.url.split(":")[2].removesuffix("/v1"))
        found = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in ("127.0.0.9", "127.0.0.1")
        ]
        named = {"many.example": found}
        monkeypatch.setattr(socket, "getaddrinfo", lambda host, *a, **k: named.get(host) or real(host, *a, **k))
        with http_client(f"http://many.example:{port}/v1", retry=RETRY) as client:
            assert post(client) == GOOD


@pytest.mark.parametrize("value", ["1e9", "inf", "nan", "-1", "-inf", "1" * 5000, "Mon, 1 Jan 99999 00:00:00 GMT"])
def test_no_retry_after_outlasts_the_deadline(value: str) -> None:
    response = CannedResponse(429, {"error": {"message": "busy"}}, [("Retry-After", value)])
    with (
        ScriptedServer(response) as server,
        http_client(server.url, retry=RETRY) as client,
        within_the_deadline(),
        pytest.raises(ServerUnavailable),
    ):
        post(client)


def test_a_redirect_in_a_circle_is_not_followed() -> None:
    response = CannedResponse(302, b"", [("Location", "/v1/completions")])
    with ScriptedServer(response) as server, http_client(server.url, retry=RETRY) as client:
        with pytest.raises(ServerError, match="redirects"):
            post(client)
        assert len(server.requests) == 1


# Size


@pytest.mark.usefixtures("small_limit")
@pytest.mark.parametrize(
    ("start", "repeated"),
    [(OK + b"\r\n", b" " * 1000), (CHUNKED, b"3e8\r\n" + b" " * 1000 + b"\r\n")],
    ids=["until the connection closes", "in chunks"],
)
def test_an_endless_body_is_refused_at_the_limit(start: bytes, repeated: bytes) -> None:
    with EndlessServer(start, repeated, 0) as server, http_client(server.url) as client:
        tracemalloc.start()
        with pytest.raises(ServerUnsupported, match="larger than 1,000,000 bytes") as caught:
            post(client)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert server.connections == 1, "it is not retried"
    assert RESPONSE_BYTES.variable in str(caught.value.hint)
    assert peak < 20 * LIMIT


@pytest.mark.usefixtures("small_limit")
def test_a_gzip_bomb_is_refused_before_it_fills_the_memory() -> None:
    bomb = GZIPPED + gzip_bomb(300 * LIMIT)
    with RawServer(bomb) as server, http_client(server.url) as client:
        tracemalloc.start()
        with pytest.raises(ServerUnsupported, match="larger than"):
            post(client)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 10 * LIMIT


@pytest.mark.parametrize(
    "encoding", ["deflate", "br", "zstd", "gzip, gzip", "gzip,br", "x" * 1000, ESCAPES[:1] + "x"]
)
def test_an_encoding_that_was_not_requested_is_refused(encoding: str) -> None:
    response = OK + f"Content-Encoding: {encoding}\r\n\r\n".encode() + zlib.compress(b"{}")
    with (
        RawServer(response) as server,
        http_client(server.url, retry=RETRY) as client,
        pytest.raises(ServerError) as caught,
    ):
        post(client)
    assert "\x1b" not in str(caught.value)


def test_a_compressed_response_is_decoded() -> None:
    expected = {"text": "pear " * 500_000}
    response = GZIPPED + gzip.compress(json.dumps(expected).encode())
    with RawServer(response) as server, http_client(server.url) as client:
        assert post(client) == expected


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 200_000,
        b'{"a":' * 100_000,
        b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a": ' + b"7" * 5_000 + b"}",
        b'{"a": ' + b"7" * 4_000_000 + b"}",
        b"\xff\xfe\x00",
        b"\xef\xbb\xbf",
    ],
    ids=["lists", "objects", "closed lists", "digits", "many digits", "half UTF-16", "byte order mark"],
)
def test_json_that_cannot_be_read_is_an_error(body: bytes) -> None:
    with (
        ScriptedServer(CannedResponse(200, body)) as server,
        http_client(server.url, retry=RETRY) as client,
        within_the_deadline(),
        pytest.raises(ServerUnavailable, match="not JSON"),
    ):
        post(client)


def test_json_with_too_many_values_is_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "MAX_JSON_VALUES", 1000)
    with ScriptedServer(CannedResponse(200, {"a": [[]] * 1000})) as server, http_client(server.url) as client:
        with pytest.raises(ServerUnsupported, match="more than 1,000 values"):
            post(client)
        assert len(server.requests) == 1


# Nonsense


@pytest.mark.parametrize(
    "response",
    [
        b"",
        b"\r\n\r\n",
        b"junk of HTTP/0.9\r\n",
        b"\x00" * 1000,
        b"SSH-2.0-OpenSSH_9\r\n",
        b"HTTP/1.1 999999 Odd\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\njunk",
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/3.7 200 OK\r\n\r\nno",
        OK + b"Content-Length: -1\r\n\r\n{}",
        OK + b"Content-Length: 9999999999999999999999\r\n\r\n{}",
        OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n{}",
        OK + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\n{}",
        OK + b"X: " + b"y" * 200_000 + b"\r\n\r\n{}",
        OK + b"X: y\r\n" * 20_000 + b"\r\nno",
        OK + b"Set-Cookie: \xff=\xfe; expires=never; domain=\x01\r\n\r\n",
        OK + b"Content-Type: \xff\xfe; charset=\x7f\r\nContent-Encoding: \xc3\x28\r\n\r\n{}",
        b"HTTP/1.1 302 Found\r\nLocation: \xff\xfe\x1b[31m\r\n\r\n",
        b"HTTP/1.1 500 \xff\xfe\r\nRetry-After: \xff\r\n\r\n\xff\xfe\x1b[31m",
    ],
)
def test_any_nonsense_is_an_error_without_escape_sequences(response: bytes) -> None:
    with (
        RawServer(response) as server,
        http_client(server.url, retry=RETRY) as client,
        within_the_deadline(),
        pytest.raises(ServerError) as caught,
    ):
        post(client)
    assert "\x1b" not in str(caught.value)
    assert len(caught.value.message) < 1000


def test_a_connection_that_goes_bad_is_replaced() -> None:
    good = json.dumps(GOOD).encode()
    length = f"Content-Length: {len(good)}\r\n\r\n".encode()
    with RawServer(OK + length + good + b"junk", close=False) as server, http_client(server.url) as client:
        assert [post(client) for _ in range(3)] == [GOOD] * 3


def test_cookies_are_not_sent_back() -> None:
    with (
        ScriptedServer(CannedResponse(200, GOOD, [("Set-Cookie", "a=b")])) as server,
        http_client(server.url) as client,
    ):
        post(client)
        post(client)
        assert all("Cookie" not in headers for _, headers, _ in server.requests)


@pytest.mark.parametrize(
    "message",
    [ESCAPES, SURROGATE, [[ESCAPES]], {"a": SURROGATE}, 7, True, 10**4000, [], "x" * 100_000, "\u202e\u2028\x00"],
    ids=repr,
)
@pytest.mark.parametrize("status", [200, 400, 401, 404, 429, 503])
def test_an_error_message_of_any_kind_is_safe_to_show(status: int, message: Any) -> None:
    for field in ("message", "code", "type", "detail", "n_ctx"):
        payload = {"error": {"message": "context too long: 10 of 20", "n_prompt_tokens": message, field: message}}
        with (
            ScriptedServer(CannedResponse(status, payload)) as server,
            http_client(server.url, retry=RetryPolicy(5, 5, max_attempts=1)) as client,
        ):
            with suppress(FewparseError):
                client.post("/v1/completions", BODY, parse_reply)
            with pytest.raises(FewparseError) as caught:
                client.post("/v1/completions", BODY, parse_reply)
        assert str(caught.value).encode()
        assert not set("\x1b\x07\x00\u202e\u2028") & set(str(caught.value))
        assert len(caught.value.message) < 1000


def test_text_that_is_not_unicode_is_not_sent() -> None:
    with ScriptedServer() as server, http_client(server.url) as client:
        with pytest.raises(UsageError, match="surrogate"):
            post(client, {"prompt": SURROGATE})
        assert not server.requests
