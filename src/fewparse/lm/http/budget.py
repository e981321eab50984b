"""Prices and spending limits of remote models; a request that could exceed a limit is not sent.

Prices come from the table bundled with `genai-prices`, without network access. A model name alone has no price,
since anyone may serve a model called gpt-4o: the price is known only if the server belongs to a provider in the
table and the model is charged for both prompt and completion tokens.
"""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from fewparse.errors import BudgetExceeded, UsageError


@dataclass(frozen=True)
class Price:
    """The price of one model at one server."""

    model: str
    server: str

    def cost(self, prompt_tokens: int, cached_tokens: int, completion_tokens: int) -> float:
        """Return the cost of one request in dollars; `cached_tokens` of the prompt were in the server's cache.

        Not valid for the sum of several requests: prices can depend on prompt length, and be per request.
        """
        from genai_prices import Usage, calc_price

        usage = Usage(
            input_tokens=prompt_tokens,
            cache_read_tokens=min(cached_tokens, prompt_tokens),
            output_tokens=completion_tokens,
        )
        return float(calc_price(usage, self.model, provider_api_url=self.server).total_price)


def price_of(model: str, server: str) -> Price | None:
    """Return the price of a model at a base URL such as https://api.openai.com/v1, or None if it is unknown."""
    from genai_prices import Usage, calc_price  # loading the table takes 0.2 s

    url = provider_url(server)
    if url is None:
        return None
    try:
        found = calc_price(Usage(), model, provider_api_url=url)
    except LookupError:
        return None
    # The table's patterns match the beginning of a URL; the host must also end where the pattern ends.
    if not re.match(rf"(?:{found.provider.api_pattern})(?:(?=/|$)|(?<=[/.]))", url):
        return None
    # The table also lists models without a price: their cost is unknown, not zero.
    if found.model_price.input_mtok is None or found.model_price.output_mtok is None:
        return None
    return Price(model, url)


def provider_url(server: str) -> str | None:
    """Normalise a URL for the table, so that no path or user name matches as a host; None if it is not a URL."""
    try:
        parts = urlsplit(server)
        port = "" if parts.port in (None, 443) else f":{parts.port}"
    except ValueError:
        return None
    if not parts.hostname:
        return None
    return f"{parts.scheme}://{parts.hostname}{port}{parts.path.replace('.', '%2E')}"


@dataclass(frozen=True)
class BudgetLimits:
    """Limits on the tokens and dollars of a run; None for no limit."""

    max_tokens_total: int | None = None
    max_cost: float | None = None

    def divided(self, parts: int) -> "BudgetLimits":
        """Return the limits of one of several equal parts."""
        tokens, cost = self.max_tokens_total, self.max_cost
        return BudgetLimits(None if tokens is None else tokens // parts, None if cost is None else cost / parts)


class Budget:
    """Tokens and dollars spent, plus those reserved for requests in progress. Thread-safe."""

    def __init__(self, limits: BudgetLimits, price: Price | None) -> None:
        if limits.max_cost is not None and price is None:
            raise UsageError(
                "the price of this model is unknown, so a cost limit cannot be enforced",
                "Use --max-tokens-total instead of --max-cost.",
            )
        self._limits = limits
        self._price = price
        self._lock = threading.Lock()
        self._tokens = 0
        self._dollars = 0.0

    @contextmanager
    def reservation(self, prompt: int, completion: int) -> Iterator["Reservation"]:
        """Yield a reservation for a request of at most these tokens; on exit, count what was used instead."""
        reservation = Reservation(self, prompt, completion)
        try:
            yield reservation
        finally:
            if reservation.reserved:
                used_prompt, cached, used_completion = reservation.used
                reserved = self.cost(prompt, 0, completion) or 0.0
                cost = self.cost(used_prompt, cached, used_completion) or 0.0
                with self._lock:  # one update: between two, another request would see too much left
                    self._tokens += used_prompt + used_completion - prompt - completion
                    self._dollars += cost - reserved

    def reserve(self, tokens: int, dollars: float | None) -> None:
        """Reserve the maximum of a request; raise BudgetExceeded if less is left."""
        limits, price = self._limits, dollars or 0.0
        with self._lock:
            if limits.max_tokens_total is not None and self._tokens + tokens > limits.max_tokens_total:
                raise BudgetExceeded(
                    f"{self._tokens} of {limits.max_tokens_total} tokens are spent or reserved, "
                    f"and the next request may need {tokens} more",
                    "Raise --max-tokens-total; the responses received so far are cached.",
                )
            if limits.max_cost is not None and self._dollars + price > limits.max_cost:
                raise BudgetExceeded(
                    f"${self._dollars:.4f} of ${limits.max_cost:.4f} are spent or reserved, "
                    f"and the next request may cost ${price:.4f} more",
                    "Raise --max-cost; the responses received so far are cached.",
                )
            self._tokens += tokens
            self._dollars += price

    def cost(self, prompt: int, cached: int, completion: int) -> float | None:
        """Return the cost of these tokens, `cached` of the prompt's being cached; None if the price is unknown."""
        return None if self._price is None else self._price.cost(prompt, cached, completion)


class Reservation:
    """The maximum tokens of one request, and those `used`: prompt, cached part of the prompt, completion."""

    def __init__(self, budget: Budget, prompt: int, completion: int) -> None:
        self._budget = budget
        self._max_tokens = prompt, completion
        self.reserved = False
        self.used = 0, 0, 0

    def reserve(self) -> None:
        """Reserve the maximum, just before the request is sent; raise BudgetExceeded if it does not fit."""
        prompt, completion = self._max_tokens
        self._budget.reserve(prompt + completion, self._budget.cost(prompt, 0, completion))
        self.reserved = True
