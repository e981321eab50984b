"""Shared by tests of the HTTP client: a server with scripted responses, and remote models of toy servers."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple, TypeVar

from fewparse.lm.http.budget import Budget, BudgetLimits
from fewparse.lm.http.capabilities import Capabilities
from fewparse.lm.http.chat import ChatModel
from fewparse.lm.http.client import HttpClient
from fewparse.lm.http.completions import CompletionsModel
from fewparse.lm.http.probe import probe
from fewparse.lm.http.remote import RemoteModel
from fewparse.lm.response_cache import ResponseCache
from fewparse.retry import RetryPolicy
from support.loopback import Headers, LoopbackServer, RequestHandler
from support.server_behaviours import COMPLIANT, Behaviour
from support.toy_model import ToyModel
from support.toy_server import ToyServer

RETRY = RetryPolicy(timeout=10, deadline=20)
GOOD = {"fine": True}
ALL_TOKENS = 300
"""More than the toy model's vocabulary."""
M = TypeVar("M", bound=RemoteModel)


class CannedResponse(NamedTuple):
    """One response: JSON, or raw bytes, of which only the first `sent` may be sent."""

    status: int = 200
    body: Any = GOOD
    headers: Headers = ()
    sent: int | None = None


class ScriptedServer(LoopbackServer):
    """Sends these responses in order, then repeats the last one."""

    def __init__(self, *responses: CannedResponse) -> None:
        super().__init__()
        self.responses = list(responses) or [CannedResponse()]
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.max_in_progress = self._in_progress = 0
        self._lock = threading.Lock()

    def respond(self, handler: RequestHandler, body: bytes) -> None:
        with self._lock:
            self.requests.append((handler.path, dict(handler.headers), body))
            response = self.responses.pop(0) if len(self.responses) > 1 else self.responses[0]
            self._in_progress += 1
            self.max_in_progress = max(self.max_in_progress, self._in_progress)
        self.stopping.wait(0.01)
        written = response.body if isinstance(response.body, bytes) else json.dumps(response.body).encode()
        handler.close_connection = response.sent is not None
        with self._lock:
            self._in_progress -= 1
        handler.reply(response.status, written, response.headers, response.sent)


@contextmanager
def http_client(
    url: str, key: str | None = None, retry: RetryPolicy = RETRY, **options: Any
) -> Iterator[HttpClient]:
    """An HTTP client, closed at the end."""
    client = HttpClient(url, key, retry, **options)
    try:
        yield client
    finally:
        client.close()


@cache
def capabilities_of(behaviour: Behaviour, chat: bool = False) -> Capabilities:
    """The capabilities that a probe finds for a behaviour."""
    with ToyServer(behaviour) as toy, http_client(toy.url) as client:
        return probe(client, behaviour.model, chat)


@contextmanager
def model_at(
    url: str,
    capabilities: Capabilities,
    budget: Budget | None = None,
    cache: ResponseCache | None = None,
    max_concurrency: int = 8,
    retry: RetryPolicy = RETRY,
    key: str | None = None,
) -> Iterator[RemoteModel]:
    """A remote model at this URL, closed at the end."""
    kind: type[RemoteModel] = ChatModel if capabilities.chat else CompletionsModel
    client = HttpClient(url, key, retry, cache, max_concurrency=max_concurrency)
    model = kind(client, "toy", capabilities, budget or Budget(BudgetLimits(), None), max_concurrency)
    try:
        yield model
    finally:
        model.close()


@contextmanager
def toy_model(
    behaviour: Behaviour = COMPLIANT, chat: bool = False, **options: Any
) -> Iterator[tuple[RemoteModel, ToyServer]]:
    """A remote model of a toy server with this behaviour, probed at most once for all tests."""
    capabilities = capabilities_of(behaviour, chat)
    with ToyServer(behaviour) as toy, model_at(toy.url, capabilities, **options) as model:
        yield model, toy


@contextmanager
def toy_remote(
    kind: type[M], behaviour: Behaviour, model: ToyModel | None = None, top_logprobs: int = ALL_TOKENS
) -> Iterator[tuple[M, ToyServer]]:
    """A remote model of this kind, just probed, and its server, without the recorded requests of the probe."""
    with ToyServer(behaviour, model) as server:
        client = HttpClient(server.url)
        capabilities = probe(client, "toy", kind is ChatModel)
        opened = kind(client, "toy", capabilities, Budget(BudgetLimits(), None), top_logprobs=top_logprobs)
        server.requests.clear()
        try:
            yield opened, server
        finally:
            opened.close()


@contextmanager
def toy_completions(behaviour: Behaviour, model: ToyModel | None = None) -> Iterator[CompletionsModel]:
    """A remote completions model of a toy server."""
    with toy_remote(CompletionsModel, behaviour, model) as (opened, _):
        yield opened


def request_bodies(toy: ToyServer) -> Sequence[Any]:
    """The bodies of the requests that a toy server received."""
    return [request.body for request in toy.requests if request.body is not None]
