"""Correctness of programs (by denotation, normal form or exact match), confidence intervals and paired tests."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Any, Literal

from fewparse.domains.calls.accepted import AcceptedCalls
from fewparse.domains.domain import Domain
from fewparse.domains.sql.execution import DatabaseExecutor
from fewparse.domains.sql.judge import RowJudge
from fewparse.errors import ExecutionError

FAILED = object()


Criterion = Literal["accepted values", "answer", "normal form", "text"]


class Judge:
    """Decides whether a program is correct: it must have the same answer as the gold program.

    If a domain has no executor, or executes on request only, both must have the same normal form; if it has no
    normal form either, they must be identical. A program that fails to execute or has no normal form is wrong.
    Queries on a database must have the same rows, see `RowJudge`. If a domain lists accepted values, calls must
    have these, see `AcceptedCalls`.
    """

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._answer = lru_cache(maxsize=100_000)(self._execute)
        self._normal_form = lru_cache(maxsize=100_000)(self._normalise)

    @property
    def criterion(self) -> Criterion:
        """What a correct program must have in common with the gold one."""
        if self._domain.table.accepted is not None:
            return "accepted values"
        if self._domain.executes and self._domain.executor is not None:
            return "answer"
        return "text" if self._domain.normal_form is None else "normal form"

    def is_correct(self, program: str | None, gold: str) -> bool:
        """Return whether a program is equivalent to the gold one; None is always wrong."""
        if program is None or self.criterion == "text":
            return program == gold
        if self._accepted_calls is not None:
            return self._accepted_calls.is_correct(program, gold)
        if self.criterion == "answer" and isinstance(self._domain.executor, DatabaseExecutor):
            return self._row_judge.is_correct(program, gold)
        evaluate = self._answer if self.criterion == "answer" else self._normal_form
        value = evaluate(program)
        return value is not FAILED and bool(value == evaluate(gold))

    @cached_property
    def _accepted_calls(self) -> AcceptedCalls | None:
        name = self._domain.table.accepted
        return None if name is None else AcceptedCalls(self._domain.data_file(name))

    @cached_property
    def _row_judge(self) -> RowJudge:
        assert isinstance(self._domain.executor, DatabaseExecutor)
        return RowJudge(self._domain.executor)

    def fails(self, program: str) -> bool:
        """Return whether programs are compared by their answers, and this one has none."""
        return self.criterion == "answer" and self._answer(program) is FAILED

    def execute(self, program: str) -> Any:
        """Return the cached answer of a program; raise `ExecutionError` if it fails."""
        if (answer := self._answer(program)) is FAILED:
            raise ExecutionError("the program fails")
        return answer

    def _execute(self, program: str) -> Any:
        try:
            return self._domain.execute(program) if self._domain.executes else FAILED
        except ExecutionError:
            return FAILED

    def _normalise(self, program: str) -> Any:
        if self._domain.normal_form is None:
            return FAILED
        try:
            return self._domain.normal_form(program)
        except Exception:  # user code may raise anything for a malformed program
            return FAILED


@dataclass(frozen=True)
class Proportion:
    """The number of correct items out of all items."""

    correct: int
    items: int

    @property
    def value(self) -> float:
        """The share of correct items; 0 if there are no items."""
        return self.correct / self.items if self.items else 0.0

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return Wilson's score interval, which is valid for few items and for shares near 0 and 1."""
        if not self.items:
            return 0.0, 1.0
        z = NormalDist().inv_cdf((1 + confidence) / 2)
        n, share = self.items, self.value
        middle = (share + z * z / (2 * n)) / (1 + z * z / n)
        half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        return max(0.0, middle - half), min(1.0, middle + half)


@dataclass(frozen=True)
class Paired:
    """Two systems on the same items: the numbers of items that only the first or only the second has correct."""

    only_first: int
    only_second: int

    @property
    def p_value(self) -> float:
        """The p-value of the exact two-sided sign test."""
        n, least = self.only_first + self.only_second, min(self.only_first, self.only_second)
        tail = sum(math.comb(n, k) for k in range(least + 1)) / (1 << n)  # exact for any n: integers
        return min(1.0, 2 * tail)


def count(flags: Sequence[bool]) -> Proportion:
    """Count the true flags."""
    return Proportion(sum(flags), len(flags))


def pair(first: Sequence[bool], second: Sequence[bool]) -> Paired:
    """Compare the flags of two systems item by item."""
    both = list(zip(first, second, strict=True))
    return Paired(sum(a and not b for a, b in both), sum(b and not a for a, b in both))
