"""A file server on the loopback interface that can misbehave, and Overnight files in their published format."""

import gzip
import json
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from fewparse.example import Example
from support.data import OVERNIGHT

REAL = OVERNIGHT
DOMAINS = {
    "basketball": (1561, 391),
    "blocks": (1596, 399),
    "calendar": (669, 168),
    "housing": (752, 189),
    "publications": (640, 161),
    "recipes": (864, 216),
    "restaurants": (1325, 332),
    "socialnetwork": (3535, 884),
}
needs_real_data = pytest.mark.skipif(
    not REAL.is_dir(), reason="the Overnight dataset was not found: set FEWPARSE_DATA"
)


@dataclass(frozen=True)
class Misbehaviour:
    """A deviation from the normal response."""

    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    has_length: bool = True
    drop_after: int | None = None
    stall_after: int | None = None
    ignore_range: bool = False
    shift: int = 0


@dataclass
class FileServer:
    """The served files, the misbehaviour of the next requests, and the received requests with their Range."""

    address: str
    files: dict[str, bytes] = field(default_factory=dict)
    next: list[Misbehaviour] = field(default_factory=list)
    always: Misbehaviour = Misbehaviour()
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    @property
    def ranges(self) -> list[str | None]:
        return [header for _, header in self.requests]


@contextmanager
def serving() -> Iterator[FileServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            range_header = self.headers["Range"]
            served.requests.append((self.path, range_header))
            fault = served.next.pop(0) if served.next else served.always
            respond(self, served, fault, None if fault.ignore_range else range_header)

        def log_message(self, *_arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served = FileServer(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield served
    finally:
        served.stopping.set()
        server.shutdown()
        server.server_close()
        thread.join()


def respond(
    handler: BaseHTTPRequestHandler, served: FileServer, fault: Misbehaviour, range_header: str | None
) -> None:
    content = served.files.get(handler.path)
    if fault.status or content is None:
        handler.send_response(fault.status or 404)
        for header in fault.headers:
            handler.send_header(*header)
        handler.end_headers()
        return
    body = content if fault.body is None else fault.body
    begin = int(range_header.removeprefix("bytes=").removesuffix("-")) - fault.shift if range_header else 0
    if begin >= len(body):
        handler.send_response(416)
        handler.end_headers()
        return
    handler.send_response(206 if range_header else 200)
    if range_header:
        handler.send_header("Content-Range", f"bytes {begin}-{len(body) - 1}/{len(body)}")
    body = body[begin:]
    if fault.has_length:
        handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    with suppress(ConnectionError):  # the client may have disconnected
        handler.wfile.write(body[: fault.drop_after if fault.stall_after is None else fault.stall_after])
    if fault.stall_after is not None:
        served.stopping.wait(60)


def quoted(text: str) -> str:
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}
    return '"' + "".join(escapes.get(char, char) for char in text) + '"'


def original_form(examples: Sequence[Example]) -> str:
    """Return examples in their published format."""
    return "".join(
        f"(example\n  (utterance {quoted(e.utterance)})\n  (original {quoted(e.canonical or '')})\n"
        f"  (targetFormula \n    {with_prefix(e.program)}\n\n  )\n)\n"
        for e in examples
    )


def with_prefix(program: str) -> str:
    return re.sub(r"\(call (?!\.)", "(call edu.stanford.nlp.sempre.overnight.SimpleWorld.", program)


def original_name(domain: str, part: str) -> str:
    return f"{domain}.paraphrases.{part}.examples"


def real_examples(domain: str, part: str) -> list[Example]:
    packed = (REAL / f"{domain}.{part}.jsonl.gz").read_bytes()
    return [Example(**json.loads(line)) for line in gzip.decompress(packed).decode().splitlines()]


def real_original(domain: str, part: str) -> bytes:
    return original_form(real_examples(domain, part)).encode()
