"""One server: connections kept, failures mended where that can be, refusals in plain words, no secret told."""

import gzip
import json
import random
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from email.utils import formatdate
from pathlib import Path
from threading import Lock
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewparse.errors import (
    ContextOverflow,
    FewparseError,
    ServerError,
    ServerRefused,
    ServerUnavailable,
    ServerUnfit,
    UsageError,
)
from fewparse.lm.http.client import (
    LONGEST_WAIT,
    TRIES_AT_FIRST,
    Answer,
    Failed,
    RetryPolicy,
    Server,
    jittered,
    retry_after,
)
from fewparse.lm.http.load import RemoteSettings, open_remote
from fewparse.lm.model import Sampling
from fewparse.lm.response_cache import ResponseCache
from fewparse.lm.usage import Usage
from fewparse.prompt import Part, Prompt
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
from support.loopback import Exchange, Loopback
from support.remote_models import GOOD, PATIENCE, Says, Scripted, bodies, speaking
from support.server_behaviours import HONEST, Manners
from support.toy_server import ToyServer

BODY = {"model": "toy", "prompt": "pear", "max_tokens": 3, "seed": 1}
PATH = "/v1/completions"
SECRET = "sk-very-secret-9f3a"


def ask(server: Server, body: Any = None, **more: Any) -> Answer:
    return server.ask(PATH, BODY if body is None else body, lambda answer: answer, **more)


@contextmanager
def between(*faults: Fault | None, manners: Manners = HONEST) -> Iterator[FaultyProxy]:
    """A proxy that plays these faults, before a server that is well."""
    with ToyServer(manners) as toy, FaultyProxy(toy.url, faults) as proxy:
        yield proxy


def refused(*answers: Says, body: Any = None, patience: RetryPolicy = PATIENCE) -> tuple[FewparseError, int]:
    """The error that these answers make, and how often was asked."""
    with Scripted(*answers) as server, speaking(server.url, patience=patience) as ours:
        with pytest.raises(FewparseError) as caught:
            ask(ours, body)
        assert caught.value.hint, "there is always a next step"
        return caught.value, len(server.heard)


# Connections


def test_one_connection_serves_many_requests() -> None:
    with ToyServer() as toy, speaking(toy.url) as server:
        for seed in range(20):
            ask(server, {**BODY, "seed": seed})
        assert (len(toy.requests), toy.connections) == (20, 1)


@pytest.mark.parametrize("in_flight", [1, 3])
def test_never_more_requests_are_under_way_than_allowed(in_flight: int) -> None:
    with Scripted() as toy, speaking(toy.url, in_flight=in_flight) as server, ThreadPoolExecutor(10) as pool:
        list(pool.map(lambda seed: ask(server, {"seed": seed}), range(30)))
        assert len(toy.heard) == 30
        assert toy.most_at_once == in_flight
        assert toy.connections <= in_flight


def test_no_more_requests_of_many_parses_are_under_way_than_the_user_allows() -> None:
    class Counting(ToyServer):
        now = most = 0

        def respond(self, exchange: Exchange, body: bytes) -> None:
            with lock:
                self.now += 1
                self.most = max(self.most, self.now)
            time.sleep(0.01)
            with lock:
                self.now -= 1
            super().respond(exchange, body)

    lock = Lock()
    with Counting(Manners(takes_lists=False, n="ignored")) as toy:
        model = open_remote("openai", "toy", RemoteSettings(toy.url, max_concurrency=2, cached=False))
        prompts = [Prompt((Part(text, False),)) for text in "abcdef"]
        sampling = Sampling(4, 1.0, 3)
        with closing(model), ThreadPoolExecutor(6) as pool:
            list(pool.map(lambda prompt: model.sample(prompt, [()], sampling, Usage()), prompts))
        assert toy.most == 2


def test_who_waits_for_a_place_does_not_time_out() -> None:
    patience = RetryPolicy(timeout=0.5, deadline=20)
    with between(*[slow(0.2)] * 5) as proxy, speaking(proxy.url, patience=patience, in_flight=1) as server:
        with ThreadPoolExecutor(5) as pool:
            answers = list(pool.map(lambda seed: ask(server, {**BODY, "seed": seed}), range(5)))
        assert [answer.retries for answer in answers] == [0] * 5


def test_who_waits_to_ask_again_is_told_at_once_that_the_server_was_closed() -> None:
    with between(too_many(15)) as proxy, ThreadPoolExecutor(1) as pool:
        server = Server(proxy.url, patience=PATIENCE)
        begin = time.monotonic()
        waiting = pool.submit(ask, server)
        while not proxy.log or proxy.log[0].status is None:
            time.sleep(0.005)
        server.close()
        with pytest.raises(ServerUnavailable, match="closed"):
            waiting.result()
        with pytest.raises(ServerUnavailable, match="closed"):
            ask(server)
        assert time.monotonic() - begin < 5
        assert len(proxy.log) == 1


def test_the_key_and_the_path_reach_the_server() -> None:
    with Scripted() as toy, speaking(toy.url, SECRET) as server:
        ask(server)
        server.get("/props")
        assert [path for path, _, _ in toy.heard] == ["/v1/completions", "/props"]
        assert all(headers["Authorization"] == f"Bearer {SECRET}" for _, headers, _ in toy.heard)
    with Scripted() as toy, speaking(f"{toy.url}/?api-version=2") as server:
        ask(server)
        assert toy.heard[0][0] == "/v1/completions?api-version=2"
        assert "Authorization" not in toy.heard[0][1]


# Trying again


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
def test_what_may_pass_is_asked_again_and_counted(fault: Fault) -> None:
    with between(fault, fault) as proxy, speaking(proxy.url) as server:
        answer = ask(server)
        assert answer.retries == 2
        assert answer.content["choices"]
        assert sum(proxy.succeeded().values()) == 1
        assert len(proxy.log) == 3


def test_a_server_that_is_silent_is_asked_again_after_the_time_out() -> None:
    patience = RetryPolicy(timeout=0.2, deadline=20)
    with between(SILENT) as proxy, speaking(proxy.url, patience=patience) as server:
        begin = time.monotonic()
        assert ask(server).retries == 1
        assert time.monotonic() - begin >= 0.2


class Dripping(Loopback):
    """Begins an answer at once and sends a byte of it now and then, for ever."""

    def respond(self, exchange: Exchange, body: bytes) -> None:
        exchange.reply(200, b" " * 10_000, sent=1)
        while not self.over.wait(0.02):
            exchange.wfile.write(b" ")


def test_an_answer_that_trickles_in_is_timed_as_a_whole() -> None:
    with Dripping() as server, speaking(server.url, patience=RetryPolicy(timeout=0.2, deadline=20)) as ours:
        begin = time.monotonic()
        with pytest.raises(ServerUnavailable, match=r"no answer within 0\.2 s"):
            ask(ours)
        assert time.monotonic() - begin < 3


def test_a_compressed_answer_that_cannot_be_unpacked_is_asked_for_again() -> None:
    packed = [("Content-Encoding", "gzip")]
    good = gzip.compress(json.dumps(GOOD).encode())
    with Scripted(Says(200, b"no gzip", packed), Says(200, good, packed)) as toy, speaking(toy.url) as server:
        assert ask(server) == Answer(GOOD, 1, False)


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 100_000, b"[]", b"7", b"null", b"\xff\xfe"])
def test_an_answer_that_is_no_object_is_asked_for_again(body: bytes) -> None:
    with Scripted(Says(200, body), Says()) as toy, speaking(toy.url) as server:
        assert ask(server) == Answer(GOOD, 1, False)


def test_an_answer_that_its_reader_cannot_use_is_asked_for_again_and_one_that_is_unfit_is_not() -> None:
    def read(answer: Any) -> Any:
        if answer["seen"] == 1:
            raise Failed("not yet")
        if answer["seen"] == 3:
            raise ServerUnfit("never")
        return answer["seen"]

    with Scripted(*(Says(200, {"seen": i}) for i in (1, 2, 3))) as toy, speaking(toy.url) as server:
        assert server.ask(PATH, BODY, read) == Answer(2, 1, False)
        with pytest.raises(ServerUnfit, match="never"):
            server.ask(PATH, BODY, read)
        assert len(toy.heard) == 3


def test_the_wait_that_a_server_asks_for_is_kept() -> None:
    for fault in (too_many(0.4), Fault("refused", 503, 0.4)):
        with between(fault) as proxy, speaking(proxy.url) as server:
            begin = time.monotonic()
            ask(server)
            assert time.monotonic() - begin >= 0.4


def test_a_server_that_asks_for_no_wait_is_not_hammered() -> None:
    patience = RetryPolicy(timeout=1, deadline=0.5)
    told = Says(429, {"error": {"message": "busy"}}, [("Retry-After", "0")])
    _, times = refused(told, patience=patience)
    assert 3 <= times <= 10


@given(st.integers(0, 10_000), st.integers(0, 2**32))
def test_waits_grow_and_vary_and_are_bounded(failures: int, seed: int) -> None:
    random.seed(seed)
    wait = jittered(failures)
    longest = min(LONGEST_WAIT, 0.01 * 2 ** min(failures, 20))
    assert longest / 2 <= wait <= longest
    assert len({jittered(failures) for _ in range(5)}) > 1


@pytest.mark.parametrize(
    ("told", "seconds"), [("7", 7), ("0.5", 0.5), ("-3", 0), ("nan", 0), ("soon", None), ("", None), (" 2 ", 2)]
)
def test_how_long_to_wait_may_be_told_as_a_number(told: str, seconds: float | None) -> None:
    assert retry_after(httpx2.Headers({"Retry-After": told})) == seconds


def test_how_long_to_wait_may_be_told_as_a_date() -> None:
    def told(date: str) -> float:
        seconds = retry_after(httpx2.Headers({"Retry-After": date}))
        assert seconds is not None
        return seconds

    assert told(formatdate(time.time() + 60, usegmt=True)) == pytest.approx(60, abs=3)
    assert told(formatdate(time.time() + 60, usegmt=False)) == pytest.approx(60, abs=3)
    assert told(formatdate(time.time() - 60, usegmt=True)) == 0
    assert retry_after(httpx2.Headers()) is None


DATES = st.from_regex(
    r"(?a)(Mon, )?[0-9]{1,12} (Jan|Feb|May) [0-9]{1,14} [0-9:]{1,9} (GMT|[+-][0-9]{1,9}|)", fullmatch=True
)


@given(st.text(st.characters(max_codepoint=126, min_codepoint=32)) | DATES)
def test_whatever_stands_there_is_a_wait_or_none(told: str) -> None:
    seconds = retry_after(httpx2.Headers({"Retry-After": told}))
    assert seconds is None or seconds >= 0


# Giving up


def test_the_deadline_ends_the_trying() -> None:
    begin = time.monotonic()
    error, times = refused(Says(503, {"error": {"message": "down for repair"}}), patience=RetryPolicy(5, 0.4))
    assert 0.1 < time.monotonic() - begin < 0.6
    assert isinstance(error, ServerUnavailable)
    assert f"status 503: down for repair (asked {times} times in 0 s)" in error.message
    assert "--deadline" in str(error.hint)


def test_the_deadline_also_ends_a_single_try() -> None:
    with between(None, SILENT) as proxy, speaking(proxy.url, patience=RetryPolicy(60, 0.5)) as server:
        ask(server)
        begin = time.monotonic()
        with pytest.raises(ServerUnavailable, match=r"no answer within 0\.5 s"):
            ask(server)
        assert time.monotonic() - begin < 3


@pytest.mark.parametrize("as_date", [False, True])
def test_a_wait_beyond_the_deadline_is_not_begun(as_date: bool) -> None:
    with between(too_many(900, as_date)) as proxy, speaking(proxy.url) as server:
        begin = time.monotonic()
        with pytest.raises(ServerUnavailable, match=r"it asks to be left alone for (900|899) s"):
            ask(server)
        assert time.monotonic() - begin < 5
        assert len(proxy.log) == 1


def test_a_question_may_be_given_up_earlier() -> None:
    with between(None, *[error(500)] * 9) as proxy, speaking(proxy.url) as server:
        ask(server)
        with pytest.raises(ServerUnavailable, match="status 500"):
            ask(server, tries=4)
        assert len(proxy.log) == 5


def test_a_server_that_was_there_is_waited_for_and_one_that_never_was_is_not() -> None:
    dropped = [DROPPED_BEFORE] * (TRIES_AT_FIRST + 2)
    with between(None, *dropped) as proxy, speaking(proxy.url) as server:
        ask(server)
        assert ask(server).retries == len(dropped)
    with between(*dropped) as proxy, speaking(proxy.url) as server:
        with pytest.raises(ServerUnavailable, match="asked 3 times"):
            ask(server)
        assert len(proxy.log) == TRIES_AT_FIRST


def test_a_server_that_says_it_is_loading_is_waited_for() -> None:
    loading = Says(503, {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}})
    with Scripted(*[loading] * 6, Says()) as toy, speaking(toy.url) as server:
        assert ask(server).retries == 6


@pytest.mark.parametrize("body", [None, {}])
def test_trouble_that_is_no_error_of_ours_is_quoted_in_short(body: Any) -> None:
    error, _ = refused(Says(500, b"x" * 5000), patience=RetryPolicy(5, 0.1))
    assert len(error.message) < 500


# Refusals


@pytest.mark.parametrize(
    ("status", "said", "message", "hint"),
    [
        (400, "temperature: must be a number", "refuses the request (status 400: temperature", "models probe"),
        (400, "This is a chat model and not supported", "refuses the request", "openai-chat:NAME"),
        (401, "no such key", "refuses the key, or the lack of one (status 401: no such key)", "OPENAI_API_KEY"),
        (403, "not for you", "refuses the key", "OPENAI_API_KEY"),
        (404, "no such thing", "knows no such model or address", "'toy'"),
        (405, "", "refuses the request (status 405)", "models probe"),
        (402, "Insufficient Balance", "nothing left to spend", "billing"),
    ],
)
def test_a_refusal_is_final_and_told_with_a_next_step(status: int, said: str, message: str, hint: str) -> None:
    error, times = refused(Says(status, {"error": {"message": said}} if said else b""))
    assert times == 1
    assert isinstance(error, ServerRefused)
    assert message in error.message
    assert hint in str(error.hint)


@pytest.mark.parametrize(
    "told",
    [
        {"message": "You exceeded your current quota, please check your plan.", "code": "insufficient_quota"},
        {"message": "No money", "type": "insufficient_quota", "code": None},
        {"message": "Your Credit Balance is too low"},
    ],
)
def test_an_account_without_money_is_not_asked_again(told: dict[str, Any]) -> None:
    error, times = refused(Says(429, {"error": told}))
    assert times == 1
    assert isinstance(error, ServerRefused)
    assert "nothing left to spend" in error.message
    assert told["message"] in error.message
    assert "billing" in str(error.hint)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed_but_told(status: int) -> None:
    error, times = refused(Says(status, b"", [("Location", "https://elsewhere.example/v1/completions")]))
    assert times == 1
    assert isinstance(error, ServerRefused)
    assert "sends us elsewhere" in error.message
    assert "https://elsewhere.example/v1/completions" in error.message
    assert "--base-url" in str(error.hint)


@pytest.mark.parametrize(
    "told",
    [
        {"error": "no such key"},
        {"detail": "no such key"},
        {"message": "no such key", "object": "error"},
        {"error": {"message": "no such key"}},
        {"detail": [{"msg": "no such key"}]},
        b"no such key",
    ],
)
def test_what_a_server_says_is_found_wherever_it_puts_it(told: Any) -> None:
    assert "no such key" in refused(Says(401, told))[0].message


@pytest.mark.parametrize("words", ["openai", "llama.cpp"])
def test_a_prompt_too_long_is_told_with_both_numbers(words: Any) -> None:
    with ToyServer(Manners(context_length=100, context_words=words)) as toy, speaking(toy.url) as server:
        with pytest.raises(ContextOverflow) as caught:
            ask(server, {**BODY, "prompt": "x" * 200, "max_tokens": 30})
        assert (caught.value.needed, caught.value.available) == (230 if words == "openai" else 200, 100)
        assert len(toy.requests) == 1


@pytest.mark.parametrize(
    ("said", "needed", "available"),
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
def test_a_prompt_too_long_is_understood_in_other_words_too(said: str, needed: int, available: int) -> None:
    error, times = refused(Says(400, {"error": {"message": said}}))
    assert isinstance(error, ContextOverflow)
    assert (error.needed, error.available, times) == (needed, available, 1)


def test_a_prompt_too_long_without_numbers_is_a_refusal_in_the_servers_words() -> None:
    error, _ = refused(Says(400, {"error": {"message": "the context is full"}}))
    assert isinstance(error, ServerRefused)
    assert "the context is full" in error.message


# Addresses that are none


def test_a_web_page_is_no_model() -> None:
    with ToyServer(Manners(html=True)) as toy, speaking(toy.url) as server:
        with pytest.raises(ServerUnavailable, match="web page") as caught:
            ask(server)
        assert "/v1" in str(caught.value.hint)
        assert len(toy.requests) == 1
    page = [("Content-Type", "text/html")]
    error, times = refused(Says(404, b"<!doctype html><h1>Not here", page))
    assert times == 1
    assert "<" not in error.message


def test_a_server_that_speaks_no_tls_is_not_asked_again() -> None:
    with Scripted() as toy, speaking(toy.url.replace("http://", "https://")) as server:
        with pytest.raises(ServerUnavailable, match="no secure connection") as caught:
            ask(server)
        assert "https://" in str(caught.value.hint)
        assert toy.connections == 1


def test_a_server_that_says_nothing_to_a_secure_greeting_is_not_waited_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fewparse.lm.http.client.TO_CONNECT", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with speaking(f"https://127.0.0.1:{port}/v1") as server, pytest.raises(ServerUnavailable) as caught:
            server.get("/v1/models")
    assert "no connection within 0.05 s (is it https:// at all?)" in caught.value.message
    assert "asked 3 times" in caught.value.message


def test_a_host_that_does_not_exist_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_arguments: object, **_more: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    words = r"no-such-host\.invalid/v1: there is no such host"
    with speaking("http://no-such-host.invalid/v1") as server, pytest.raises(ServerUnavailable, match=words):
        ask(server)


def nobody_listens() -> str:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/v1"


def test_a_refused_connection_is_told_within_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fewparse.lm.http.client.SHORTEST_WAIT", 0.25)
    with speaking(nobody_listens(), patience=RetryPolicy()) as server:
        begin = time.monotonic()
        with pytest.raises(ServerUnavailable, match="the connection failed") as caught:
            ask(server)
        assert time.monotonic() - begin < 5
        assert "--base-url" in str(caught.value.hint)


@pytest.mark.parametrize(
    "url",
    [
        *("", "localhost:8080/v1", "ftp://localhost/v1", "http://", "http:///v1", "http://[half/v1", "//host/v1"),
        *("http://127.0.0.1:port/v1", "http://127.0.0.1/v\x011", "http://:8080/v1"),
    ],
)
def test_what_is_no_address_is_refused_as_such(url: str) -> None:
    with pytest.raises(UsageError, match="address"), speaking(url) as server:
        ask(server)


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "HTTP_PROXY"])
def test_an_environment_in_which_no_connection_can_be_made_is_named(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "nonsense://nowhere")
    with pytest.raises(UsageError, match="environment") as caught:
        Server("https://127.0.0.1/v1")
    assert name in str(caught.value.hint)


@pytest.mark.parametrize("patience", [(0, 1), (1, 0), (-1, 1)])
def test_patience_is_more_than_nothing(patience: tuple[float, float]) -> None:
    with pytest.raises(UsageError, match="more than 0"):
        RetryPolicy(*patience)


# Secrets


@pytest.mark.parametrize("key", ["schlüssel-geheim", "sk-secret\nkey", "sk-secret\x00"])
def test_a_key_that_cannot_be_sent_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(UsageError, match="key") as caught:
        Server("http://127.0.0.1/v1", key)
    assert key not in str(caught.value)
    assert "secret" not in str(caught.value)


def secrets_in(url: str) -> str:
    return url.replace("http://", "http://someone:pass%40word@").replace("/v1", "/v1?api-key=query-secret")


def shown(text: str) -> list[str]:
    """The secrets that can be read in a text."""
    secrets = (SECRET, "someone", "pass%40word", "pass@word", "query-secret")
    return [secret for secret in secrets if secret in text]


@pytest.mark.parametrize("status", [200, 302, 400, 401, 404, 429, 500])
def test_a_server_that_repeats_secrets_is_not_quoted_with_them(status: int) -> None:
    words = f"you said {SECRET} as someone:pass@word (pass%40word) with api-key=query-secret, or query-secret!"
    answer = Says(status, {"error": {"message": words}}, [("Location", f"/there?api-key=query-secret&k={SECRET}")])
    with Scripted(answer) as toy, speaking(secrets_in(toy.url), SECRET, RetryPolicy(1, 0.2)) as server:

        def read(told: Any) -> Any:
            raise Failed(told["error"]["message"])

        with pytest.raises(ServerError) as caught:
            server.ask(PATH, BODY, read)
        assert "you said ***" in str(caught.value)
        assert not shown(f"{caught.value} {caught.value!r} {server!r} {server.url}")


def test_no_error_tells_a_secret_of_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = [nobody_listens(), "http://127.0.0.1:port/v1", "ftp://127.0.0.1/v1", "http://127.0.0.1/v1\x01"]
    for address in addresses:
        with pytest.raises(FewparseError) as caught, speaking(secrets_in(address), SECRET) as server:
            ask(server)
        assert not shown(f"{caught.value} {caught.value!r}")


def test_a_wrong_key_that_the_toy_repeats_is_not_shown() -> None:
    words = r"Incorrect API key provided: \*\*\*"
    with (
        ToyServer(Manners(key="right")) as toy,
        speaking(toy.url, SECRET) as server,
        pytest.raises(ServerRefused, match=words),
    ):
        ask(server)


def test_a_secret_cut_in_two_by_a_long_answer_is_not_shown() -> None:
    for before in range(270, 310):
        with Scripted(Says(401, b"x" * before + SECRET.encode())) as toy, speaking(toy.url, SECRET) as server:
            with pytest.raises(ServerRefused) as caught:
                ask(server)
            assert SECRET[:6] not in str(caught.value)


def test_the_cache_file_holds_no_secret(tmp_path: Path) -> None:
    with Scripted() as toy, closing(ResponseCache(tmp_path / "a.sqlite")) as cache:
        with speaking(secrets_in(toy.url), SECRET, cache=cache) as server:
            ask(server)
        assert "query-secret" in toy.heard[0][0], "the server itself is told"
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert not shown(written.decode(errors="replace"))


# Answers that are kept


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[ResponseCache]:
    with closing(ResponseCache(tmp_path / "answers.sqlite")) as opened:
        yield opened


def test_a_kept_answer_is_given_without_asking(cache: ResponseCache) -> None:
    with ToyServer() as toy:
        with speaking(toy.url, cache=cache) as server:
            first = ask(server)
        with speaking(toy.url, "another key", cache=cache) as server:
            again = ask(server)
        assert again == Answer(first.content, 0, True)
        assert len(toy.requests) == 1


def test_other_requests_samples_and_servers_have_answers_of_their_own(cache: ResponseCache) -> None:
    with Scripted() as toy, Scripted() as other:
        with speaking(toy.url, cache=cache) as server:
            for sample in (0, 1):
                ask(server, sample=sample)
            ask(server, {**BODY, "seed": 2})
            server.ask("/v1/chat/completions", BODY, lambda answer: answer)
        with speaking(other.url, cache=cache) as server:
            ask(server)
        assert (len(toy.heard), len(other.heard)) == (4, 1)


@pytest.mark.parametrize("bad", [Says(400, {"error": "no"}), Says(200, b"half")])
def test_only_good_answers_are_kept(bad: Says, cache: ResponseCache) -> None:
    with Scripted(bad, bad, bad, Says()) as toy, speaking(toy.url, cache=cache) as server:
        with pytest.raises(ServerError):
            ask(server)
        assert cache.statistics().entries == 0
        while len(toy.answers) > 1:
            with pytest.raises(ServerError):
                ask(server)
        assert ask(server).cached is False
        assert ask(server).cached is True


def test_a_kept_answer_that_is_of_no_use_is_asked_for_anew(cache: ResponseCache) -> None:
    with Scripted(Says(200, {"seen": 1}), Says(200, {"seen": 2})) as toy, speaking(toy.url, cache=cache) as server:
        assert ask(server).content == {"seen": 1}

        def newer(answer: Any) -> Any:
            if answer["seen"] == 1:
                raise ServerUnfit("of another time")
            return answer

        assert server.ask(PATH, BODY, newer) == Answer({"seen": 2}, 0, False)
        assert ask(server) == Answer({"seen": 2}, 0, True)
        assert len(toy.heard) == 2


def test_leave_is_asked_before_something_is_sent_and_only_then(cache: ResponseCache) -> None:
    def refuse() -> None:
        raise UsageError("not allowed")

    with ToyServer() as toy, speaking(toy.url, cache=cache) as server:
        with pytest.raises(UsageError, match="not allowed"):
            ask(server, admit=refuse)
        assert bodies(toy) == []
        ask(server)
        assert ask(server, admit=refuse).cached
