"""Let the candidates vote: those whose programs have one answer pool their probabilities.

A search returns several ways to say one thing, and a small model spreads its belief over them. The answer that
gathers the most of it wins; a program that fails to execute has no answer, and comes last.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from fewparse.errors import ExecutionError
from fewparse.example import Candidate, answer_text


def vote(candidates: Iterable[Candidate], execute: Callable[[str], Any]) -> tuple[Candidate, ...]:
    """The candidates, answer by answer: the weightiest answer first, and for one answer the best score."""
    by_answer: dict[str, list[Candidate]] = defaultdict(list)
    failing: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda c: -c.score):
        answer = answer_of(candidate.program, execute)
        (failing if answer is None else by_answer[answer]).append(candidate)
    groups = sorted(by_answer.values(), key=weight, reverse=True)
    return tuple(candidate for group in [*groups, failing] for candidate in group)


def answer_of(program: str | None, execute: Callable[[str], Any]) -> str | None:
    """What a program answers, as text; None where it fails."""
    if program is None:
        return None
    try:
        return answer_text(execute(program))
    except ExecutionError:
        return None


def weight(group: list[Candidate]) -> float:
    """The belief in an answer: the sum of what its candidates' scores stand for."""
    return sum(math.exp(candidate.score) for candidate in group)
