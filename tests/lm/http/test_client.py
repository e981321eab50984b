"""The HTTP client: pooled connections, retries, error messages, redacted secrets, cached responses."""

import gzip
import json
import re
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from fewparse.errors import (
    ContextOverflow,
    FewparseError,
    ServerError,
    ServerRejected,
    ServerUnavailable,
    ServerUnsupported,
    UsageError,
)
from fewparse.lm.http.client import MAX_FIRST_ATTEMPTS, HttpClient, Response
from fewparse.lm.http.load import RemoteSettings, open_remote
from fewparse.lm.model import Sampling
from fewparse.lm.response_cache import ResponseCache
from fewparse.lm.usage import Usage
from fewparse.retry import FIRST_WAIT, RetryableError, RetryPolicy, exponential_wait
from support.faulty_proxy import (
    DROPPED_AFTER,
    DROPPED_BEFORE,
    DROPPED_WITHIN,
    FLIPPED,
    SILENT,
    TRUNCATED,
    Fault,
    FaultyProxy,
    error,
    slow,
    too_many,
)
from support.loopback import LoopbackServer, RequestHandler, unused_address
from support.prompts import plain_prompt
from support.remote_models import GOOD, RETRY, CannedResponse, ScriptedServer, http_client, request_bodies
from support.server_behaviours import COMPLIANT, Behaviour
from support.toy_server import ToyServer

BODY = {"model": "toy", "prompt": "pear", "max_tokens": 3, "seed": 1}
PATH = "/v1/completions"
SECRET = "sk-very-secret-9f3a"


def post(client: HttpClient, body: Any = None, **options: Any) -> Response[Any]:
    return client.post(PATH, BODY if body is None else body, lambda payload: payload, **options)


@contextmanager
def faulty_proxy(*faults: Fault | None, behaviour: Behaviour = COMPLIANT) -> Iterator[FaultyProxy]:
    """A proxy that plays these faults, in front of a toy server."""
    with ToyServer(behaviour) as toy, FaultyProxy(toy.url, faults) as proxy:
        yield proxy


def error_of(
    *responses: CannedResponse, body: Any = None, retry: RetryPolicy = RETRY
) -> tuple[FewparseError, int]:
    """The error raised for these responses, and the number of requests."""
    with ScriptedServer(*responses) as server, http_client(server.url, retry=retry) as client:
        with pytest.raises(FewparseError) as caught:
            post(client, body)
        assert caught.value.hint
        return caught.value, len(server.requests)


# Connections


def test_one_connection_serves_many_requests() -> None:
    with ToyServer() as toy, http_client(toy.url) as client:
        for seed in range(20):
            post(client, {**BODY, "seed": seed})
        assert (len(toy.requests), toy.connections) == (20, 1)


@pytest.mark.parametrize("max_concurrency", [1, 3])
def test_requests_in_progress_never_exceed_max_concurrency(max_concurrency: int) -> None:
    with (
        ScriptedServer() as toy,
        http_client(toy.url, max_concurrency=max_concurrency) as client,
        ThreadPoolExecutor(10) as pool,
    ):
        list(pool.map(lambda seed: post(client, {"seed": seed}), range(30)))
        assert len(toy.requests) == 30
        assert toy.max_in_progress == max_concurrency
        assert toy.connections <= max_concurrency


def test_requests_of_concurrent_parses_never_exceed_max_concurrency() -> None:
    class Counting(ToyServer):
        in_progress = max_in_progress = 0

        def respond(self, handler: RequestHandler, body: bytes) -> None:
            with lock:
                self.in_progress += 1
                self.max_in_progress = max(self.max_in_progress, self.in_progress)
            time.sleep(0.01)
            with lock:
                self.in_progress -= 1
            super().respond(handler, body)

    lock = Lock()
    with Counting(Behaviour(accepts_prompt_lists=False, n="ignored")) as toy:
        model = open_remote("openai", "toy", RemoteSettings(toy.url, max_concurrency=2, cache=False))
        prompts = [plain_prompt(text) for text in "abcdef"]
        sampling = Sampling(4, 1.0, 3)
        with closing(model), ThreadPoolExecutor(6) as pool:
            list(pool.map(lambda prompt: model.sample(prompt, [()], sampling, Usage()), prompts))
        assert toy.max_in_progress == 2


def test_waiting_for_a_slot_does_not_count_as_timeout() -> None:
    retry = RetryPolicy(timeout=4, deadline=120)
    with (
        faulty_proxy(*[slow(0.4)] * 12) as proxy,
        http_client(proxy.url, retry=retry, max_concurrency=1) as client,
        ThreadPoolExecutor(12) as pool,
    ):
        responses = list(pool.map(lambda seed: post(client, {**BODY, "seed": seed}), range(12)))
        assert [response.retries for response in responses] == [0] * 12


def test_closing_the_client_ends_a_wait_between_attempts() -> None:
    wait = 120
    with faulty_proxy(too_many(wait)) as proxy, ThreadPoolExecutor(1) as pool:
        client = HttpClient(proxy.url)
        start = time.monotonic()
        waiting = pool.submit(post, client)
        while not proxy.log or proxy.log[0].status is None:
            time.sleep(0.005)
        client.close()
        with pytest.raises(ServerUnavailable, match="closed"):
            waiting.result()
        with pytest.raises(ServerUnavailable, match="closed"):
            post(client)
        assert time.monotonic() - start < wait
        assert len(proxy.log) == 1


def test_the_key_and_the_path_are_sent() -> None:
    with ScriptedServer() as toy, http_client(toy.url, SECRET) as client:
        post(client)
        client.get("/props")
        assert [path for path, _, _ in toy.requests] == ["/v1/completions", "/props"]
        assert all(headers["Authorization"] == f"Bearer {SECRET}" for _, headers, _ in toy.requests)
    with ScriptedServer() as toy, http_client(f"{toy.url}/?api-version=2") as client:
        post(client)
        assert toy.requests[0][0] == "/v1/completions?api-version=2"
        assert "Authorization" not in toy.requests[0][1]


# Retries


@pytest.mark.parametrize(
    "fault",
    [
        too_many(),
        too_many(0.05),
        too_many(0, as_date=True),
        *map(error, (408, 409, 425, 500, 502, 503, 504, 529)),
        DROPPED_BEFORE,
        DROPPED_AFTER,
        DROPPED_WITHIN,
        TRUNCATED,
        FLIPPED,
    ],
    ids=str,
)
def test_transient_faults_are_retried_and_counted(fault: Fault) -> None:
    with faulty_proxy(fault, fault) as proxy, http_client(proxy.url) as client:
        response = post(client)
        assert response.retries == 2
        assert response.content["choices"]
        assert sum(proxy.succeeded().values()) == 1
        assert len(proxy.log) == 3


def test_a_silent_server_is_retried_after_the_timeout() -> None:
    retry = RetryPolicy(timeout=3, deadline=120)
    with faulty_proxy(SILENT) as proxy, http_client(proxy.url, retry=retry) as client:
        start = time.monotonic()
        assert post(client).retries == 1
        assert time.monotonic() - start >= 3


class TricklingServer(LoopbackServer):
    """Starts a response immediately, then sends one byte at a time without end."""

    def respond(self, handler: RequestHandler, body: bytes) -> None:
        handler.reply(200, b" " * 10_000, sent=1)
        while not self.stopping.wait(0.02):
            handler.wfile.write(b" ")


def test_the_timeout_applies_to_the_whole_response() -> None:
    with (
        TricklingServer() as server,
        http_client(server.url, retry=RetryPolicy(timeout=0.2, deadline=20)) as client,
        pytest.raises(ServerUnavailable, match=r"no response within 0\.2 s"),
    ):
        post(client)


def test_a_response_with_invalid_compression_is_retried() -> None:
    packed = [("Content-Encoding", "gzip")]
    good = gzip.compress(json.dumps(GOOD).encode())
    responses = [CannedResponse(200, body, packed) for body in (b"no gzip", good)]
    with ScriptedServer(*responses) as toy, http_client(toy.url) as client:
        assert post(client) == Response(GOOD, 1, False)


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 100_000, b"[]", b"7", b"null", b"\xff\xfe"])
def test_a_response_that_is_not_a_json_object_is_retried(body: bytes) -> None:
    with ScriptedServer(CannedResponse(200, body), CannedResponse()) as toy, http_client(toy.url) as client:
        assert post(client) == Response(GOOD, 1, False)


def test_retryable_parse_errors_are_retried_and_unfit_responses_are_not() -> None:
    def parse(payload: Any) -> Any:
        if payload["number"] == 1:
            raise RetryableError("not yet")
        if payload["number"] == 3:
            raise ServerUnsupported("never")
        return payload["number"]

    responses = (CannedResponse(200, {"number": i}) for i in (1, 2, 3))
    with ScriptedServer(*responses) as toy, http_client(toy.url) as client:
        assert client.post(PATH, BODY, parse) == Response(2, 1, False)
        with pytest.raises(ServerUnsupported, match="never"):
            client.post(PATH, BODY, parse)
        assert len(toy.requests) == 3


def test_retry_after_is_respected() -> None:
    for fault in (too_many(0.4), Fault("rejected", 503, 0.4)):
        with faulty_proxy(fault) as proxy, http_client(proxy.url) as client:
            start = time.monotonic()
            post(client)
            assert time.monotonic() - start >= 0.4


def test_retry_after_zero_still_backs_off() -> None:
    retry = RetryPolicy(timeout=2, deadline=2)
    response = CannedResponse(429, {"error": {"message": "busy"}}, [("Retry-After", "0")])
    _, attempts = error_of(response, retry=retry)
    assert 3 <= attempts <= 10


# Limits of retries


def test_the_deadline_ends_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fewparse.lm.http.client.jittered_wait", lambda failures: 3.0)
    start = time.monotonic()
    error, attempts = error_of(
        CannedResponse(503, {"error": {"message": "down for repair"}}), retry=RetryPolicy(5, 5.5)
    )
    assert time.monotonic() - start >= 3
    assert attempts == 2, "a second wait would end after the deadline"
    assert isinstance(error, ServerUnavailable)
    assert re.search(r"status 503: down for repair \(2 attempts in \d s\)", error.message)
    assert "--deadline" in str(error.hint)


def test_the_deadline_also_limits_a_single_attempt() -> None:
    with faulty_proxy(None, SILENT) as proxy, http_client(proxy.url, retry=RetryPolicy(60, 4)) as client:
        post(client)
        start = time.monotonic()
        with pytest.raises(ServerUnavailable, match=r"no response within 4 s"):
            post(client)
        assert time.monotonic() - start < 60


@pytest.mark.parametrize("as_date", [False, True])
def test_a_wait_beyond_the_deadline_is_not_started(as_date: bool) -> None:
    with faulty_proxy(too_many(900, as_date)) as proxy, http_client(proxy.url) as client:
        start = time.monotonic()
        with pytest.raises(ServerUnavailable, match=r"it requests a wait of (900|89\d) s"):
            post(client)
        assert time.monotonic() - start < 890
        assert len(proxy.log) == 1


def test_a_request_may_limit_its_attempts() -> None:
    with faulty_proxy(None, *[error(500)] * 9) as proxy, http_client(proxy.url) as client:
        post(client)
        with pytest.raises(ServerUnavailable, match="status 500"):
            post(client, max_attempts=4)
        assert len(proxy.log) == 5


def test_attempts_are_limited_only_before_the_first_response() -> None:
    dropped = [DROPPED_BEFORE] * (MAX_FIRST_ATTEMPTS + 2)
    with faulty_proxy(None, *dropped) as proxy, http_client(proxy.url) as client:
        post(client)
        assert post(client).retries == len(dropped)
    with faulty_proxy(*dropped) as proxy, http_client(proxy.url) as client:
        with pytest.raises(ServerUnavailable, match="3 attempts"):
            post(client)
        assert len(proxy.log) == MAX_FIRST_ATTEMPTS


def test_a_server_that_is_loading_is_retried() -> None:
    loading = CannedResponse(
        503, {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}
    )
    with ScriptedServer(*[loading] * 6, CannedResponse()) as toy, http_client(toy.url) as client:
        assert post(client).retries == 6


@pytest.mark.parametrize("body", [None, {}])
def test_long_error_bodies_are_shortened(body: Any) -> None:
    error, _ = error_of(CannedResponse(500, b"x" * 5000), retry=RetryPolicy(5, 20, max_attempts=2))
    assert len(error.message) < 500


# Rejected requests


@pytest.mark.parametrize(
    ("status", "text", "message", "hint"),
    [
        (400, "temperature: must be a number", "rejected the request (status 400: temperature", "models probe"),
        (400, "This is a chat model and not supported", "rejected the request", "openai-chat:NAME"),
        (401, "no such key", "rejected the API key, or requires one (status 401: no such key)", "OPENAI_API_KEY"),
        (403, "not for you", "rejected the API key", "OPENAI_API_KEY"),
        (404, "no such thing", "has no such model or endpoint", "'toy'"),
        (405, "", "rejected the request (status 405)", "models probe"),
        (402, "Insufficient Balance", "no credit left", "billing"),
    ],
)
def test_a_rejected_request_is_final_and_has_a_hint(status: int, text: str, message: str, hint: str) -> None:
    error, attempts = error_of(CannedResponse(status, {"error": {"message": text}} if text else b""))
    assert attempts == 1
    assert isinstance(error, ServerRejected)
    assert message in error.message
    assert hint in str(error.hint)


@pytest.mark.parametrize(
    "details",
    [
        {"message": "You exceeded your current quota, please check your plan.", "code": "insufficient_quota"},
        {"message": "No money", "type": "insufficient_quota", "code": None},
        {"message": "Your Credit Balance is too low"},
    ],
)
def test_an_exhausted_quota_is_not_retried(details: dict[str, Any]) -> None:
    error, attempts = error_of(CannedResponse(429, {"error": details}))
    assert attempts == 1
    assert isinstance(error, ServerRejected)
    assert "no credit left" in error.message
    assert details["message"] in error.message
    assert "billing" in str(error.hint)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_reported_not_followed(status: int) -> None:
    error, attempts = error_of(
        CannedResponse(status, b"", [("Location", "https://elsewhere.example/v1/completions")])
    )
    assert attempts == 1
    assert isinstance(error, ServerRejected)
    assert "redirects elsewhere" in error.message
    assert "https://elsewhere.example/v1/completions" in error.message
    assert "--base-url" in str(error.hint)


@pytest.mark.parametrize(
    "body",
    [
        {"error": "no such key"},
        {"detail": "no such key"},
        {"message": "no such key", "object": "error"},
        {"error": {"message": "no such key"}},
        {"detail": [{"msg": "no such key"}]},
        b"no such key",
    ],
)
def test_the_error_message_is_found_in_any_field(body: Any) -> None:
    assert "no such key" in error_of(CannedResponse(401, body))[0].message


@pytest.mark.parametrize("kind", ["openai", "llama.cpp"])
def test_a_context_overflow_states_both_lengths(kind: Any) -> None:
    with ToyServer(Behaviour(context_length=100, context_error=kind)) as toy, http_client(toy.url) as client:
        with pytest.raises(ContextOverflow) as caught:
            post(client, {**BODY, "prompt": "x" * 200, "max_tokens": 30})
        assert (caught.value.needed, caught.value.available) == (230 if kind == "openai" else 200, 100)
        assert len(toy.requests) == 1


@pytest.mark.parametrize(
    ("text", "needed", "available"),
    [
        (
            "This model's maximum context length is 4097 tokens, however you requested 5160 tokens (5000 in your "
            "prompt; 160 for the completion). Please reduce your prompt; or completion length.",
            5160,
            4097,
        ),
        (
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens. "
            "Please reduce the length of the messages.",
            9001,
            8192,
        ),
        ("the request exceeds the available context size (4096 tokens): 5000 tokens", 5000, 4096),
        ("Input is too long: 700 tokens, at most 512", 700, 512),
    ],
)
def test_a_context_overflow_is_recognised_in_various_messages(text: str, needed: int, available: int) -> None:
    error, attempts = error_of(CannedResponse(400, {"error": {"message": text}}))
    assert isinstance(error, ContextOverflow)
    assert (error.needed, error.available, attempts) == (needed, available, 1)


def test_a_context_overflow_without_numbers_quotes_the_server() -> None:
    error, _ = error_of(CannedResponse(400, {"error": {"message": "the context is full"}}))
    assert isinstance(error, ServerRejected)
    assert "the context is full" in error.message


# Invalid addresses


def test_a_web_page_is_rejected() -> None:
    with ToyServer(Behaviour(html=True)) as toy, http_client(toy.url) as client:
        with pytest.raises(ServerUnavailable, match="web page") as caught:
            post(client)
        assert "/v1" in str(caught.value.hint)
        assert len(toy.requests) == 1
    page = [("Content-Type", "text/html")]
    error, attempts = error_of(CannedResponse(404, b"<!doctype html><h1>Not here", page))
    assert attempts == 1
    assert "<" not in error.message


def test_a_server_without_tls_is_not_retried() -> None:
    with ScriptedServer() as toy, http_client(toy.url.replace("http://", "https://")) as client:
        with pytest.raises(ServerUnavailable, match="no secure connection") as caught:
            post(client)
        assert "https://" in str(caught.value.hint)
        assert toy.connections == 1


def test_an_unanswered_tls_handshake_has_a_short_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fewparse.lm.http.client.CONNECT_TIMEOUT", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with http_client(f"https://127.0.0.1:{port}/v1") as client, pytest.raises(ServerUnavailable) as caught:
            client.get("/v1/models")
    assert "no connection within 0.05 s (does the server use https://?)" in caught.value.message
    assert "3 attempts" in caught.value.message


def test_an_unknown_host_is_not_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_arguments: object, **_more: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    message = r"no-such-host\.invalid/v1: unknown host"
    with http_client("http://no-such-host.invalid/v1") as client, pytest.raises(ServerUnavailable, match=message):
        post(client)


def test_a_refused_connection_fails_after_few_short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fewparse.retry.FIRST_WAIT", FIRST_WAIT)
    with http_client(unused_address(), retry=RetryPolicy()) as client:
        with pytest.raises(ServerUnavailable, match=r"the connection failed.*\(3 attempts in ") as caught:
            post(client)
        assert "--base-url" in str(caught.value.hint)
    assert sum(exponential_wait(failures, FIRST_WAIT) for failures in range(MAX_FIRST_ATTEMPTS - 1)) < 5


@pytest.mark.parametrize(
    "url",
    [
        *("", "localhost:8080/v1", "ftp://localhost/v1", "http://", "http:///v1", "http://[half/v1", "//host/v1"),
        *("http://127.0.0.1:port/v1", "http://127.0.0.1/v\x011", "http://:8080/v1"),
    ],
)
def test_an_invalid_address_is_rejected(url: str) -> None:
    with pytest.raises(UsageError, match="address"), http_client(url) as client:
        post(client)


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "HTTP_PROXY"])
def test_invalid_connection_settings_in_the_environment_are_reported(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "nonsense://nowhere")
    with pytest.raises(UsageError, match="environment") as caught:
        HttpClient("https://127.0.0.1/v1")
    assert name in str(caught.value.hint)


# Secrets


@pytest.mark.parametrize("key", ["schlüssel-geheim", "sk-secret\nkey", "sk-secret\x00"])
def test_an_invalid_key_is_rejected_without_being_shown(key: str) -> None:
    with pytest.raises(UsageError, match="key") as caught:
        HttpClient("http://127.0.0.1/v1", key)
    assert key not in str(caught.value)
    assert "secret" not in str(caught.value)


def secrets_in(url: str) -> str:
    return url.replace("http://", "http://someone:pass%40word@").replace("/v1", "/v1?api-key=query-secret")


def shown(text: str) -> list[str]:
    """The secrets that can be read in a text."""
    secrets = (SECRET, "someone", "pass%40word", "pass@word", "query-secret")
    return [secret for secret in secrets if secret in text]


@pytest.mark.parametrize("status", [200, 302, 400, 401, 404, 429, 500])
def test_secrets_repeated_by_a_server_are_redacted(status: int) -> None:
    message = f"received {SECRET} as someone:pass@word (pass%40word) with api-key=query-secret, or query-secret!"
    headers = [("Location", f"/there?api-key=query-secret&k={SECRET}")]
    response = CannedResponse(status, {"error": {"message": message}}, headers)
    with (
        ScriptedServer(response) as toy,
        http_client(secrets_in(toy.url), SECRET, RetryPolicy(10, 20, max_attempts=3)) as client,
    ):

        def parse(payload: Any) -> Any:
            raise RetryableError(payload["error"]["message"])

        with pytest.raises(ServerError) as caught:
            client.post(PATH, BODY, parse)
        assert ("returned the API key" if status == 200 else "received ***") in str(caught.value)
        assert not shown(f"{caught.value} {caught.value!r} {client!r} {client.url}")


def test_no_error_shows_a_secret_of_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = [unused_address(), "http://127.0.0.1:port/v1", "ftp://127.0.0.1/v1", "http://127.0.0.1/v1\x01"]
    for address in addresses:
        with pytest.raises(FewparseError) as caught, http_client(secrets_in(address), SECRET) as client:
            post(client)
        assert not shown(f"{caught.value} {caught.value!r}")


def test_a_wrong_key_repeated_by_the_server_is_redacted() -> None:
    message = r"Incorrect API key provided: \*\*\*"
    with (
        ToyServer(Behaviour(key="right")) as toy,
        http_client(toy.url, SECRET) as client,
        pytest.raises(ServerRejected, match=message),
    ):
        post(client)


def test_a_secret_cut_by_shortening_is_redacted() -> None:
    for before in range(270, 310):
        response = CannedResponse(401, b"x" * before + SECRET.encode())
        with ScriptedServer(response) as toy, http_client(toy.url, SECRET) as client:
            with pytest.raises(ServerRejected) as caught:
                post(client)
            assert SECRET[:6] not in str(caught.value)


def test_the_cache_file_holds_no_secret(tmp_path: Path) -> None:
    with ScriptedServer() as toy, closing(ResponseCache(tmp_path / "a.sqlite")) as cache:
        with http_client(secrets_in(toy.url), SECRET, cache=cache) as client:
            post(client)
        assert "query-secret" in toy.requests[0][0], "the server itself receives it"
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert not shown(written.decode(errors="replace"))


# Cached responses


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[ResponseCache]:
    with closing(ResponseCache(tmp_path / "answers.sqlite")) as opened:
        yield opened


def test_a_cached_response_needs_no_request(cache: ResponseCache) -> None:
    with ToyServer() as toy:
        with http_client(toy.url, cache=cache) as client:
            first = post(client)
        with http_client(toy.url, "another key", cache=cache) as client:
            again = post(client)
        assert again == Response(first.content, 0, True)
        assert len(toy.requests) == 1


def test_requests_samples_and_servers_are_cached_separately(cache: ResponseCache) -> None:
    with ScriptedServer() as toy, ScriptedServer() as other:
        with http_client(toy.url, cache=cache) as client:
            for sample in (0, 1):
                post(client, sample=sample)
            post(client, {**BODY, "seed": 2})
            client.post("/v1/chat/completions", BODY, lambda payload: payload)
        with http_client(other.url, cache=cache) as client:
            post(client)
        assert (len(toy.requests), len(other.requests)) == (4, 1)


@pytest.mark.parametrize("bad", [CannedResponse(400, {"error": "no"}), CannedResponse(200, b"half")])
def test_only_valid_responses_are_cached(bad: CannedResponse, cache: ResponseCache) -> None:
    with ScriptedServer(bad, bad, bad, CannedResponse()) as toy, http_client(toy.url, cache=cache) as client:
        with pytest.raises(ServerError):
            post(client)
        assert cache.statistics().entries == 0
        while len(toy.responses) > 1:
            with pytest.raises(ServerError):
                post(client)
        assert post(client).cached is False
        assert post(client).cached is True


def test_an_unusable_cached_response_is_requested_again(cache: ResponseCache) -> None:
    responses = [CannedResponse(200, {"number": i}) for i in (1, 2)]
    with ScriptedServer(*responses) as toy, http_client(toy.url, cache=cache) as client:
        assert post(client).content == {"number": 1}

        def parse(payload: Any) -> Any:
            if payload["number"] == 1:
                raise ServerUnsupported("of another version")
            return payload

        assert client.post(PATH, BODY, parse) == Response({"number": 2}, 0, False)
        assert post(client) == Response({"number": 2}, 0, True)
        assert len(toy.requests) == 2


def test_before_send_is_called_only_if_a_request_is_sent(cache: ResponseCache) -> None:
    def reject() -> None:
        raise UsageError("not allowed")

    with ToyServer() as toy, http_client(toy.url, cache=cache) as client:
        with pytest.raises(UsageError, match="not allowed"):
            post(client, before_send=reject)
        assert request_bodies(toy) == []
        post(client)
        assert post(client, before_send=reject).cached
