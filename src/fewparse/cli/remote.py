"""How to speak to a server, from the options that every command which does so has."""

from typing import TYPE_CHECKING

from fewparse.cli.console import err
from fewparse.errors import UsageError
from fewparse.lm.load import kind_of

if TYPE_CHECKING:
    from fewparse.lm.http.load import RemoteSettings


def speaking(
    model: str,
    base_url: str | None = None,
    max_concurrency: int | None = None,
    timeout: float | None = None,
    deadline: float | None = None,
    max_tokens_total: int | None = None,
    max_cost: float | None = None,
    cache: bool = True,
    context_length: int | None = None,
) -> "RemoteSettings | None":
    """How to speak to the server of a model; None for a model in this process, which has no use for it."""
    kind = kind_of(model)
    if kind is None or not kind.remote:
        chosen = {
            "--base-url": base_url,
            "--max-concurrency": max_concurrency,
            "--timeout": timeout,
            "--deadline": deadline,
            "--max-tokens-total": max_tokens_total,
            "--max-cost": max_cost,
            "--context-length": context_length,
        }
        if idle := next((option for option, value in chosen.items() if value is not None), None):
            raise UsageError(f"{idle} is for a model behind a server", "For example --model openai:NAME.")
        return None
    from fewparse.lm.http.budget import BudgetLimits
    from fewparse.lm.http.client import RetryPolicy
    from fewparse.lm.http.load import RemoteSettings

    usual = RetryPolicy()
    return RemoteSettings(
        base_url=base_url,
        max_concurrency=max_concurrency,
        patience=RetryPolicy(
            usual.timeout if timeout is None else timeout, usual.deadline if deadline is None else deadline
        ),
        limits=BudgetLimits(max_tokens_total, max_cost),
        cached=cache,
        context_length=context_length,
        tell=lambda message: err.print(f"note: {message}", style="yellow", markup=False),
    )
