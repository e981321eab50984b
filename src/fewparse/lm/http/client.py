"""One server: requests over kept connections, asked again where that can help, refusals in plain words."""

import json
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from itertools import count
from typing import Any, NamedTuple, TypeVar
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit, urlunsplit

import httpx2

from fewparse.errors import ServerError, ServerUnavailable, UsageError
from fewparse.lm.http.errors import message, network_failure, one_line, refusal
from fewparse.lm.response_cache import ResponseCache, cache_key

T = TypeVar("T")
AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
SHORTEST_WAIT, LONGEST_WAIT = 0.25, 30.0
TO_CONNECT = 10.0
"""Seconds: a server that speaks no TLS may leave us waiting for it without a word."""
TRIES_AT_FIRST = 3
"""A server that never answered is not waited for as one that did: its address may be wrong."""
SHORTEST_SECRET = 6
"""A shorter name or value of an address is none, and would be found in every other word."""


@dataclass(frozen=True)
class RetryPolicy:
    """How long to wait: for one answer, and for a good one after however many failures."""

    timeout: float = 120.0
    deadline: float = 600.0

    def __post_init__(self) -> None:
        if self.timeout <= 0 or self.deadline <= 0:
            raise UsageError("the time-out and the deadline are more than 0 seconds")


class Failed(Exception):
    """An answer that did not come or cannot be read; another try may do better, after some seconds."""

    def __init__(self, reason: str, after: float | None = None) -> None:
        super().__init__(reason)
        self.after = after


class Answer(NamedTuple):
    """What a server said, as it was read; how often it had to be asked again, and whether it was known already."""

    content: Any
    retries: int
    cached: bool


class Heard(NamedTuple):
    """An answer as it came, whole."""

    status: int
    headers: httpx2.Headers
    body: bytes

    @property
    def is_page(self) -> bool:
        """Whether it is for people, not for programs."""
        return "html" in self.headers.get("Content-Type", "")


class Server:
    """A server's address, key and connections. Safe for many threads; at most `in_flight` requests at once."""

    def __init__(
        self,
        base_url: str,
        key: str | None = None,
        patience: RetryPolicy | None = None,
        cache: ResponseCache | None = None,
        in_flight: int = 8,
    ) -> None:
        address = split_address(base_url)
        if key and not (key.isascii() and key.isprintable()):
            raise UsageError("the key has characters that no key has", "Look at OPENAI_API_KEY.")
        self.url = without_secrets(address)
        self._base = base_url.rstrip("/")
        self._secrets = secrets(key, address)
        self._patience = patience or RetryPolicy()
        self._cache = cache
        self._places = threading.BoundedSemaphore(in_flight)
        self._closing = threading.Event()
        self._answered = False
        limits = httpx2.Limits(max_connections=in_flight, max_keepalive_connections=in_flight, keepalive_expiry=60)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        try:
            self._client = httpx2.Client(limits=limits, headers=headers, follow_redirects=False)
        except (OSError, ValueError, ImportError, httpx2.InvalidURL):
            raise UsageError(
                "no connection can be made as the environment says it should be",
                "Look at SSL_CERT_FILE and SSL_CERT_DIR, and at HTTP_PROXY, HTTPS_PROXY and ALL_PROXY.",
            ) from None

    def close(self) -> None:
        """End all connections, and ask no more; whoever waits to ask again is told so at once."""
        self._closing.set()
        self._client.close()

    def ask(
        self,
        path: str,
        body: Mapping[str, Any],
        read: Callable[[Any], T],
        sample: int = 0,
        admit: Callable[[], None] = lambda: None,
        tries: int | None = None,
    ) -> Answer:
        """POST; `read` checks the answer and takes from it what is needed. Good answers are kept.

        `sample` tells equal requests apart whose answers are meant to differ. `admit` is called before anything
        is really sent. `tries` is how often to ask at most, where patience would go further.
        """
        request = {"server": self.url, "path": path, "body": body, "sample": sample}
        key = cache_key(request) if self._cache else ""
        if self._cache and (known := self._cache.get(key)) is not None:
            try:
                return Answer(read(known), 0, True)
            except (Failed, ServerError):
                pass  # kept by a version that read it otherwise: it is asked anew
        admit()
        (answer, content), retries = self._persist(partial(self._try, "POST", path, body, read), tries)
        if self._cache:
            self._cache.put(key, answer)
        return Answer(content, retries, False)

    def get(self, path: str) -> Any:
        """GET, as JSON."""
        (_, content), _ = self._persist(partial(self._try, "GET", path, None, lambda answer: answer))
        return content

    def _persist(self, attempt: Callable[[float], T], tries: int | None = None) -> tuple[T, int]:
        """Try until it works, waiting longer each time, as far as patience goes; and how often it failed."""
        began = time.monotonic()
        waited = 0.0
        for failures in count():
            try:
                return attempt(min(self._patience.timeout, self._patience.deadline - waited)), failures
            except Failed as failed:
                wait = max(failed.after or 0.0, jittered(failures))
                waited = time.monotonic() - began
                most = tries if self._answered else TRIES_AT_FIRST
                hopeless = most is not None and failures + 1 >= most
                if hopeless or waited + wait >= self._patience.deadline or self._closing.is_set():
                    raise self._gave_up(failed, failures + 1, waited) from None
                self._closing.wait(wait)
                waited += wait
        raise AssertionError

    def _gave_up(self, failed: Failed, tries: int, seconds: float) -> ServerUnavailable:
        times = f" (asked {tries} times in {seconds:.0f} s)" if tries > 1 else ""
        after = f"; it asks to be left alone for {failed.after:.0f} s" if failed.after else ""
        hint = "Is the server up, and is its address right (--base-url)? --deadline says how long to go on trying."
        return ServerUnavailable(f"{self.url}: {self.plain(str(failed))}{after}{times}", hint)

    def _try(
        self, method: str, path: str, body: Mapping[str, Any] | None, read: Callable[[Any], T], seconds: float
    ) -> tuple[Any, T]:
        try:
            if self._closing.is_set():
                raise ServerUnavailable(f"{self.url}: the connection was closed")
            return self._read(self._send(method, path, body, seconds), body, read)
        except httpx2.ConnectTimeout:
            doubt = " (is it https:// at all?)" if self.url.startswith("https") else ""
            raise Failed(f"no connection within {min(seconds, TO_CONNECT):.3g} s{doubt}") from None
        except httpx2.TimeoutException:
            raise Failed(f"no answer within {seconds:.3g} s") from None
        except httpx2.InvalidURL as error:
            raise UsageError(f"{self.url!r} is no address of a server: {self.plain(str(error))}") from None
        except (httpx2.RequestError, RuntimeError) as error:
            if self._closing.is_set():
                raise ServerUnavailable(f"{self.url}: the connection was closed") from None
            if hopeless := network_failure(error, self.url):
                raise hopeless from None
            raise Failed(f"the connection failed: {str(error) or type(error).__name__}") from None

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None, seconds: float) -> Heard:
        """The answer to one request. The client's own time-out is for each part of it: the whole has no more."""
        timeout = httpx2.Timeout(seconds, connect=min(seconds, TO_CONNECT), pool=None)
        with self._places:
            end = time.monotonic() + seconds
            with self._client.stream(method, self._address(path), json=body, timeout=timeout) as response:
                parts = []
                for part in response.iter_bytes():
                    parts.append(part)
                    if time.monotonic() > end:
                        raise httpx2.ReadTimeout("too slow")
                return Heard(response.status_code, response.headers, b"".join(parts))

    def _read(self, heard: Heard, body: Mapping[str, Any] | None, read: Callable[[Any], T]) -> tuple[Any, T]:
        """The answer and what was read of it; or why not."""
        try:
            answer = json.loads(heard.body)
        except (ValueError, RecursionError):
            answer = None
        if heard.status != 200:
            self._answered = self._answered or heard.status < 500 or isinstance(answer, dict)
            page = "" if heard.is_page else heard.body.decode(errors="replace")
            said = self.plain(message(answer) or heard.headers.get("Location") or page)
            no = refusal(heard.status, answer, self.url, body or {}, said)
            if heard.status not in AGAIN or no.final:
                raise no.error
            raise Failed(no.reason, retry_after(heard.headers))
        if not isinstance(answer, dict):
            if heard.is_page:
                hint = "Does the address end in /v1? --base-url is what comes before /completions."
                raise ServerUnavailable(
                    f"{self.url} answers with a web page: it is no OpenAI-compatible server", hint
                )
            raise Failed("its answer is not whole, or no JSON")
        content = read(answer)
        self._answered = True
        return answer, content

    def _address(self, path: str) -> str:
        """`/v1/...` stands behind the base address, other paths at the root of the server."""
        if path.startswith("/v1/"):
            base, query = self._base.partition("?")[::2]
            return f"{base.rstrip('/')}{path.removeprefix('/v1')}{'?' + query if query else ''}"
        parts = urlsplit(self._base)
        return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/").removesuffix("/v1") + path, "", ""))

    def plain(self, text: str) -> str:
        """A server's words on one line, without our secrets in them."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return one_line(text)


def jittered(failures: int) -> float:
    """How long to wait after so many failures: at random, so that many clients do not come back at once."""
    longest = min(LONGEST_WAIT, SHORTEST_WAIT * 2 ** min(failures, 16))
    return random.uniform(longest / 2, longest)


def retry_after(headers: httpx2.Headers) -> float | None:
    """The seconds that a server asks to wait, told as a number or as a date."""
    told = headers.get("Retry-After", "").strip()
    try:
        return max(0.0, float(told))
    except ValueError:
        pass
    try:
        date = parsedate_to_datetime(told)
    except (ValueError, OverflowError):
        return None
    return max(0.0, ((date if date.tzinfo else date.replace(tzinfo=UTC)) - datetime.now(UTC)).total_seconds())


def split_address(url: str) -> SplitResult:
    """The parts of a server's address, if it is one."""
    hint = "It begins with http:// or https://"
    try:
        address = urlsplit(url)
    except ValueError as error:
        raise UsageError(f"the address of the server cannot be read: {error}", hint) from None
    if address.scheme not in ("http", "https") or not address.hostname:
        raise UsageError(f"{without_secrets(address)!r} is no address of a server", hint)
    return address


def without_secrets(address: SplitResult) -> str:
    """An address without name, password and query."""
    place = address.netloc.rpartition("@")[2]
    return urlunsplit((address.scheme, place, address.path.rstrip("/"), "", ""))


def secrets(key: str | None, address: SplitResult) -> list[str]:
    """What must not be read in any message, longest first: no part of one is left where another was cut out."""
    values = [address.username or "", *(value for _, value in parse_qsl(address.query))]
    certain = {key or "", address.password or "", unquote(address.password or ""), address.query}
    likely = {value for value in values if len(value) >= SHORTEST_SECRET}
    return sorted((certain | likely) - {""}, key=len, reverse=True)
