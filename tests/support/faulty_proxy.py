"""A proxy that injects the faults of a network and of a busy server, and logs which responses were delivered."""

import hashlib
import random
import select
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from http.client import HTTPConnection, HTTPException
from typing import Literal
from urllib.parse import urlsplit

from support.loopback import Headers, LoopbackServer, RequestHandler

MAX_CONSECUTIVE_FAULTS = 3
UPSTREAM_TIMEOUT = 120.0
HOP_HEADERS = {"connection", "keep-alive", "transfer-encoding", "content-length", "host", "date", "server"}


@dataclass(frozen=True)
class Fault:
    """A fault of one request.

    `rejected`: an error status instead of the response. `dropped_before`: the connection is reset before the
    request is forwarded; `dropped_after`: closed before any of the response is sent; `dropped_within`: closed in
    the middle of the response. `truncated`: half the response, with a matching Content-Length; `flipped`: all of
    it, with invalid UTF-8. `slow`: a good response, delayed. `silent`: none, and the connection stays open.
    """

    kind: Literal[
        "rejected",
        "dropped_before",
        "dropped_after",
        "dropped_within",
        "truncated",
        "flipped",
        "slow",
        "silent",
    ]
    status: int | None = None
    retry_after: float | None = None
    as_date: bool = False
    delay: float = 0.0


DROPPED_BEFORE = Fault("dropped_before")
DROPPED_AFTER = Fault("dropped_after")
DROPPED_WITHIN = Fault("dropped_within")
TRUNCATED = Fault("truncated")
FLIPPED = Fault("flipped")
SILENT = Fault("silent")


def too_many(retry_after: float | None = None, as_date: bool = False) -> Fault:
    """429, with the wait as seconds or as a date, or without one."""
    return Fault("rejected", 429, retry_after, as_date)


def error(status: int = 500) -> Fault:
    return Fault("rejected", status)


def slow(delay: float) -> Fault:
    return Fault("slow", delay=delay)


@dataclass(frozen=True)
class Rates:
    """Rates of the faults, drawn for each occurrence of a request, reproducibly by the seed."""

    seed: int
    too_many: float = 0.2
    error: float = 0.1
    dropped: float = 0.05
    garbled: float = 0.05
    slow: float = 0.05
    delay: float = 0.05
    """Delay of a slow response, in seconds."""
    retry_after: float = 0.0
    """Wait in seconds that a 429 requests, if it requests one."""

    def fault(self, request: str, earlier: int) -> Fault | None:
        """Return the fault of a request with this number of earlier occurrences."""
        draw = random.Random(f"{self.seed} {request} {earlier}")
        kinds: list[tuple[float, Sequence[Fault]]] = [
            (
                self.too_many,
                [too_many(), too_many(self.retry_after), too_many(self.retry_after, as_date=True)],
            ),
            (self.error, [error(500), error(502), error(503)]),
            (self.dropped, [DROPPED_BEFORE, DROPPED_AFTER, DROPPED_WITHIN]),
            (self.garbled, [TRUNCATED, FLIPPED]),
            (self.slow, [slow(self.delay)]),
        ]
        at = draw.random()
        for rate, faults in kinds:
            if at < rate:
                return draw.choice(faults)
            at -= rate
        return None


@dataclass
class Record:
    """One request and what happened to it, logged before the client can see it.

    `forwarded`: the upstream has responded; `delivered`: its response reached the client, complete and unchanged.
    """

    request: str
    path: str
    fault: Fault | None
    status: int | None = None
    forwarded: bool = False
    delivered: bool = False


class FaultyProxy(LoopbackServer):
    """Forwards requests with the faults of a plan: by rates, or one by one for the first requests.

    `latency` is in milliseconds, in each direction.
    """

    def __init__(self, upstream: str, plan: Rates | Sequence[Fault | None] = (), latency: float = 0.0) -> None:
        super().__init__()
        self.log: list[Record] = []
        self._upstream = urlsplit(upstream).netloc
        self._rates = plan if isinstance(plan, Rates) else None
        self._first = iter(() if isinstance(plan, Rates) else plan)
        self._latency = latency / 1000
        self._lock = threading.Lock()
        self._earlier: Counter[str] = Counter()
        self._consecutive: Counter[str] = Counter()

    def succeeded(self) -> Counter[str]:
        """Return how often each request got a good response that was delivered."""
        return Counter(record.request for record in self.log if record.delivered and record.status == 200)

    def respond(self, handler: RequestHandler, body: bytes) -> None:
        record = self._record(handler, body)
        self.stopping.wait(self._latency)
        if record.fault is not None and record.fault.kind in ("rejected", "silent", "dropped_before"):
            self._fail(handler, record, record.fault)
        else:
            self._respond_upstream(handler, body, record)

    def _record(self, handler: RequestHandler, body: bytes) -> Record:
        request = request_hash(handler.command, handler.path, body)
        with self._lock:
            fault = next(self._first, None) if self._rates is None else self._draw_fault(request, self._rates)
            record = Record(request, handler.path, fault)
            self.log.append(record)
        return record

    def _draw_fault(self, request: str, rates: Rates) -> Fault | None:
        fault = rates.fault(request, self._earlier[request])
        self._earlier[request] += 1
        if fault is None or fault.kind == "slow" or self._consecutive[request] == MAX_CONSECUTIVE_FAULTS:
            self._consecutive[request] = 0
            return fault if fault and fault.kind == "slow" else None
        self._consecutive[request] += 1
        return fault

    def _fail(self, handler: RequestHandler, record: Record, fault: Fault) -> None:
        """Play a fault without forwarding the request."""
        if fault.status is not None:
            record.status = fault.status
            handler.reply(fault.status, b'{"error": {"message": "not now"}}', retry_after(fault))
            return
        if fault.kind == "silent":
            self.stopping.wait()
        else:
            reset_on_close(handler.connection)
            handler.connection.close()
        handler.close_connection = True

    def _respond_upstream(self, handler: RequestHandler, body: bytes, record: Record) -> None:
        kind = record.fault and record.fault.kind
        status, headers, content = self._forward(handler, body, record)
        self.stopping.wait(self._latency + (record.fault.delay if record.fault else 0))
        if kind == "dropped_after":
            handler.close_connection = True
            return
        record.status = status
        if kind == "dropped_within":
            handler.close_connection = True
            handler.reply(status, content, headers, sent=len(content) // 2)
        elif kind in ("truncated", "flipped"):
            handler.reply(
                status, content[: len(content) // 2] if kind == "truncated" else flipped(content), headers
            )
        else:
            record.delivered = record.forwarded and is_connected(handler.connection)
            try:
                handler.reply(status, content, headers)
            except ConnectionError:
                record.delivered = False
                raise

    def _forward(self, handler: RequestHandler, body: bytes, record: Record) -> tuple[int, Headers, bytes]:
        """Return the upstream's response, or 502 if there is none; a new connection each time is never stale."""
        upstream = HTTPConnection(self._upstream, timeout=UPSTREAM_TIMEOUT)
        try:
            upstream.request(handler.command, handler.path, body, dict(forwarded_headers(handler.headers.items())))
            response = upstream.getresponse()
            content = response.read()
        except (OSError, HTTPException) as problem:
            return 502, [], f"no response from the upstream: {problem}".encode()
        finally:
            upstream.close()
        record.forwarded = True
        return response.status, forwarded_headers(response.getheaders()), content


def request_hash(method: str, path: str, body: bytes) -> str:
    """Return a hash of a request, equal for equal requests."""
    return hashlib.sha256(b"\n".join([method.encode(), path.encode(), body])).hexdigest()


def forwarded_headers(headers: Iterable[tuple[str, str]]) -> Headers:
    return [(name, value) for name, value in headers if name.lower() not in HOP_HEADERS]


def retry_after(fault: Fault) -> Headers:
    if fault.retry_after is None:
        return []
    when = formatdate(time.time() + fault.retry_after, usegmt=True) if fault.as_date else f"{fault.retry_after:g}"
    return [("Retry-After", when)]


def flipped(content: bytes) -> bytes:
    """Flip the highest bit of every sixteenth byte, from the first: neither JSON nor UTF-8."""
    return bytes(byte ^ 0x80 if i % 16 == 0 else byte for i, byte in enumerate(content))


def reset_on_close(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def is_connected(connection: socket.socket) -> bool:
    """Return whether the client is still connected: a closed connection is readable, without data."""
    readable, _, _ = select.select([connection], [], [], 0)
    return not readable or connection.recv(1, socket.MSG_PEEK) != b""
