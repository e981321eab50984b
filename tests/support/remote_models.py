"""What tests of the HTTP client share: a server that says what it is told to, and models that speak to toys."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

from fewparse.lm.http.budget import Budget, BudgetLimits
from fewparse.lm.http.capabilities import Capabilities
from fewparse.lm.http.chat import ChatModel
from fewparse.lm.http.client import RetryPolicy, Server
from fewparse.lm.http.completions import CompletionsModel
from fewparse.lm.http.probe import probe
from fewparse.lm.http.remote import RemoteModel
from fewparse.lm.response_cache import ResponseCache
from support.loopback import Exchange, Headers, Loopback
from support.server_behaviours import HONEST, Manners
from support.toy_server import ToyServer

PATIENCE = RetryPolicy(timeout=10, deadline=20)
GOOD = {"fine": True}


class Says(NamedTuple):
    """One answer: JSON, or bytes as they are; of an announced body only `sent` bytes may follow."""

    status: int = 200
    body: Any = GOOD
    headers: Headers = ()
    sent: int | None = None


class Scripted(Loopback):
    """Gives these answers in their order, and the last of them for ever."""

    def __init__(self, *answers: Says) -> None:
        super().__init__()
        self.answers = list(answers) or [Says()]
        self.heard: list[tuple[str, dict[str, str], bytes]] = []
        self.most_at_once = self._now = 0
        self._lock = threading.Lock()

    def respond(self, exchange: Exchange, body: bytes) -> None:
        with self._lock:
            self.heard.append((exchange.path, dict(exchange.headers), body))
            said = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        self.over.wait(0.01)
        written = said.body if isinstance(said.body, bytes) else json.dumps(said.body).encode()
        exchange.close_connection = said.sent is not None
        with self._lock:
            self._now -= 1
        exchange.reply(said.status, written, said.headers, said.sent)


@contextmanager
def speaking(url: str, key: str | None = None, patience: RetryPolicy = PATIENCE, **more: Any) -> Iterator[Server]:
    """A server of ours, closed in the end."""
    server = Server(url, key, patience, **more)
    try:
        yield server
    finally:
        server.close()


@cache
def abilities_of(manners: Manners, chat: bool = False) -> Capabilities:
    """What a probe finds out about such a server."""
    with ToyServer(manners) as toy, speaking(toy.url) as server:
        return probe(server, manners.model, chat)


@contextmanager
def model_at(
    url: str,
    capabilities: Capabilities,
    budget: Budget | None = None,
    cache: ResponseCache | None = None,
    max_concurrency: int = 8,
    patience: RetryPolicy = PATIENCE,
) -> Iterator[RemoteModel]:
    """A real model that speaks to this address, closed in the end."""
    kind: type[RemoteModel] = ChatModel if capabilities.chat else CompletionsModel
    server = Server(url, None, patience, cache, in_flight=max_concurrency)
    model = kind(server, "toy", capabilities, budget or Budget(BudgetLimits(), None), max_concurrency)
    try:
        yield model
    finally:
        model.close()


@contextmanager
def toy_model(
    manners: Manners = HONEST, chat: bool = False, **more: Any
) -> Iterator[tuple[RemoteModel, ToyServer]]:
    """A model behind a toy server with such manners, found out by a probe."""
    capabilities = abilities_of(manners, chat)
    with ToyServer(manners) as toy, model_at(toy.url, capabilities, **more) as model:
        yield model, toy


def bodies(toy: ToyServer) -> Sequence[Any]:
    """What a toy server was asked."""
    return [request.body for request in toy.requests if request.body is not None]
