"""Servers that mean harm: endless and oversized responses, and responses with one wrong field."""

import copy
import gzip
import random
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from support.loopback import LoopbackServer, RequestHandler
from support.server_behaviours import Behaviour
from support.toy_server import ReceivedRequest, ToyServer

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
GZIPPED = OK + b"Content-Encoding: gzip\r\n\r\n"
GZIP_START = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"
EMPTY_BLOCK = b"\x00\x00\x00\xff\xff"
"""A stored deflate block without content that is not the last one."""
ENDLESS: dict[str, tuple[bytes, bytes]] = {
    "nothing": (b"", b""),
    "a status line": (b"HTTP/1.1 200 O", b"K"),
    "header lines": (OK, b"X-Header: value\r\n"),
    "one header line": (OK + b"X-Header: ", b"v"),
    "early hints": (b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
    "continue": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "whitespace before the JSON": (OK + b"\r\n", b" "),
    "whitespace in chunks": (CHUNKED, b"1\r\n \r\n"),
    "a chunk extension": (CHUNKED + b"5;name=", b"x"),
    "a chunk size": (CHUNKED, b"0"),
    "trailers": (CHUNKED + b"0\r\n", b"X-Trailer: value\r\n"),
    "empty deflate blocks": (GZIPPED + GZIP_START, EMPTY_BLOCK),
    "data after the end of gzip": (GZIPPED + gzip.compress(b"{}"), b"x"),
    "an error body": (b"HTTP/1.1 500 Error\r\n\r\n", b"x"),
}
"""What is sent first, and what is then repeated without end."""
SURROGATE, ESCAPES = "\ud800", "\x1b[31m\x07\x1b]0;title\x07[/red]"
WRONG_VALUES: list[Any] = [
    *(None, True, False, 0, -1, 7, 10**9, 10**400, 1e9, 0.5, -1e300, float("nan"), float("inf"), float("-inf")),
    *("", "abc", "8", "x" * 10_000, SURROGATE, f"a{SURROGATE}b", ESCAPES, "\ufffd", "\x00"),
    *([], [[]], [None], [1, 2], ["a"], {}, {"a": 1}, {"error": "no"}, [{}], {SURROGATE: SURROGATE}),
]
MISSING = object()


class EndlessServer(LoopbackServer):
    """Starts a response, then repeats some bytes without end, with a pause after each."""

    def __init__(self, start: bytes, repeated: bytes, pause: float) -> None:
        super().__init__()
        self._start, self._repeated, self._pause = start, repeated, pause

    def respond(self, handler: RequestHandler, body: bytes) -> None:
        handler.close_connection = True
        with suppress(OSError):
            handler.wfile.write(self._start)
            while not self.stopping.wait(self._pause):
                handler.wfile.write(self._repeated * (1 if self._pause else 1000))


class RawServer(LoopbackServer):
    """Sends the same bytes in response to every request, and closes the connection if told to."""

    def __init__(self, response: bytes, close: bool = True) -> None:
        super().__init__()
        self._response, self._close = response, close

    def respond(self, handler: RequestHandler, body: bytes) -> None:
        handler.close_connection = self._close
        with suppress(OSError):
            handler.wfile.write(self._response)


def gzip_bomb(size: int) -> bytes:
    """A gzip stream of this many spaces."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = b" " * 1_000_000
    return b"".join(compressor.compress(block) for _ in range(size // len(block))) + compressor.flush()


class Mutation(NamedTuple):
    """One change of a JSON value: the value at a path is replaced, or removed if the new one is `MISSING`."""

    path: tuple[str | int, ...]
    value: Any

    def apply(self, payload: Any) -> Any:
        """Return a changed copy; an unchanged one if it has no such path."""
        if not self.path:
            return {} if self.value is MISSING else self.value
        changed = copy.deepcopy(payload)
        parent = changed
        try:
            for step in self.path[:-1]:
                parent = parent[step]
            if self.value is MISSING:
                del parent[self.path[-1]]
            else:
                parent[self.path[-1]] = self.value
        except (KeyError, IndexError, TypeError):
            return payload
        return changed


def paths(value: Any, before: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of each value in a JSON value; of a list, only those of its first two entries."""
    yield before
    steps: Sequence[str | int] = ()
    if isinstance(value, dict):
        steps = list(value)[:8]
    elif isinstance(value, list):
        steps = range(min(2, len(value)))
    for step in steps:
        yield from paths(value[step], (*before, step))


def deep(value: Any) -> Any:
    """A value in many nested lists."""
    for _ in range(300):
        value = [value]
    return value


def mutations(payload: Any, draw: random.Random) -> Iterator[Mutation]:
    """Yield random changes of a JSON value, without end."""
    choices = list(paths(payload))
    while True:
        value = draw.choice([*WRONG_VALUES, MISSING, MISSING, deep(1)])
        yield Mutation(draw.choice(choices), value)


class MutatingServer(ToyServer):
    """A toy server that changes its responses to one endpoint, from a certain request to it on."""

    def __init__(self, behaviour: Behaviour, endpoint: str, seed: int) -> None:
        super().__init__(behaviour)
        self._endpoint = endpoint
        self._draw = random.Random(seed)
        self._first = self._draw.choice([0, 0, 1, 5, 20])
        self._seen = 0
        self.mutation: Mutation | None = None

    def _payload(self, received: ReceivedRequest) -> dict[str, Any]:
        payload = super()._payload(received)
        if received.path != self._endpoint:
            return payload
        self._seen += 1
        if self._seen <= self._first:
            return payload
        if self.mutation is None:
            self.mutation = next(mutations(payload, self._draw))
        return self.mutation.apply(payload)  # type: ignore[no-any-return]


class FixedMutation(MutatingServer):
    """Makes one change to all responses of an endpoint."""

    def __init__(self, behaviour: Behaviour, endpoint: str, mutation: Mutation) -> None:
        super().__init__(behaviour, endpoint, 0)
        self._first = 0
        self.mutation = mutation
