"""HTTP client for one server: pooled connections, retries, cached responses, errors without secrets."""

import json
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import SplitResult, urlsplit, urlunsplit

import httpx2

from fewparse.errors import FewparseError, ServerError, ServerUnavailable, ServerUnsupported, UsageError
from fewparse.lm.http.errors import error_message, permanent_network_error, quote, read_error_response
from fewparse.lm.http.redaction import MAX_MASKED_LENGTH, Secrets
from fewparse.lm.http.transport import RawResponse, Transport
from fewparse.lm.response_cache import ResponseCache, cache_key
from fewparse.retry import RetryableError, RetryPolicy, jittered_wait, parse_retry_after

T = TypeVar("T")
DEFAULT_MAX_CONCURRENCY = 8
RETRYABLE_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
CONNECT_TIMEOUT = 10.0
"""Seconds: a server without TLS may leave a TLS handshake unanswered."""
MAX_FIRST_ATTEMPTS = 3
"""Attempts at a server that has never responded: its address may be wrong, so the deadline is not used up."""
MAX_JSON_VALUES = 5_000_000
"""A value in memory takes up to fifty times as many bytes as in JSON; a whole vocabulary has three million."""


class Response(NamedTuple, Generic[T]):
    """A parsed response, the number of retries it took, and whether it came from the cache."""

    content: T
    retries: int
    cached: bool


class HttpClient:
    """A server's address, API key and connections. Thread-safe; at most `max_concurrency` requests at a time."""

    def __init__(
        self,
        base_url: str,
        key: str | None = None,
        retry: RetryPolicy | None = None,
        cache: ResponseCache | None = None,
        max_concurrency: int = DEFAULT_MAX_CONCURRENCY,
    ) -> None:
        address = split_url(base_url)
        if key and not (key.isascii() and key.isprintable()):
            raise UsageError(
                "the API key contains characters that are not allowed in a key", "Check OPENAI_API_KEY."
            )
        self.url = public_url(address)
        self._base = base_url.rstrip("/")
        self._secrets = Secrets(key, address)
        self._retry = retry or RetryPolicy()
        self._cache = cache
        self._slots = threading.BoundedSemaphore(max_concurrency)
        self._closing = threading.Event()
        self._has_responded = False
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        try:
            self._transport = Transport(max_concurrency, headers)
        except (OSError, ValueError, ImportError, httpx2.InvalidURL):
            raise UsageError(
                "the connection settings in the environment are not valid",
                "Check SSL_CERT_FILE and SSL_CERT_DIR, and HTTP_PROXY, HTTPS_PROXY and ALL_PROXY.",
            ) from None

    def close(self) -> None:
        """Close all connections; pending and later requests fail at once."""
        self._closing.set()
        self._transport.close()

    @property
    def has_responded(self) -> bool:
        """Whether the server has ever responded, be it with an error."""
        return self._has_responded

    def post(
        self,
        path: str,
        body: Mapping[str, Any],
        parse: Callable[[Any], T],
        sample: int = 0,
        before_send: Callable[[], None] = lambda: None,
        max_attempts: int | None = None,
    ) -> Response[T]:
        """POST JSON and return the response as parsed by `parse`; valid responses are cached.

        `sample` distinguishes equal requests whose responses are meant to differ. `before_send` is called if the
        response is not cached. `max_attempts` limits the attempts below those of the retry policy.
        """
        request = {"server": self.url, "path": path, "body": body, "sample": sample}
        key = cache_key(request) if self._cache else ""
        stored = self._cache.get(key) if self._cache else None
        if isinstance(stored, dict):
            try:
                return Response(parse(stored), 0, True)
            except (RetryableError, ServerError):
                pass  # stored by a version that parsed it differently: request it again
        before_send()
        (payload, content), retries = self._with_retries(
            partial(self._attempt, "POST", path, body, parse), max_attempts
        )
        if self._cache and payload is not None:
            self._cache.put(key, payload)
        return Response(content, retries, False)

    def get(self, path: str) -> Any:
        """GET a path and return the JSON of the response."""
        (_, content), _ = self._with_retries(partial(self._attempt, "GET", path, None, lambda payload: payload))
        return content

    def check_secrets(self, data: bytes) -> None:
        """Raise ServerUnsupported if data of the server hold a secret: no output or record may show it."""
        if self._secrets.refuse(data):
            raise ServerUnsupported(
                f"{self.url} returned the API key or the password in a response, which is not used",
                "Use a server that you trust, and replace the key.",
            )

    def _with_retries(self, attempt: Callable[[float], T], max_attempts: int | None = None) -> tuple[T, int]:
        """Call `attempt` with its timeout until it succeeds; return its result and the number of failures."""
        start = time.monotonic()
        elapsed = 0.0
        for failures in count():
            try:
                return attempt(min(self._retry.timeout, self._retry.deadline - elapsed)), failures
            except RetryableError as error:
                wait = max(error.retry_after or 0.0, jittered_wait(failures))
                elapsed = time.monotonic() - start
                limit = (max_attempts or self._retry.max_attempts) if self._has_responded else MAX_FIRST_ATTEMPTS
                exhausted = limit is not None and failures + 1 >= limit
                if exhausted or elapsed + wait >= self._retry.deadline or self._closing.is_set():
                    raise self._unavailable(error, failures + 1, elapsed) from None
                self._closing.wait(wait)
                elapsed += wait
        raise AssertionError

    def _unavailable(self, error: RetryableError, attempts: int, seconds: float) -> ServerUnavailable:
        tried = f" ({attempts} attempts in {seconds:.0f} s)" if attempts > 1 else ""
        wait = f"; it requests a wait of {error.retry_after:.0f} s" if error.retry_after else ""
        hint = "Check that the server is running and that --base-url is right; --deadline sets how long to retry."
        return ServerUnavailable(f"{self.url}: {self.redact(str(error))}{wait}{tried}", hint)

    def _attempt(
        self, method: str, path: str, body: Mapping[str, Any] | None, parse: Callable[[Any], T], timeout: float
    ) -> tuple[Any, T]:
        return self._parse(self._send(method, path, body, timeout), body, parse)

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None, timeout: float) -> RawResponse:
        """Send one request; raise RetryableError if the connection or the server fails."""
        content = None if body is None else encoded(body)
        try:
            with self._slots:
                if self._closing.is_set():
                    raise ServerUnavailable(f"{self.url}: the connection was closed")
                return self._transport.send(method, self._url(path), content, timeout, CONNECT_TIMEOUT)
        except httpx2.ConnectTimeout:
            question = " (does the server use https://?)" if self.url.startswith("https") else ""
            seconds = min(timeout, CONNECT_TIMEOUT)
            raise RetryableError(f"no connection within {seconds:.3g} s{question}") from None
        except httpx2.TimeoutException:
            raise RetryableError(f"no response within {timeout:.3g} s") from None
        except httpx2.InvalidURL as error:
            raise UsageError(f"{self.url!r} is not a server address: {self.redact(str(error))}") from None
        except (httpx2.RequestError, RuntimeError, ValueError, OSError) as error:
            if self._closing.is_set():
                raise ServerUnavailable(f"{self.url}: the connection was closed") from None
            if permanent := permanent_network_error(error, self.url, self.redact):
                raise permanent from None
            raise RetryableError(f"the connection failed: {str(error) or type(error).__name__}") from None

    def _parse(self, raw: RawResponse, body: Mapping[str, Any] | None, parse: Callable[[Any], T]) -> tuple[Any, T]:
        """Return the JSON of a response and the result of `parse`; raise the corresponding error otherwise.

        The JSON is None if it must not be stored.
        """
        payload = parse_json(raw.body)
        if raw.status != 200:
            self._has_responded = self._has_responded or raw.status < 500 or isinstance(payload, dict)
            text = "" if raw.is_html else raw.body[:MAX_MASKED_LENGTH].decode(errors="replace")
            message = self.redact(error_message(payload) or raw.headers.get("Location") or text)
            response = read_error_response(raw.status, payload, self.url, body or {}, message)
            if raw.status not in RETRYABLE_STATUSES or response.final:
                raise response.error
            raise RetryableError(response.reason, parse_retry_after(raw.headers.get("Retry-After")))
        if not isinstance(payload, dict):
            if raw.is_html:
                self._has_responded = True
                hint = "Does the base URL end in /v1? --base-url is the part before /completions."
                raise ServerUnavailable(
                    f"{self.url} returned a web page: it is not an OpenAI-compatible server", hint
                )
            raise RetryableError("the response is incomplete or not JSON")
        keep = self._secrets.keep(raw.body)
        if not keep:
            self.check_secrets(raw.body)
        try:
            content = parse(payload)
        except FewparseError as error:  # it may quote the server
            error.message = self._secrets.mask(error.message)
            error.args = (error.message,)
            raise
        self._has_responded = True
        return payload if keep else None, content

    def _url(self, path: str) -> str:
        """Append `/v1/...` to the base URL, and other paths to the root of the server."""
        if path.startswith("/v1/"):
            base, query = self._base.partition("?")[::2]
            return f"{base.rstrip('/')}{path.removeprefix('/v1')}{'?' + query if query else ''}"
        parts = urlsplit(self._base)
        return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/").removesuffix("/v1") + path, "", ""))

    def redact(self, text: str) -> str:
        """Return a server's text on one line, with secrets replaced by asterisks."""
        return quote(self._secrets.mask(text))


def encoded(body: Mapping[str, Any]) -> bytes:
    """Return the body of a request as JSON; raise UsageError if it has text that is not Unicode."""
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except UnicodeEncodeError:
        raise UsageError("the request has text that is not Unicode: a lone surrogate") from None


def parse_json(body: bytes) -> Any:
    """Return the value of a JSON text; None if it is not valid or nested too deeply.

    Raises ServerUnsupported if it has so many values that they would fill the memory.
    """
    if sum(map(body.count, (b",", b"[", b"{"))) > MAX_JSON_VALUES:
        raise ServerUnsupported(
            f"the server's response has more than {MAX_JSON_VALUES:,} values", "Use an OpenAI-compatible server."
        )
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def split_url(url: str) -> SplitResult:
    """Split a server's base URL; raise UsageError if it is not an HTTP URL."""
    hint = "It must start with http:// or https://"
    try:
        address = urlsplit(url)
    except ValueError as error:
        raise UsageError(f"the server address is malformed: {error}", hint) from None
    if address.scheme not in ("http", "https") or not address.hostname:
        raise UsageError(f"{public_url(address)!r} is not a server address", hint)
    return address


def public_url(address: SplitResult) -> str:
    """Return a URL without user name, password and query."""
    host = address.netloc.rpartition("@")[2]
    return urlunsplit((address.scheme, host, address.path.rstrip("/"), "", ""))
