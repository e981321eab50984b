"""What a remote model costs, from the price table that `genai-prices` carries; nothing is fetched.

A name alone has no price: anybody may serve a model that is called gpt-4o. A price is known where the server is
one of a provider in the table and the provider's models are charged by tokens both ways.
"""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Price:
    """What one model costs at one server."""

    model: str
    server: str

    def cost(self, prompt_tokens: int, cached_tokens: int, completion_tokens: int) -> float:
        """The dollars for one request; `cached_tokens` are those of the prompt that the server had read before.

        Not for the sum of many requests: long prompts may cost more a token, and a request may cost by itself.
        """
        from genai_prices import Usage, calc_price

        usage = Usage(
            input_tokens=prompt_tokens,
            cache_read_tokens=min(cached_tokens, prompt_tokens),
            output_tokens=completion_tokens,
        )
        return float(calc_price(usage, self.model, provider_api_url=self.server).total_price)


def price_of(model: str, server: str) -> Price | None:
    """The price of a model at a base URL such as https://api.openai.com/v1; None if it is unknown."""
    from genai_prices import Usage, calc_price  # the table takes a fifth of a second to read

    address = plain_address(server)
    if address is None:
        return None
    try:
        found = calc_price(Usage(), model, provider_api_url=address)
    except LookupError:
        return None
    # The table's patterns are looked for where an address begins; a host must also end where they end.
    if not re.match(rf"(?:{found.provider.api_pattern})(?:(?=/|$)|(?<=[/.]))", address):
        return None
    # A model without a price is in the table as well: what it costs is unknown, not nothing.
    if found.model_price.input_mtok is None or found.model_price.output_mtok is None:
        return None
    return Price(model, address)


def plain_address(server: str) -> str | None:
    """A URL as the table writes it, and such that no path or user name passes for a host; None if it is no URL."""
    try:
        parts = urlsplit(server)
        port = "" if parts.port in (None, 443) else f":{parts.port}"
    except ValueError:
        return None
    if not parts.hostname:
        return None
    return f"{parts.scheme}://{parts.hostname}{port}{parts.path.replace('.', '%2E')}"
