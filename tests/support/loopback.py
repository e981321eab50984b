"""A web server on loopback that ends with its context: the ground on which the toy server and the proxy stand."""

import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SHUT_RDWR, socket
from typing import Any, Self

Headers = Sequence[tuple[str, str]]


class Exchange(BaseHTTPRequestHandler):
    """One connection; what to say to each request is somebody else's matter."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def __init__(self, respond: "Callable[[Exchange, bytes], None]", *connection: Any) -> None:
        self._respond = respond
        super().__init__(*connection)

    def do_GET(self) -> None:
        self._respond(self, self.rfile.read(int(self.headers["Content-Length"] or 0)))

    do_POST = do_GET  # noqa: N815

    def reply(self, status: int, body: bytes, headers: Headers = (), sent: int | None = None) -> None:
        """Answer, or begin to: of the body only `sent` bytes follow an honest announcement of its length."""
        self.send_response(status)
        for header in headers:
            self.send_header(*header)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:sent])

    def log_message(self, *_arguments: object) -> None:
        pass


class Listener(ThreadingHTTPServer):
    """Knows its connections and their threads, so that both can be ended."""

    request_queue_size = 128

    def __init__(self, respond: Callable[[Exchange, bytes], None]) -> None:
        super().__init__(("127.0.0.1", 0), partial(Exchange, respond))
        self.conversations: list[tuple[threading.Thread, socket]] = []

    def process_request(self, request: Any, client_address: Any) -> None:
        arguments = (request, client_address)
        thread = threading.Thread(target=self.process_request_thread, args=arguments, daemon=True)
        self.conversations.append((thread, request))
        thread.start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client may hang up; anything else is a defect and shows its traceback."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Loopback(ABC):
    """Listens on a free port as long as its context lasts; no thread or connection outlives it."""

    def __init__(self) -> None:
        self.over = threading.Event()

    @abstractmethod
    def respond(self, exchange: Exchange, body: bytes) -> None:
        """Answer a request, in the thread of its connection."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.server_port}/v1"

    @property
    def connections(self) -> int:
        """How many connections were accepted so far."""
        return len(self._listener.conversations)

    def __enter__(self) -> Self:
        self._listener = Listener(self.respond)
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.over.set()
        self._listener.shutdown()
        self._listener.server_close()
        for thread, connection in self._listener.conversations:
            with suppress(OSError):  # most have ended by themselves
                connection.shutdown(SHUT_RDWR)
            thread.join()
        self._thread.join()
