"""Run the application with uvicorn: ports, log, and an orderly end."""

import logging
import socket
from types import FrameType

import uvicorn
from starlette.applications import Starlette

from fewparse.errors import UsageError

GRACE_SECONDS = 15
MAX_CONNECTIONS = 1_000


class Server(uvicorn.Server):
    """Ends in order: new and waiting requests are refused from the signal on, and those that run are finished."""

    def __init__(self, config: uvicorn.Config, app: Starlette) -> None:
        super().__init__(config)
        self._app = app

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to shut down."""
        loop = getattr(self._app.state, "loop", None)
        if loop is not None:  # the application has started
            loop.call_soon_threadsafe(self._app.state.service.drain)
        super().handle_exit(sig, frame)


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


def make_server(app: Starlette, trusted_proxies: str | None = None, grace: int = GRACE_SECONDS) -> Server:
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
    return Server(config, app)


def log_to_stderr() -> None:
    """Write the log of the server to standard error; each line is one event, without text of requests."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    for name in ("fewparse.serve", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.WARNING)
