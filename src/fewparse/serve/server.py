"""Run the application with uvicorn: ports, log, and an orderly end."""

import logging
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn
from starlette.applications import Starlette

from fewparse.errors import UsageError

GRACE_SECONDS = 15
CANCEL_SECONDS = 2
"""How long before the end of the grace period searches are cancelled, so that their clients get a response."""
MAX_CONNECTIONS = 1_000


class Server(uvicorn.Server):
    """Calls `on_start` when it accepts connections, and ends in order.

    From the signal on, new and waiting requests are refused, and those that run are finished; searches that would
    take longer than the grace period are cancelled shortly before its end.
    """

    def __init__(self, config: uvicorn.Config, app: Starlette, on_start: Callable[[], None]) -> None:
        super().__init__(config)
        self._app, self._on_start = app, on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application, and accept connections."""
        await super().startup(sockets)
        if self.started:
            self._on_start()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to shut down."""
        loop = getattr(self._app.state, "loop", None)
        if loop is not None:  # the application has started
            loop.call_soon_threadsafe(self._drain)
        super().handle_exit(sig, frame)

    def _drain(self) -> None:
        service = self._app.state.service
        service.drain()
        grace = self.config.timeout_graceful_shutdown or 0
        self._app.state.loop.call_later(max(0, grace - CANCEL_SECONDS), service.cancel)


def open_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens; raise `UsageError` if that is not possible."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listening = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError, OverflowError) as error:
        raise UsageError(f"the host {host} is not known: {error}", "For example --host 127.0.0.1") from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except OSError as error:
        listening.close()
        reason = error.strerror or str(error)
        hint = "Choose another port with --port, or end the program that uses it."
        raise UsageError(f"the port {port} of {host} cannot be used: {reason}", hint) from None
    return listening


def make_server(
    app: Starlette,
    trusted_proxies: str | None = None,
    grace: int = GRACE_SECONDS,
    on_start: Callable[[], None] = lambda: None,
) -> Server:
    """Return a server for the application."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=grace,
        timeout_keep_alive=30,
        proxy_headers=trusted_proxies is not None,
        forwarded_allow_ips=trusted_proxies,
        lifespan="on",
        ws="none",
    )
    return Server(config, app, on_start)


def log_to_stderr() -> None:
    """Write warnings and errors to standard error, each as one line, unless logging is set up already."""
    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)  # libraries give their loggers lower levels
    logging.basicConfig(handlers=[handler], format="%(asctime)s %(levelname)s %(name)s: %(message)s")
