"""How much may be spent, and how much was: nothing is asked that could go beyond."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from fewparse.errors import BudgetExceeded, UsageError
from fewparse.lm.prices import Price


@dataclass(frozen=True)
class BudgetLimits:
    """The most tokens and dollars that a run may cost; None for as many as it takes."""

    tokens: int | None = None
    dollars: float | None = None


class Budget:
    """What was spent, and what the requests under way may still come to. For many threads."""

    def __init__(self, limits: BudgetLimits, price: Price | None) -> None:
        if limits.dollars is not None and price is None:
            raise UsageError(
                "the price of this model is unknown, so that a limit in dollars cannot be kept",
                "Use --max-tokens-total instead of --max-cost.",
            )
        self._allowance = limits
        self._price = price
        self._lock = threading.Lock()
        self._tokens = 0
        self._dollars = 0.0

    @contextmanager
    def spending(self, prompt: int, completion: int) -> Iterator["Spending"]:
        """A request that may take so many tokens; what it took is counted at its end."""
        spending = Spending(self, prompt, completion)
        try:
            yield spending
        finally:
            if spending.reserved:
                taken, cached, given = spending.spent
                most, cost = self.cost(prompt, 0, completion) or 0.0, self.cost(taken, cached, given) or 0.0
                with self._lock:  # at once: between the two, another request would find too much left
                    self._tokens += taken + given - prompt - completion
                    self._dollars += cost - most

    def set_aside(self, tokens: int, dollars: float | None) -> None:
        """Set aside the most that a request can cost; refuse it where that is more than is left."""
        most, price = self._allowance, dollars or 0.0
        with self._lock:
            if most.tokens is not None and self._tokens + tokens > most.tokens:
                raise BudgetExceeded(
                    f"{self._tokens} of {most.tokens} tokens are spent or under way, and the next request "
                    f"may take {tokens} more",
                    "Allow more with --max-tokens-total; what was answered is cached.",
                )
            if most.dollars is not None and self._dollars + price > most.dollars:
                raise BudgetExceeded(
                    f"${self._dollars:.4f} of ${most.dollars:.4f} are spent or under way, and the next request "
                    f"may cost ${price:.4f} more",
                    "Allow more with --max-cost; what was answered is cached.",
                )
            self._tokens += tokens
            self._dollars += price

    def cost(self, prompt: int, cached: int, completion: int) -> float | None:
        """The price of so many tokens, `cached` of those of the prompt; None where it is unknown."""
        return None if self._price is None else self._price.cost(prompt, cached, completion)


class Spending:
    """What one request may take, and what it took: tokens of the prompt, cached ones of them, and new ones."""

    def __init__(self, budget: Budget, prompt: int, completion: int) -> None:
        self._budget = budget
        self._most = prompt, completion
        self.reserved = False
        self.spent = 0, 0, 0

    def reserve(self) -> None:
        """Called where the request is really sent; raises where the budget does not allow it."""
        prompt, completion = self._most
        self._budget.set_aside(prompt + completion, self._budget.cost(prompt, 0, completion))
        self.reserved = True
