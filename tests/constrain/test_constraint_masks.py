"""Masks contain exactly the tokens that keep an output well-formed, by independent oracles; no dead ends."""

import random

import numpy as np
import pytest

from fewparse.testing.constraints import end_of_walk
from fewparse.vocabulary import Vocabulary
from support.constraint_cases import CASES, CONTEXT_FREE, TRIES, Case, compiled, prefixes

WALKS = 24


def is_mid_character(prefix: bytes) -> bool:
    try:
        prefix.decode()
    except UnicodeDecodeError:
        return True
    return False


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_mask_equals_that_of_the_oracle_for_the_whole_vocabulary(case: Case, vocabulary: Vocabulary) -> None:
    start = compiled(case, vocabulary).start()
    for prefix in prefixes(case, vocabulary):
        state = start.advance(prefix) if prefix else start
        assert state is not None, prefix
        expected = case.oracle.mask(prefix, vocabulary)
        wrong = [vocabulary.tokens[i] for i in np.flatnonzero(state.mask() != expected)]
        assert wrong == [], prefix
        assert state.may_end == case.oracle.accepts(prefix), prefix


def test_at_least_200_prefixes_are_tested_and_20_end_within_a_character(vocabulary: Vocabulary) -> None:
    judged = [prefix for case in CONTEXT_FREE for prefix in prefixes(case, vocabulary)]
    assert len(judged) >= 200
    assert sum(map(is_mid_character, judged)) >= 20
    assert any(is_mid_character(prefix) for case in TRIES for prefix in prefixes(case, vocabulary))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_random_walk_ends_in_a_sentence(case: Case, vocabulary: Vocabulary) -> None:
    constraint, rng = compiled(case, vocabulary), random.Random(7)
    for _ in range(WALKS):
        last = end_of_walk(constraint, rng)
        assert constraint.accepts(last.text), last.text
        assert case.oracle.accepts(last.text), last.text


def test_at_least_a_thousand_random_walks_are_tested() -> None:
    assert len(CASES) * 2 * WALKS >= 1_000
