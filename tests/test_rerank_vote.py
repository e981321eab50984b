"""Voting: candidates whose programs have the same answer pool their probabilities."""

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fewparse.errors import ExecutionError
from fewparse.example import Candidate
from fewparse.rerank import vote

ANSWERS = {"a": 1, "b": [2], "also b": [2], "another b": [2]}


def execute(program: str) -> Any:
    if program not in ANSWERS:
        raise ExecutionError("no such program")
    return ANSWERS[program]


def candidate(program: str | None, score: float) -> Candidate:
    return Candidate(f"text of {program}", score, program, score)


def programs(candidates: tuple[Candidate, ...]) -> list[str | None]:
    return [c.program for c in candidates]


def test_two_candidates_with_the_same_answer_outvote_a_better_one() -> None:
    candidates = [candidate("a", math.log(0.4)), candidate("b", math.log(0.3)), candidate("also b", math.log(0.2))]
    assert programs(vote(candidates, execute)) == ["b", "also b", "a"]


def test_a_candidate_more_probable_than_all_others_together_is_first() -> None:
    candidates = [candidate("b", math.log(0.3)), candidate("a", math.log(0.6)), candidate("also b", math.log(0.2))]
    assert programs(vote(candidates, execute)) == ["a", "b", "also b"]


def test_candidates_without_an_answer_are_last_for_any_score() -> None:
    candidates = [candidate("fails", 0.0), candidate(None, -1.0), candidate("a", -9.0)]
    assert programs(vote(candidates, execute)) == ["a", "fails", None]


@given(st.lists(st.tuples(st.sampled_from([*ANSWERS, "fails", None]), st.floats(-20, 0)), max_size=8))
def test_a_vote_keeps_all_candidates_and_the_most_probable_answer_is_first(
    scored: list[tuple[str | None, float]],
) -> None:
    candidates = [candidate(program, score) for program, score in scored]
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


def test_without_an_executor_candidates_with_one_program_add_up() -> None:
    candidates = [
        Candidate("turn it on", -1.0, "on", -1.0),
        Candidate("switch it off", -1.4, "off", -1.4),
        Candidate("turn it off", -1.3, "off", -1.3),
        Candidate("nothing", -0.1, None, -0.1),
    ]
    assert [c.text for c in vote(candidates)] == ["turn it off", "switch it off", "turn it on", "nothing"]
