"""Prices of remote models, from the table in the package `genai-prices`; nothing is downloaded.

The name of a model does not determine its price, as anybody may serve a model under the name gpt-4o. The price is
known only if the URL of the server is that of a provider in the table, and the provider charges for both input and
output tokens.
"""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Price:
    """The price of a model on a server."""

    model: str
    server: str

    def cost(self, prompt_tokens: int, cached_tokens: int, completion_tokens: int) -> float:
        """Return the cost of one request in US dollars; `cached_tokens` of the prompt were in the server's cache.

        Not to be used on totals of several requests, as prices may depend on the length of a prompt or be charged
        per request.
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
    from genai_prices import Usage, calc_price  # imported here because loading the table takes 0.2 seconds

    address = normalised_url(server)
    if address is None:
        return None
    try:
        found = calc_price(Usage(), model, provider_api_url=address)
    except LookupError:
        return None
    # The patterns of the table match the start of a URL: check that the host name also ends where they end.
    if not re.match(rf"(?:{found.provider.api_pattern})(?:(?=/|$)|(?<=[/.]))", address):
        return None
    # The table also has models without prices: their cost is unknown, not zero.
    if found.model_price.input_mtok is None or found.model_price.output_mtok is None:
        return None
    return Price(model, address)


def normalised_url(server: str) -> str | None:
    """Return a URL in the form of the table, or None if it is not a URL.

    User names are removed and dots in the path escaped, so that neither can be mistaken for a host name.
    """
    try:
        parts = urlsplit(server)
        port = "" if parts.port in (None, 443) else f":{parts.port}"
    except ValueError:
        return None
    if not parts.hostname:
        return None
    return f"{parts.scheme}://{parts.hostname}{port}{parts.path.replace('.', '%2E')}"
