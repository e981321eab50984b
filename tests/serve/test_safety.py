"""Who may use the server, what it tells, and that it keeps working under hostile clients."""

import json
import logging
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from fewparse import UsageError
from fewparse.lm.embedded import EmbeddedModel
from fewparse.serve.endpoints import ENDPOINTS
from fewparse.serve.problems import internal_problem, problem_of, without_paths
from fewparse.serve.security import LOOPBACK
from support.domain_files import copy_starter
from support.serving import Served, running

KEY, OTHER_KEY = "k" * 20 + "-first", "k" * 20 + "-other"
ORIGIN = "https://app.example"


@pytest.fixture(scope="module")
def guarded(embedded: EmbeddedModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with two keys, its own host names, another origin, and a domain whose programs have effects."""
    folder = copy_starter(tmp_path_factory.mktemp("domains") / "home")
    settings = folder / "domain.toml"
    settings.write_text(settings.read_text().replace("executor =", 'execute = "on-request"\nexecutor ='))
    headers = {"Authorization": f"Bearer {KEY}"}
    options = {"api_keys": [KEY, OTHER_KEY], "hosts": LOOPBACK, "cors_origins": [ORIGIN]}
    with running(embedded, folder, headers=headers, **options) as served:  # type: ignore[arg-type]
        yield served


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"X-API-Key": KEY[:-1]}])
def test_without_a_right_key_there_is_a_401_and_nothing_else(
    guarded: Served, endpoint: object, headers: dict[str, str]
) -> None:
    path, method, is_open = (getattr(endpoint, name) for name in ("path", "method", "open"))
    url = guarded.url + path.replace("{name:path}", "starter")
    response = httpx2.request(method, url, headers=headers, json={} if method == "POST" else None)
    assert response.status_code == (200 if is_open else 401)
    if not is_open:
        assert response.json()["error"]["code"] == "unauthorized"
        assert response.headers["WWW-Authenticate"] == "Bearer"


def test_unknown_paths_and_the_description_need_a_key_too(guarded: Served) -> None:
    for path in ("/openapi.json", "/v1/nothing", "/mcp", "/../etc/passwd"):
        assert httpx2.get(guarded.url + path).status_code == 401


def test_every_key_works_in_either_header(guarded: Served) -> None:
    for headers in (
        {"Authorization": f"Bearer {OTHER_KEY}"},
        {"X-API-Key": KEY},
        {"Authorization": f"bearer {KEY}"},
    ):
        assert httpx2.get(f"{guarded.url}/v1/models", headers=headers).status_code == 200


@pytest.mark.parametrize("key", ["short", "with a space in the key", "ümlaut-ümlaut-ümlaut"])
def test_an_unusable_key_is_refused_without_showing_it(embedded: EmbeddedModel, key: str) -> None:
    with pytest.raises(UsageError) as refused, running(embedded, "calendar", api_keys=[key]):
        pass
    assert key not in str(refused.value)


def test_other_host_names_are_refused(guarded: Served) -> None:
    response = guarded.client.get("/v1/models", headers={"Host": "evil.example"})
    assert (response.status_code, response.json()["error"]["code"]) == (421, "unknown_host")


def test_other_origins_are_refused_and_named_ones_are_allowed(guarded: Served) -> None:
    refused = guarded.client.get("/v1/models", headers={"Origin": "https://evil.example"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "origin_not_allowed")
    assert "Access-Control-Allow-Origin" not in refused.headers
    allowed = guarded.client.get("/v1/models", headers={"Origin": ORIGIN})
    assert allowed.headers["Access-Control-Allow-Origin"] == ORIGIN
    own = guarded.client.get("/v1/models", headers={"Origin": guarded.url})
    assert own.status_code == 200
    asked = {
        "Origin": ORIGIN,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization",
    }
    assert httpx2.options(f"{guarded.url}/v1/parse", headers=asked).status_code == 200


def test_every_response_has_the_headers_that_protect_a_browser(served: Served) -> None:
    for path in ("/", "/healthz", "/nothing", "/v1/domains"):
        headers = served.client.get(path).headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy


def test_programs_with_effects_are_not_executed_without_permission(guarded: Served) -> None:
    body = {"program": "(set (lamp kitchen) on)"}
    response = guarded.post("/v1/execute", body)
    assert (response.status_code, response.json()["error"]["code"]) == (403, "execution_not_allowed")
    asked = guarded.post("/v1/parse", {"utterance": "turn on the lamp", "options": {"execute": True}})
    assert (asked.status_code, asked.json()["error"]["code"]) == (403, "execution_not_allowed")


def test_errors_have_no_paths_and_the_log_no_text_of_requests(caplog: pytest.LogCaptureFixture) -> None:
    assert without_paths("cannot read /home/user/secret/domain.toml: gone") == "cannot read domain.toml: gone"
    assert without_paths("C:\\Users\\me\\x.gguf is damaged") == "x.gguf is damaged"
    assert without_paths("either/or, 3/4, (a / b)") == "either/or, 3/4, (a / b)"
    with caplog.at_level(logging.DEBUG):
        for secret in (ValueError("my utterance"), KeyError("my utterance")):
            problem = problem_of(secret)
            assert (problem.status, problem.code) == (500, "internal")
            assert "my utterance" not in json.dumps(problem.as_dict()) + caplog.text
        internal_problem(RuntimeError("x"))


def connect(served: Served) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(served.url.rpartition(":")[2])), timeout=20)


def test_a_body_that_does_not_arrive_ends_with_408(served: Served) -> None:
    with connect(served) as slow:
        slow.sendall(
            b"POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
        )
        assert slow.recv(100).startswith(b"HTTP/1.1 408")


def test_idle_and_broken_connections_do_not_stop_the_server(served: Served) -> None:
    idle = [connect(served) for _ in range(200)]
    for i, connection in enumerate(idle[:60]):
        connection.sendall(
            (b"GET / HT", b"\x16\x03\x01\x00garbage\r\n\r\n", b"POST /v1/parse HTTP/1.1\r\n")[i % 3]
        )
    assert served.client.get("/healthz").status_code == 200
    assert served.post("/v1/check", {"text": "when"}).status_code == 200
    for connection in idle:
        connection.close()
    assert served.client.get("/healthz").status_code == 200


def test_a_client_that_does_not_read_its_stream_does_not_hold_the_model(served: Served) -> None:
    body = b'{"utterance": "when is my next meeting with Elena?", "details": true}'
    with connect(served) as silent:
        silent.sendall(
            b"POST /v1/parse/stream HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        )
        deadline = time.monotonic() + 20
        while not served.service.searches.running:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        served.wait_until_idle()
        assert served.client.get("/healthz").status_code == 200


def test_the_folder_of_a_domain_is_not_in_any_response(
    guarded: Served, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = str(Path(tmp_path_factory.getbasetemp()))
    for path in ("/v1/domains", "/v1/domains/starter", "/v1/models", "/metrics", "/openapi.json"):
        response = guarded.client.get(path)
        assert response.status_code == 200, path
        assert root not in response.text
