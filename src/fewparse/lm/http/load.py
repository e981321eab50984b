"""Open a remote model: connection settings, API key, capabilities, price."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from fewparse.errors import ServerError, ServerRejected, UnknownName, UsageError, listed
from fewparse.lm.http.budget import Budget, BudgetLimits, price_of
from fewparse.lm.http.capabilities import Capabilities, load_capabilities, save_capabilities
from fewparse.lm.http.chat import ChatModel
from fewparse.lm.http.client import DEFAULT_MAX_CONCURRENCY, HttpClient
from fewparse.lm.http.completions import CompletionsModel
from fewparse.lm.http.probe import probe
from fewparse.lm.http.remote import DEFAULT_TOP_LOGPROBS, RemoteModel
from fewparse.lm.http.schema import parse_models
from fewparse.lm.response_cache import ResponseCache, response_cache_path, warn
from fewparse.retry import RetryPolicy

KINDS: dict[str, type[RemoteModel]] = {"openai": CompletionsModel, "openai-chat": ChatModel}
OPENAI_URL = "https://api.openai.com/v1"
KEY_VARIABLES = ("FEWPARSE_API_KEY", "OPENAI_API_KEY")
URL_VARIABLES = ("FEWPARSE_BASE_URL", "OPENAI_BASE_URL")


@dataclass(frozen=True)
class RemoteSettings:
    """How to connect to a server; missing values come from the environment or from a probe.

    `max_concurrency` limits the requests in progress and the utterances parsed at the same time. `cache` stores
    and reuses responses. `top_logprobs` is how many next tokens are requested. `on_warning` is called with a
    message if the cache cannot be used. Of `processes` that share the server, each gets an equal part of the
    concurrency, at least 1, and of the budget.
    """

    base_url: str | None = None
    max_concurrency: int | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    limits: BudgetLimits = field(default_factory=BudgetLimits)
    cache: bool = True
    context_length: int | None = None
    top_logprobs: int = DEFAULT_TOP_LOGPROBS
    on_warning: Callable[[str], None] = warn
    processes: int = 1

    @property
    def url(self) -> str:
        """The base URL: given, from the environment, or OpenAI's."""
        return self.base_url or from_environment(URL_VARIABLES) or OPENAI_URL

    def connect(self, use_cache: bool) -> HttpClient:
        """Return a client with the API key from the environment; raise UsageError if OpenAI's is missing."""
        url, key = self.url, from_environment(KEY_VARIABLES)
        if key is None and url.rstrip("/") == OPENAI_URL:
            raise UsageError(
                f"{OPENAI_URL} needs an API key, and none is set",
                "Set OPENAI_API_KEY, or choose another server with --base-url.",
            )
        cache = (
            ResponseCache(response_cache_path(), on_warning=self.on_warning) if use_cache and self.cache else None
        )
        return HttpClient(url, key, self.retry, cache, self.max_concurrency or DEFAULT_MAX_CONCURRENCY)


def open_remote(kind: str, name: str, settings: RemoteSettings) -> RemoteModel:
    """Open a model by its name at the server; the first time, the server is probed and the result saved."""
    if name and settings.limits.max_cost is not None:
        Budget(settings.limits, price_of(name, settings.url))  # fails before the probe costs anything
    probed, name, capabilities = probe_model(kind, name, settings)
    budget = Budget(settings.limits.divided(settings.processes), price_of(name, probed.url))
    total = settings.max_concurrency or capabilities.slots or DEFAULT_MAX_CONCURRENCY
    max_concurrency = max(1, total // settings.processes)
    client = replace(settings, max_concurrency=max_concurrency).connect(use_cache=True)
    return KINDS[kind](
        client, name, capabilities, budget, max_concurrency, settings.context_length, settings.top_logprobs
    )


def probe_model(
    kind: str, name: str, settings: RemoteSettings, refresh: bool = False
) -> tuple[HttpClient, str, Capabilities]:
    """Return the closed client, the full model name, and the capabilities, probed if none are saved."""
    chat = KINDS[kind] is ChatModel
    client = settings.connect(use_cache=False)
    try:
        name = name or only_model(client)
        capabilities = None if refresh else load_capabilities(client.url, name, chat)
        if capabilities is None:
            capabilities = probe(client, name, chat)
            save_capabilities(capabilities, client.url, name)
    except ServerRejected as error:
        raise with_model_names(error, client, name) from None
    finally:
        client.close()
    return client, name, capabilities


def only_model(client: HttpClient) -> str:
    """Return the name of a server's only model; raise UsageError if it has several."""
    names = model_names(client)
    if len(names) != 1:
        hint = f"It has {listed(names)}." if names else "It does not list its models."
        raise UsageError(f"which model of {client.url}? Give its name after the colon", hint)
    return names[0]


def model_names(client: HttpClient) -> list[str]:
    """Return the names of the models that a server lists."""
    return [model.id for model in parse_models(client.get("/v1/models"))]


def with_model_names(error: ServerRejected, client: HttpClient, name: str) -> ServerError | UnknownName:
    """Return an error that suggests the server's model names if the requested one is not among them."""
    try:
        names = model_names(client)
    except ServerError:
        return error
    return UnknownName(f"model of {client.url}", name, names) if names and name not in names else error


def from_environment(names: tuple[str, ...]) -> str | None:
    """Return the first of these environment variables that is not empty."""
    return next((value for name in names if (value := os.environ.get(name, "").strip())), None)
