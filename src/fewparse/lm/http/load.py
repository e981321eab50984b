"""Open a model behind a server: its address, its key, what it does, what it costs."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fewparse.errors import ServerError, ServerRefused, UnknownName, UsageError
from fewparse.lm.http.budget import Budget, BudgetLimits
from fewparse.lm.http.capabilities import Capabilities, remember, remembered
from fewparse.lm.http.chat import ChatModel
from fewparse.lm.http.client import RetryPolicy, Server
from fewparse.lm.http.completions import CompletionsModel
from fewparse.lm.http.probe import probe
from fewparse.lm.http.remote import DEFAULT_MAX_CONCURRENCY, USUAL_TOP, RemoteModel
from fewparse.lm.prices import price_of
from fewparse.lm.response_cache import ResponseCache, response_cache_path, warn

KINDS: dict[str, type[RemoteModel]] = {"openai": CompletionsModel, "openai-chat": ChatModel}
OPENAI = "https://api.openai.com/v1"
KEYS = ("FEWPARSE_API_KEY", "OPENAI_API_KEY")
ADDRESSES = ("FEWPARSE_BASE_URL", "OPENAI_BASE_URL")


@dataclass(frozen=True)
class RemoteSettings:
    """How to speak to a server. What is left out comes from the environment, or is found out.

    `max_concurrency` bounds the requests under way and the utterances parsed at the same time. `cached` keeps
    answers and finds those that are kept. `top` is how many next tokens are asked for. `tell` hears of a cache
    that cannot be used.
    """

    base_url: str | None = None
    max_concurrency: int | None = None
    patience: RetryPolicy = field(default_factory=RetryPolicy)
    limits: BudgetLimits = field(default_factory=BudgetLimits)
    cached: bool = True
    context_length: int | None = None
    top: int = USUAL_TOP
    tell: Callable[[str], None] = warn

    @property
    def address(self) -> str:
        """Where the server is."""
        return self.base_url or from_environment(ADDRESSES) or OPENAI

    def connect(self, cached: bool) -> Server:
        """The server, with its key."""
        url, key = self.address, from_environment(KEYS)
        if key is None and url.rstrip("/") == OPENAI:
            raise UsageError(
                f"{OPENAI} needs a key, and there is none",
                "Put it into OPENAI_API_KEY; or name another server with --base-url.",
            )
        cache = ResponseCache(response_cache_path(), on_warning=self.tell) if cached and self.cached else None
        return Server(url, key, self.patience, cache, self.max_concurrency or DEFAULT_MAX_CONCURRENCY)


def open_remote(kind: str, name: str, remote: RemoteSettings) -> RemoteModel:
    """The model of that name; what its server does is found out the first time, and remembered."""
    if name and remote.limits.dollars is not None:
        Budget(remote.limits, price_of(name, remote.address))  # refused before a probe costs anything
    server, name, capabilities = examined(kind, name, remote)
    budget = Budget(remote.limits, price_of(name, server.url))
    max_concurrency = remote.max_concurrency or capabilities.slots or DEFAULT_MAX_CONCURRENCY
    connected = replace(remote, max_concurrency=max_concurrency).connect(cached=True)
    return KINDS[kind](connected, name, capabilities, budget, max_concurrency, remote.context_length, remote.top)


def examined(kind: str, name: str, remote: RemoteSettings, anew: bool = False) -> tuple[Server, str, Capabilities]:
    """The server, closed again, the name of its model in full, and what it does; found out anew if wished."""
    chat = KINDS[kind] is ChatModel
    server = remote.connect(cached=False)
    try:
        name = name or only_model(server)
        found = None if anew else remembered(server.url, name, chat)
        if found is None:
            found = probe(server, name, chat)
            remember(found, server.url, name)
    except ServerRefused as error:
        raise with_known_models(error, server, name) from None
    finally:
        server.close()
    return server, name, found


def only_model(server: Server) -> str:
    """The model of a server that has one."""
    names = served(server)
    if len(names) != 1:
        hint = f"It has {', '.join(names)}." if names else "It does not tell which it has."
        raise UsageError(f"which model of {server.url}? Name it behind the colon", hint)
    return names[0]


def served(server: Server) -> list[str]:
    """The names of the models that a server tells it has."""
    told = server.get("/v1/models")
    models = told.get("data") if isinstance(told, Mapping) else None
    return (
        [str(model.get("id")) for model in models if isinstance(model, dict)] if isinstance(models, list) else []
    )


def with_known_models(error: ServerRefused, server: Server, name: str) -> ServerError | UnknownName:
    """A refusal, with the names that would have been known where that may be why."""
    try:
        names: list[Any] = served(server)
    except ServerError:
        return error
    return UnknownName(f"model of {server.url}", name, names) if names and name not in names else error


def from_environment(names: tuple[str, ...]) -> str | None:
    """The first of these variables that says something."""
    return next((value for name in names if (value := os.environ.get(name, "").strip())), None)
