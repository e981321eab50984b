"""An HTTP server on the loopback interface, running within a context: base of the toy server and the proxy."""

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


class RequestHandler(BaseHTTPRequestHandler):
    """One connection; `respond` responds to each of its requests."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def __init__(self, respond: "Callable[[RequestHandler, bytes], None]", *connection: Any) -> None:
        self._respond = respond
        super().__init__(*connection)

    def do_GET(self) -> None:
        self._respond(self, self.rfile.read(int(self.headers["Content-Length"] or 0)))

    do_POST = do_GET  # noqa: N815

    def reply(self, status: int, body: bytes, headers: Headers = (), sent: int | None = None) -> None:
        """Send a response, with the right Content-Length but only the first `sent` bytes of the body."""
        self.send_response(status)
        for header in headers:
            self.send_header(*header)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:sent])

    def log_message(self, *_arguments: object) -> None:
        pass


class Listener(ThreadingHTTPServer):
    """Records its connections and their threads, so that both can be ended."""

    request_queue_size = 128

    def __init__(self, respond: Callable[[RequestHandler, bytes], None]) -> None:
        super().__init__(("127.0.0.1", 0), partial(RequestHandler, respond))
        self.connections: list[tuple[threading.Thread, socket]] = []

    def process_request(self, request: Any, client_address: Any) -> None:
        arguments = (request, client_address)
        thread = threading.Thread(target=self.process_request_thread, args=arguments, daemon=True)
        self.connections.append((thread, request))
        thread.start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect; print the traceback of any other error."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class LoopbackServer(ABC):
    """Listens on a free port within its context; no thread or connection outlives it."""

    def __init__(self) -> None:
        self.stopping = threading.Event()

    @abstractmethod
    def respond(self, handler: RequestHandler, body: bytes) -> None:
        """Respond to a request, in the thread of its connection."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.server_port}/v1"

    @property
    def connections(self) -> int:
        """The number of connections accepted so far."""
        return len(self._listener.connections)

    @property
    def open_connections(self) -> int:
        """The number of connections that the client has not closed."""
        return sum(thread.is_alive() for thread, _ in self._listener.connections)

    def __enter__(self) -> Self:
        self._listener = Listener(self.respond)
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stopping.set()
        self._listener.shutdown()
        self._listener.server_close()
        for thread, connection in self._listener.connections:
            with suppress(OSError):  # most have ended already
                connection.shutdown(SHUT_RDWR)
            thread.join()
        self._thread.join()


def unused_address() -> str:
    """Return the base URL of a port on which no server listens."""
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/v1"
