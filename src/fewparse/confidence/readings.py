"""Group the candidates of a parse by meaning: those with the same answer or the same program are one reading."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fewparse.errors import DatabaseError, ExecutionError
from fewparse.example import Candidate, answer_text

MAX_EXECUTED = 5
"""How many of the best candidates are executed to compare their answers; later ones are compared as programs."""
Execute = Callable[[str], Any]


@dataclass(frozen=True)
class Evaluation:
    """What a program evaluates to, or why it fails."""

    answer: Any = None
    error: str | None = None

    @property
    def failed(self) -> bool:
        """Whether the program cannot be executed."""
        return self.error is not None

    @property
    def is_empty(self) -> bool:
        """Whether the answer has nothing in it: an empty list, no rows, nothing."""
        answer = self.answer
        if isinstance(answer, dict) and isinstance(answer.get("rows"), list):
            return not answer["rows"]
        return not self.failed and (answer is None or answer in ("", [], {}))


@dataclass(frozen=True)
class Reading:
    """Candidates that mean the same, by their indices, best first.

    `score` is that of the best of them, `weight` the sum of their exponentiated scores. `outcome` is None if the
    program was not executed.
    """

    candidates: tuple[int, ...]
    program: str | None
    score: float
    weight: float
    outcome: Evaluation | None


def run(program: str | None, execute: Execute) -> Evaluation:
    """Execute a program."""
    if program is None:
        return Evaluation(error="the output has no program")
    try:
        return Evaluation(execute(program))
    except (DatabaseError, ExecutionError) as error:
        return Evaluation(error=error.message)


def readings_of(candidates: Sequence[Candidate], execute: Execute | None) -> list[Reading]:
    """Group candidates by meaning, in the order of their best candidate; nothing is executed without `execute`.

    Programs that fail mean different things.
    """
    groups: dict[tuple[str, str], list[int]] = {}
    outcomes: dict[tuple[str, str], Evaluation | None] = {}
    for i, candidate in enumerate(candidates):
        outcome = run(candidate.program, execute) if execute is not None and i < MAX_EXECUTED else None
        key = ("program", candidate.program or candidate.text)
        if outcome is not None and not outcome.failed:
            key = ("answer", answer_text(outcome.answer))
        groups.setdefault(key, []).append(i)
        outcomes.setdefault(key, outcome)
    return [
        Reading(
            candidates=tuple(members),
            program=candidates[members[0]].program,
            score=max(candidates[i].score for i in members),
            weight=sum(math.exp(candidates[i].score) for i in members),
            outcome=outcomes[key],
        )
        for key, members in groups.items()
    ]
