"""Prices of remote models: from the bundled table, and unknown rather than wrong."""

import socket
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewparse.lm.http.budget import Price, price_of

OPENAI = "https://api.openai.com/v1"
COUNTS = st.integers(0, 2_000_000)
PRICED = [
    ("gpt-4o", OPENAI),
    ("gpt-3.5-turbo-instruct", OPENAI),
    ("claude-sonnet-4-5", "https://api.anthropic.com/v1"),
    ("openai/gpt-4o", "https://openrouter.ai/api/v1"),
    ("moonshot-v1-8k", "https://api.moonshot.cn/v1"),
    ("gpt-4o", "https://somebody.openai.azure.com/openai"),
]


def known_price(model: str, server: str) -> Price:
    price = price_of(model, server)
    assert price is not None
    return price


@pytest.mark.parametrize(
    ("model", "prompt", "cached", "completion"),
    [("gpt-4o", "2.50", "1.25", "10"), ("gpt-4o-mini", "0.15", "0.075", "0.60")],
)
def test_a_known_model_has_its_published_price(model: str, prompt: str, cached: str, completion: str) -> None:
    price = known_price(model, OPENAI)
    assert price.cost(1_000_000, 0, 0) == float(prompt)
    assert price.cost(1_000_000, 1_000_000, 0) == float(cached)
    assert price.cost(0, 0, 1_000_000) == float(completion)
    expected = (600 * Decimal(prompt) + 400 * Decimal(cached) + 70 * Decimal(completion)) / 1_000_000
    assert price.cost(1000, 400, 70) == float(expected)


@pytest.mark.parametrize(("model", "server"), PRICED)
def test_providers_are_recognised_by_their_addresses(model: str, server: str) -> None:
    assert known_price(model, server).cost(1000, 0, 1000) > 0


@pytest.mark.parametrize("server", ["HTTPS://API.OpenAI.com/v1", "https://api.openai.com:443", f"{OPENAI}/"])
def test_the_same_address_may_be_written_differently(server: str) -> None:
    assert known_price("gpt-4o", server).cost(1000, 10, 20) == known_price("gpt-4o", OPENAI).cost(1000, 10, 20)


@pytest.mark.parametrize(
    "server",
    [
        "http://127.0.0.1:8080/v1",
        "http://localhost/v1",
        "https://example.org/v1",
        "http://api.openai.com/v1",
        "https://api.openai.com.example.org/v1",
        "https://api.openai.com:8443/v1",
        "https://api.openai.com@example.org/v1",
        "https://example.org/https://api.openai.com/v1",
        "https://example.org/a.openai.azure.com",
        "https://[half/v1",
        "https://api.openai.com:port/v1",
        "no address",
        "",
    ],
)
def test_a_known_model_name_on_another_host_has_no_price(server: str) -> None:
    assert price_of("gpt-4o", server) is None


def test_a_path_with_the_name_of_a_provider_has_no_price() -> None:
    assert price_of("gemini-2.5-flash", "https://generativelanguage.googleapis.com/v1beta/openai") is not None
    assert price_of("gemini-2.5-flash", "https://example.org/a.googleapis.com/v1") is None


@pytest.mark.parametrize("model", ["my-own-model", "gpt-4o-of-tomorrow", ""])
def test_an_unknown_model_has_no_price(model: str) -> None:
    assert price_of(model, OPENAI) is None


def test_a_model_priced_in_one_direction_only_has_no_price() -> None:
    assert price_of("text-embedding-3-small", OPENAI) is None
    assert price_of("meta-llama/llama-3.3-70b-instruct:free", "https://openrouter.ai/api/v1") is None


@pytest.mark.parametrize(("model", "server"), PRICED)
@given(prompt=COUNTS, cached=COUNTS, completion=COUNTS, more=COUNTS)
def test_more_tokens_never_cost_less_and_cached_tokens_never_more(
    model: str, server: str, prompt: int, cached: int, completion: int, more: int
) -> None:
    price = known_price(model, server)
    cost = price.cost(prompt, cached, completion)
    assert 0 <= cost <= price.cost(prompt, 0, completion)
    assert cost <= price.cost(prompt + more, min(cached, prompt), completion)
    assert cost <= price.cost(prompt, cached, completion + more)


def test_prices_need_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(*_arguments: object) -> None:
        raise AssertionError("a price was requested over the network")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    assert known_price("gpt-4o", OPENAI).cost(1000, 0, 0) > 0
