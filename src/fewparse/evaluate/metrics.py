"""Judge predictions: right by what they come to, the exact program beside it, and how sure the figures are."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Literal

from fewparse.domains.domain import Domain
from fewparse.errors import ExecutionError

FAILED = object()


Criterion = Literal["answer", "normal form", "text"]


class Judge:
    """Says whether a program is right: it has the answer of the gold one.

    Where a domain cannot execute, right is what has the normal form of the gold program, and where it has none
    either, only the gold program itself. A program that fails to execute or has no normal form is wrong.
    """

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._answer = lru_cache(maxsize=100_000)(self._execute)
        self._normal = lru_cache(maxsize=100_000)(self._normalise)

    @property
    def criterion(self) -> Criterion:
        """What a program must share with the gold one to be right."""
        if self._domain.executor is not None:
            return "answer"
        return "text" if self._domain.normal_form is None else "normal form"

    def is_correct(self, program: str | None, gold: str) -> bool:
        """Whether a program comes to the same as the gold one; none at all never does."""
        if program is None or self.criterion == "text":
            return program == gold
        compared = self._answer if self.criterion == "answer" else self._normal
        found = compared(program)
        return found is not FAILED and bool(found == compared(gold))

    def execute(self, program: str) -> Any:
        """The answer of a program, found once; `ExecutionError` where it fails."""
        if (answer := self._answer(program)) is FAILED:
            raise ExecutionError("the program fails")
        return answer

    def _execute(self, program: str) -> Any:
        try:
            return self._domain.execute(program)
        except ExecutionError:
            return FAILED

    def _normalise(self, program: str) -> Any:
        if self._domain.normal_form is None:
            return FAILED
        try:
            return self._domain.normal_form(program)
        except Exception:  # a function of the domain's own: whatever it raises, it has not understood the program
            return FAILED


@dataclass(frozen=True)
class Proportion:
    """So many right out of so many items."""

    right: int
    items: int

    @property
    def value(self) -> float:
        """The share; 0 of nothing is 0."""
        return self.right / self.items if self.items else 0.0

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Wilson's score interval: honest for few items and for shares near 0 and 1."""
        if not self.items:
            return 0.0, 1.0
        z = NormalDist().inv_cdf((1 + confidence) / 2)
        n, share = self.items, self.value
        middle = (share + z * z / (2 * n)) / (1 + z * z / n)
        half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        return max(0.0, middle - half), min(1.0, middle + half)


@dataclass(frozen=True)
class Paired:
    """Two systems on the same items: how often only the one or only the other was right."""

    only_first: int
    only_second: int

    @property
    def p_value(self) -> float:
        """The exact two-sided sign test: how likely a difference like this is, if there is none."""
        n, least = self.only_first + self.only_second, min(self.only_first, self.only_second)
        tail = sum(math.comb(n, k) for k in range(least + 1)) / float(2**n)
        return min(1.0, 2 * tail)


def count(flags: Sequence[bool]) -> Proportion:
    """The share of true ones."""
    return Proportion(sum(flags), len(flags))


def pair(first: Sequence[bool], second: Sequence[bool]) -> Paired:
    """Compare two systems item by item."""
    both = list(zip(first, second, strict=True))
    return Paired(sum(a and not b for a, b in both), sum(b and not a for a, b in both))
