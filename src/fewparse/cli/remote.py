"""Settings of a remote model from the command-line options."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fewparse.cli.console import err
from fewparse.errors import UsageError
from fewparse.lm.load import known_kind

if TYPE_CHECKING:
    from fewparse.lm.http.load import RemoteSettings


def remote_settings(
    models: Sequence[str | None],
    base_url: str | None = None,
    max_concurrency: int | None = None,
    timeout: float | None = None,
    deadline: float | None = None,
    max_tokens_total: int | None = None,
    max_cost: float | None = None,
    cache: bool = True,
    context_length: int | None = None,
) -> "RemoteSettings | None":
    """Return the settings of remote models; None if all are local, for which these options are errors.

    `max_concurrency` is an error only if no model uses it. Raises `UnknownName` for a model of an unknown kind.
    """
    kinds = [known_kind(model) for model in models if model is not None]
    if not any(kind.remote for kind in kinds):
        concurrent = any(kind.concurrent for kind in kinds)
        options = {
            "--base-url": base_url,
            "--max-concurrency": None if concurrent else max_concurrency,
            "--timeout": timeout,
            "--deadline": deadline,
            "--max-tokens-total": max_tokens_total,
            "--max-cost": max_cost,
            "--context-length": context_length,
        }
        if unused := next((option for option, value in options.items() if value is not None), None):
            raise UsageError(f"{unused} is for a model behind a server", "For example --model openai:NAME.")
        return None
    from fewparse.lm.http.budget import BudgetLimits
    from fewparse.lm.http.load import RemoteSettings
    from fewparse.retry import RetryPolicy

    default = RetryPolicy()
    return RemoteSettings(
        base_url=base_url,
        max_concurrency=max_concurrency,
        retry=RetryPolicy(
            timeout=default.timeout if timeout is None else timeout,
            deadline=default.deadline if deadline is None else deadline,
        ),
        limits=BudgetLimits(max_tokens_total=max_tokens_total, max_cost=max_cost),
        cache=cache,
        context_length=context_length,
        on_warning=lambda message: err.print(f"note: {message}", style="yellow", markup=False),
    )
