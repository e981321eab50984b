"""One HTTP exchange within a time and a size, whatever the server sends.

The time limits of httpx2 apply to single reads and writes, so a server that sends a byte now and then is never
over them. Here the time left of the whole exchange limits each of them: name resolution, connection, TLS
handshake, request, headers and body. Only gzip is decoded, in small pieces, so that a small body cannot fill the
memory.
"""

import math
import queue
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, NamedTuple

import httpcore2
import httpx2

from fewparse.errors import RuntimeMismatch, ServerUnsupported
from fewparse.limits import RESPONSE_BYTES

WRITE_BYTES = 1 << 14
DECODED_BYTES = 1 << 18
MAX_SOCKET_SECONDS = 1e6
"""Sockets reject much longer time limits."""
GZIP = ("gzip", "x-gzip")
GZIP_WINDOW = 16 + zlib.MAX_WBITS
SocketOptions = Iterable[Any] | None


class RawResponse(NamedTuple):
    """A complete response as received."""

    status: int
    headers: httpx2.Headers
    body: bytes

    @property
    def is_html(self) -> bool:
        """Whether the body is a web page."""
        return "html" in self.headers.get("Content-Type", "")


class Clock(threading.local):
    """The end of the exchange that the current thread is in."""

    end = math.inf

    @contextmanager
    def limited(self, seconds: float) -> Iterator[None]:
        """Let the exchange in this block take at most this long."""
        self.end = time.monotonic() + seconds
        try:
            yield
        finally:
            self.end = math.inf

    def left(self, timeout: float | None, over: type[Exception]) -> float:
        """Return the seconds that are left, at most `timeout`; raise `over` if there are none."""
        seconds = self.end - time.monotonic()
        if seconds <= 0:
            raise over("the time is over")
        return min(seconds, MAX_SOCKET_SECONDS if timeout is None else timeout)


class TimedStream(httpcore2.NetworkStream):
    """A connection whose reads and writes end when the exchange must."""

    def __init__(self, stream: httpcore2.NetworkStream, clock: Clock) -> None:
        self._stream = stream
        self._clock = clock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return what is available, waiting for the first byte."""
        return self._stream.read(max_bytes, self._clock.left(timeout, httpcore2.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write in small pieces: the wrapped stream applies its time limit to each `send` of a piece."""
        for start in range(0, len(buffer), WRITE_BYTES):
            piece = buffer[start : start + WRITE_BYTES]
            self._stream.write(piece, self._clock.left(timeout, httpcore2.WriteTimeout))

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        """Return the connection after a TLS handshake."""
        seconds = self._clock.left(timeout, httpcore2.ConnectTimeout)
        return TimedStream(self._stream.start_tls(ssl_context, server_hostname, seconds), self._clock)

    def get_extra_info(self, info: str) -> Any:
        """Return information about the connection."""
        return self._stream.get_extra_info(info)


class TimedBackend(httpcore2.NetworkBackend):
    """Opens connections within the time of the exchange."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._backend = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: SocketOptions = None,
    ) -> httpcore2.NetworkStream:
        """Connect to one of the addresses of a host; each gets an equal share of the time that is left."""
        end = time.monotonic() + self._clock.left(timeout, httpcore2.ConnectTimeout)
        addresses = resolve(host, port, end - time.monotonic())
        for i, address in enumerate(addresses):
            seconds = (end - time.monotonic()) / (len(addresses) - i)
            if seconds <= 0:
                break
            try:
                stream = self._backend.connect_tcp(address, port, seconds, local_address, socket_options)
                return TimedStream(stream, self._clock)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                if i == len(addresses) - 1:
                    raise
        raise httpcore2.ConnectTimeout("the time is over")


def resolve(host: str, port: int, seconds: float) -> list[str]:
    """Return the addresses of a host; raise `ConnectTimeout` if the system does not return them in time.

    Name resolution cannot be interrupted, so it has a thread of its own.
    """
    results: queue.SimpleQueue[list[str] | OSError] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            results.put(list(dict.fromkeys(str(address[0]) for *_, address in found)))
        except OSError as error:
            results.put(error)
        except UnicodeError as error:  # a part of the name is too long
            results.put(socket.gaierror(socket.EAI_NONAME, str(error)))

    threading.Thread(target=look_up, daemon=True).start()
    try:
        found = results.get(timeout=max(0.0, seconds))
    except queue.Empty:
        raise httpcore2.ConnectTimeout("the name was not resolved in time") from None
    if isinstance(found, OSError):
        try:
            raise found
        except OSError as error:  # httpcore2 removes the cause of an error, but not its context
            raise httpcore2.ConnectError(str(error)) from error
    return found


class Transport:
    """The connections to one server. Thread-safe."""

    def __init__(self, max_connections: int, headers: dict[str, str]) -> None:
        limits = httpx2.Limits(
            max_connections=max_connections, max_keepalive_connections=max_connections, keepalive_expiry=60
        )
        # Cookies of a server would be sent with each later request, and grow without limit.
        cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
        self._client = httpx2.Client(
            limits=limits,
            headers=headers | {"Accept-Encoding": "gzip"},
            cookies=cookies,
            follow_redirects=False,
        )
        self._clock = Clock()
        replace_backend(self._client, TimedBackend(self._clock))

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def send(
        self, method: str, url: str, content: bytes | None, seconds: float, connect_seconds: float
    ) -> RawResponse:
        """Send a request and return the response.

        Raises the errors of httpx2, `ReadTimeout` among them if it takes longer than `seconds`, and
        `ServerUnsupported` if the response is too large or has an encoding that was not requested.
        """
        timeout = httpx2.Timeout(seconds, connect=min(seconds, connect_seconds))
        headers = {} if content is None else {"Content-Type": "application/json"}
        with (
            self._clock.limited(seconds),
            self._client.stream(method, url, content=content, headers=headers, timeout=timeout) as response,
        ):
            return RawResponse(response.status_code, response.headers, self._body(response))

    def _body(self, response: httpx2.Response) -> bytes:
        """Return the decoded body, read in pieces; both its sizes, as sent and decoded, are limited."""
        limit = RESPONSE_BYTES.value
        encoding = response.headers.get("Content-Encoding", "").strip().lower()
        if encoding not in (*GZIP, "", "identity"):
            raise ServerUnsupported(
                f"the server sends responses with the encoding {encoding[:40]!r}, which was not requested",
                "Use a server that sends plain or gzip responses.",
            )
        received, body = 0, bytearray()
        unzip = zlib.decompressobj(GZIP_WINDOW) if encoding in GZIP else None
        for raw in response.iter_raw():
            received += len(raw)
            for piece in (raw,) if unzip is None else decompressed(unzip, raw):
                body += piece
                self._clock.left(None, httpx2.ReadTimeout)
                if max(received, len(body)) > limit:
                    raise ServerUnsupported(
                        f"the server's response is larger than {limit:,.0f} bytes", RESPONSE_BYTES.hint
                    )
        return bytes(body)


def decompressed(decompressor: Any, data: bytes) -> Iterator[bytes]:
    """Yield the decompressed data in pieces of limited size, the last one possibly empty."""
    while not decompressor.eof:
        try:
            piece = decompressor.decompress(data, DECODED_BYTES)
        except zlib.error as error:
            raise httpx2.DecodingError(str(error)) from None
        yield piece
        data = decompressor.unconsumed_tail
        if not data and len(piece) < DECODED_BYTES:
            return
    yield b""


def replace_backend(client: httpx2.Client, backend: httpcore2.NetworkBackend) -> None:
    """Let all connections of a client, also those to proxies of the environment, use a network backend.

    httpx2 has no option for it: its pools of connections have one. Raises `RuntimeMismatch` if they are not found.
    """
    mounts: dict[Any, Any] = getattr(client, "_mounts", {})
    for transport in (getattr(client, "_transport", client), *mounts.values()):
        pool = getattr(transport, "_pool", None)
        if transport is not None and not hasattr(pool, "_network_backend"):
            raise RuntimeMismatch(
                f"httpx2 {httpx2.__version__} is not supported: its connections cannot be limited in time",
                "Install another version: pip install 'httpx2>=2.10,<3'",
            )
        if pool is not None:
            pool._network_backend = backend
