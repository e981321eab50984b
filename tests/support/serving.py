"""A real server on the loopback interface, in a thread of the tests."""

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx2

from fewparse import LanguageModel, load_domain
from fewparse.serve.app import create_app
from fewparse.serve.domain import ServedDomain
from fewparse.serve.limits import ServeLimits
from fewparse.serve.server import Server, make_server, open_socket
from fewparse.serve.service import Service

UTTERANCE = "when is my next meeting with Elena?"
PROGRAM = "(when (next (meetings (with me Elena))))"
LIMITS = ServeLimits(
    body_bytes=100_000, body_seconds=1.0, utterances=4, utterance_chars=500, text_chars=2_000, deadline=600.0
)


@dataclass(frozen=True)
class Served:
    """A running server: its address, its service, and a client."""

    server: Server
    url: str
    service: Service
    client: httpx2.Client

    def post(self, path: str, body: Any, **options: Any) -> httpx2.Response:
        return self.client.post(path, json=body, **options)

    def events(self, body: Any) -> Iterator[tuple[str, Any]]:
        """Yield the events of a stream as they arrive."""
        with self.client.stream("POST", "/v1/parse/stream", json=body) as response:
            assert response.status_code == 200, response.read()
            assert response.headers["content-type"].startswith("text/event-stream")
            name = ""
            for line in response.iter_lines():
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    yield name, json.loads(line.removeprefix("data: "))

    def wait_until_idle(self) -> None:
        """Return when no search runs; fail if one does not end."""
        deadline = time.monotonic() + 20
        while self.service.searches.running or self.service.searches.waiting:
            assert time.monotonic() < deadline, "a search did not end"
            time.sleep(0.01)


def served_domain(
    folder: str | Path, model: LanguageModel, limits: ServeLimits = LIMITS, allow_execute: bool = False
) -> ServedDomain:
    return ServedDomain(partial(load_domain, folder), model, "embedded", limits, allow_execute, {})


@contextmanager
def running(
    model: LanguageModel,
    *folders: str | Path,
    limits: ServeLimits = LIMITS,
    allow_execute: bool = False,
    headers: dict[str, str] | None = None,
    api_keys: Sequence[str] = (),
    **options: Any,
) -> Iterator[Served]:
    """Serve domains with a model for a context."""
    domains = [served_domain(folder, model, limits, allow_execute) for folder in folders]
    app = create_app(domains, model, limits=limits, api_keys=api_keys, **options)
    with open_socket("127.0.0.1", 0) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        server = make_server(app, grace=5)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        with httpx2.Client(base_url=url, timeout=600, headers=headers or {}) as client:
            while not server.started:
                assert thread.is_alive(), "the server did not start"
                time.sleep(0.01)
            yield Served(server, url, app.state.service, client)
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive(), "the server did not end"


class GatedModel:
    """The real model behind a gate: while it is closed, every query waits."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self.gate = threading.Event()
        self.gate.set()
        self.waiting = threading.Semaphore(0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def sample(self, *arguments: Any, **options: Any) -> Any:
        self._pass()
        return self._model.sample(*arguments, **options)

    def next_tokens(self, *arguments: Any, **options: Any) -> Any:
        self._pass()
        return self._model.next_tokens(*arguments, **options)

    def _pass(self) -> None:
        self.waiting.release()
        assert self.gate.wait(30), "the gate was not opened"
