"""Who may use the server: API keys, hosts and origins, and the headers that protect a browser."""

import hashlib
import hmac
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fewparse.errors import UsageError
from fewparse.serve.endpoints import json_response
from fewparse.serve.problems import Problem

MIN_KEY = 16
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
API_POLICY = "default-src 'none'; frame-ancestors 'none'"
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
METHODS = {"GET", "HEAD", "POST", "OPTIONS"}
Observe = Callable[[str, str, int, float], None]
"""Called for each response with method, route, status and seconds."""


class ApiKeys:
    """The keys of the clients; a key is compared in constant time."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._digests = [digest(key) for key in keys]

    def __bool__(self) -> bool:
        return bool(self._digests)

    def client(self, headers: Headers) -> str | None:
        """Return the name of the client whose key a request has; None without a right key."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        given = digest(token.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", ""))
        found = [hmac.compare_digest(given, known) for known in self._digests]
        return f"key {found.index(True)}" if any(found) else None


def digest(key: str) -> bytes:
    """Return the hash of a key, so that keys of all lengths take equally long to compare."""
    return hashlib.sha256(key.encode(errors="surrogateescape")).digest()


def check_keys(keys: Sequence[str]) -> None:
    """Raise `UsageError` for keys that are too short or cannot be sent in a header; no message has a key."""
    for number, key in enumerate(keys, 1):
        if len(key) < MIN_KEY or not key.isascii() or not key.isprintable() or " " in key:
            raise UsageError(
                f"API key {number} is not usable: it must have at least {MIN_KEY} printable ASCII characters",
                'Make one: python -c "import secrets; print(secrets.token_urlsafe(32))"',
            )


class SecurityMiddleware:
    """Checks every request before the application sees it, and adds headers to every response.

    `hosts` are the values of the header Host that are allowed; all, if there are none. A request from another
    origin than the server's own is only allowed for `origins`. Paths in `open_paths`, and files of the page, need
    no key.
    """

    def __init__(
        self,
        app: ASGIApp,
        keys: ApiKeys,
        hosts: Collection[str],
        origins: Collection[str],
        needs_key: Callable[[str], bool],
        observe: Observe,
    ) -> None:
        self._app, self._keys, self._hosts, self._origins = app, keys, hosts, origins
        self._needs_key, self._observe = needs_key, observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 500
        path = route_path(scope)

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                is_page = headers.get("content-type", "").startswith("text/html")
                headers["Content-Security-Policy"] = PAGE_POLICY if is_page else API_POLICY
            await send(message)

        try:
            scope.setdefault("state", {})["client"] = self._client(scope, path)
        except Problem as problem:
            response = json_response({"error": problem.as_dict()}, problem.status, problem.headers)
            await response(scope, receive, send_with_headers)
        else:
            await self._app(scope, receive, send_with_headers)
        finally:
            route = getattr(scope.get("route"), "path", None) or "other"
            method = scope["method"] if scope["method"] in METHODS else "other"
            self._observe(method, route, status, time.perf_counter() - started)

    def _client(self, scope: Scope, path: str) -> str:
        """Return who is charged for a request; raise `Problem` if it is not allowed."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self._hosts and hostname(host) not in self._hosts:
            hint = "Name it when the server is started: fewparse serve --allow-host NAME"
            raise Problem(421, "unknown_host", "the server does not answer under this host name", hint)
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host and origin not in self._origins:
            hint = "Name it when the server is started: fewparse serve --cors-origin ORIGIN"
            raise Problem(403, "origin_not_allowed", "requests from this origin are not allowed", hint)
        address = (scope.get("client") or ("unknown", 0))[0]
        if not self._keys:
            return str(address)
        client = self._keys.client(headers)
        if client is None and self._needs_key(path):
            hint = "Send it in the header: Authorization: Bearer KEY"
            raise Problem(401, "unauthorized", "the API key is missing or wrong", hint)
        return client or str(address)


def route_path(scope: Scope) -> str:
    """Return the path of a request within this application, which may be mounted below another path."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if root and path.startswith(f"{root}/") else path


def hostname(host: str) -> str:
    """Return the header Host without its port."""
    return host if host.endswith("]") else host.rpartition(":")[0] or host
