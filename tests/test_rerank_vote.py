"""Candidates whose programs have one answer pool their probabilities."""

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fewparse.errors import ExecutionError
from fewparse.example import Candidate
from fewparse.rerank import vote

ANSWERS = {"a": 1, "b": [2], "also b": [2], "once more b": [2]}


def execute(program: str) -> Any:
    if program not in ANSWERS:
        raise ExecutionError("no such program")
    return ANSWERS[program]


def candidate(program: str | None, score: float) -> Candidate:
    return Candidate(f"say {program}", score, program, score)


def programs(candidates: tuple[Candidate, ...]) -> list[str | None]:
    return [c.program for c in candidates]


def test_two_ways_to_say_one_thing_outvote_a_better_candidate() -> None:
    given = [candidate("a", math.log(0.4)), candidate("b", math.log(0.3)), candidate("also b", math.log(0.2))]
    assert programs(vote(given, execute)) == ["b", "also b", "a"]


def test_a_candidate_of_more_weight_than_all_others_together_stays_first() -> None:
    given = [candidate("b", math.log(0.3)), candidate("a", math.log(0.6)), candidate("also b", math.log(0.2))]
    assert programs(vote(given, execute)) == ["a", "b", "also b"]


def test_what_fails_to_execute_or_is_no_program_comes_last_whatever_its_score() -> None:
    given = [candidate("fails", 0.0), candidate(None, -1.0), candidate("a", -9.0)]
    assert programs(vote(given, execute)) == ["a", "fails", None]


@given(st.lists(st.tuples(st.sampled_from([*ANSWERS, "fails", None]), st.floats(-20, 0)), max_size=8))
def test_a_vote_loses_nobody_and_the_weightiest_answer_wins(
    given: list[tuple[str | None, float]],
) -> None:
    candidates = [candidate(program, score) for program, score in given]
    voted = vote(candidates, execute)
    assert sorted(map(repr, voted)) == sorted(map(repr, candidates))
    weights: dict[str, float] = {}
    for one in candidates:
        if one.program in ANSWERS:
            answer = repr(ANSWERS[one.program])
            weights[answer] = weights.get(answer, 0.0) + math.exp(one.score)
    if weights:
        winner = voted[0].program
        assert winner is not None
        assert math.isclose(weights[repr(ANSWERS[winner])], max(weights.values()))
