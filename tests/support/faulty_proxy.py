"""A proxy that plays the faults of a network and of a busy server, and remembers which answers came through."""

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

from support.loopback import Exchange, Headers, Loopback

MOST_IN_A_ROW = 3
ANSWER_LIMIT = 120.0
NEVER_PASSED_ON = {"connection", "keep-alive", "transfer-encoding", "content-length", "host", "date", "server"}


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one request.

    `refused`: a status in place of an answer. `dropped_before`: the connection is reset before anything is passed
    on; `dropped_after`: closed when the answer is there, with nothing of it sent; `dropped_within`: closed in
    the middle of the answer. `truncated`: half the answer, announced as if it were all; `flipped`: all of it, with
    bytes that are no text. `slow`: a good answer, late. `silent`: none, and the connection stays open.
    """

    kind: Literal[
        "refused",
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
    """429, with the seconds to wait or the date to wait for, or without a word of it."""
    return Fault("refused", 429, retry_after, as_date)


def error(status: int = 500) -> Fault:
    return Fault("refused", status)


def slow(delay: float) -> Fault:
    return Fault("slow", delay=delay)


@dataclass(frozen=True)
class Rates:
    """How often which faults come: drawn anew, and always alike, for each time that a request is seen."""

    seed: int
    too_many: float = 0.2
    error: float = 0.1
    dropped: float = 0.05
    garbled: float = 0.05
    slow: float = 0.05
    delay: float = 0.05
    """How late a slow answer is, in seconds."""
    retry_after: float = 0.0
    """How long to wait, in seconds, where a 429 says so."""

    def fault(self, request: str, seen: int) -> Fault | None:
        """The fault of a request that was seen so often before."""
        draw = random.Random(f"{self.seed} {request} {seen}")
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
    """One request and its fate, written down before the client can know of it.

    `forwarded`: the upstream has answered; `delivered`: its answer came through, whole and true.
    """

    request: str
    path: str
    fault: Fault | None
    status: int | None = None
    forwarded: bool = False
    delivered: bool = False


class FaultyProxy(Loopback):
    """Passes requests on, with the faults of a plan: by rates, or one by one for the first requests.

    `latency` is in milliseconds, on the way there and again on the way back.
    """

    def __init__(self, upstream: str, plan: Rates | Sequence[Fault | None] = (), latency: float = 0.0) -> None:
        super().__init__()
        self.log: list[Record] = []
        self._upstream = urlsplit(upstream).netloc
        self._rates = plan if isinstance(plan, Rates) else None
        self._first = iter(() if isinstance(plan, Rates) else plan)
        self._latency = latency / 1000
        self._lock = threading.Lock()
        self._seen: Counter[str] = Counter()
        self._in_a_row: Counter[str] = Counter()

    def succeeded(self) -> Counter[str]:
        """How often each request was answered well, whole and in time to be heard."""
        return Counter(record.request for record in self.log if record.delivered and record.status == 200)

    def respond(self, exchange: Exchange, body: bytes) -> None:
        record = self._record(exchange, body)
        self.over.wait(self._latency)
        if record.fault is not None and record.fault.kind in ("refused", "silent", "dropped_before"):
            self._unheard(exchange, record, record.fault)
        else:
            self._passed_on(exchange, body, record)

    def _record(self, exchange: Exchange, body: bytes) -> Record:
        request = request_hash(exchange.command, exchange.path, body)
        with self._lock:
            fault = next(self._first, None) if self._rates is None else self._drawn(request, self._rates)
            record = Record(request, exchange.path, fault)
            self.log.append(record)
        return record

    def _drawn(self, request: str, rates: Rates) -> Fault | None:
        fault = rates.fault(request, self._seen[request])
        self._seen[request] += 1
        if fault is None or fault.kind == "slow" or self._in_a_row[request] == MOST_IN_A_ROW:
            self._in_a_row[request] = 0
            return fault if fault and fault.kind == "slow" else None
        self._in_a_row[request] += 1
        return fault

    def _unheard(self, exchange: Exchange, record: Record, fault: Fault) -> None:
        """A fault that comes before the upstream hears of anything."""
        if fault.status is not None:
            record.status = fault.status
            exchange.reply(fault.status, b'{"error": {"message": "not now"}}', retry_after(fault))
            return
        if fault.kind == "silent":
            self.over.wait()
        else:
            reset_on_close(exchange.connection)
            exchange.connection.close()
        exchange.close_connection = True

    def _passed_on(self, exchange: Exchange, body: bytes, record: Record) -> None:
        kind = record.fault and record.fault.kind
        status, headers, answer = self._forward(exchange, body, record)
        self.over.wait(self._latency + (record.fault.delay if record.fault else 0))
        if kind == "dropped_after":
            exchange.close_connection = True
            return
        record.status = status
        if kind == "dropped_within":
            exchange.close_connection = True
            exchange.reply(status, answer, headers, sent=len(answer) // 2)
        elif kind in ("truncated", "flipped"):
            exchange.reply(status, answer[: len(answer) // 2] if kind == "truncated" else flipped(answer), headers)
        else:
            record.delivered = record.forwarded and listening(exchange.connection)
            try:
                exchange.reply(status, answer, headers)
            except ConnectionError:
                record.delivered = False
                raise

    def _forward(self, exchange: Exchange, body: bytes, record: Record) -> tuple[int, Headers, bytes]:
        """The upstream's answer, or 502 where it gives none; each over a connection of its own, so never stale."""
        upstream = HTTPConnection(self._upstream, timeout=ANSWER_LIMIT)
        try:
            upstream.request(exchange.command, exchange.path, body, dict(passed_on(exchange.headers.items())))
            response = upstream.getresponse()
            answer = response.read()
        except (OSError, HTTPException) as problem:
            return 502, [], f"no answer from the upstream: {problem}".encode()
        finally:
            upstream.close()
        record.forwarded = True
        return response.status, passed_on(response.getheaders()), answer


def request_hash(method: str, path: str, body: bytes) -> str:
    """Names a request: the same for the same words."""
    return hashlib.sha256(b"\n".join([method.encode(), path.encode(), body])).hexdigest()


def passed_on(headers: Iterable[tuple[str, str]]) -> Headers:
    return [(name, value) for name, value in headers if name.lower() not in NEVER_PASSED_ON]


def retry_after(fault: Fault) -> Headers:
    if fault.retry_after is None:
        return []
    when = formatdate(time.time() + fault.retry_after, usegmt=True) if fault.as_date else f"{fault.retry_after:g}"
    return [("Retry-After", when)]


def flipped(answer: bytes) -> bytes:
    """Every sixteenth byte, the first among them, with its highest bit turned: no JSON, and no UTF-8."""
    return bytes(byte ^ 0x80 if i % 16 == 0 else byte for i, byte in enumerate(answer))


def reset_on_close(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def listening(connection: socket.socket) -> bool:
    """Whether the client is still there: one that has hung up can be read, and nothing comes."""
    readable, _, _ = select.select([connection], [], [], 0)
    return not readable or connection.recv(1, socket.MSG_PEEK) != b""
