"""The laws of a constraint, for every kind of constraint and both kinds of vocabulary."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewparse.constrain.state import State
from fewparse.testing import CONSTRAINT_LAWS
from fewparse.vocabulary import BYTES, Vocabulary
from support.constraint_cases import CASES, CONTEXT_FREE, Case, compiled, prefixes

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def reached(state: State | None) -> State:
    assert state is not None
    return state


@every_case
@pytest.mark.parametrize("law", CONSTRAINT_LAWS, ids=lambda law: law.__name__)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=5, deadline=None, derandomize=True, database=None)
def test_law(case: Case, law: Callable[..., None], vocabulary: Vocabulary, seed: int) -> None:
    law(compiled(case, vocabulary), seed)


@every_case
def test_the_mask_agrees_with_advance_for_every_byte(case: Case) -> None:
    start = compiled(case, BYTES).start()
    for prefix in prefixes(case, BYTES):
        state = reached(start.advance(prefix)) if prefix else start
        assert state.mask().tolist() == [state.advance(token) is not None for token in BYTES.tokens], prefix


@pytest.mark.parametrize("name", ["unicode", "quoted", "no greedy lexer", "calendar"])
def test_the_mask_agrees_with_advance_for_every_token(name: str, model_vocabulary: Vocabulary) -> None:
    case = next(case for case in CONTEXT_FREE if case.name == name)
    for prefix in prefixes(case, model_vocabulary)[5:7]:
        state = reached(compiled(case, model_vocabulary).start().advance(prefix))
        allowed = [state.advance(token) is not None for token in model_vocabulary.tokens]
        assert state.mask().tolist() == allowed, prefix


@every_case
def test_a_string_is_accepted_iff_it_is_a_sentence(case: Case, vocabulary: Vocabulary) -> None:
    constraint = compiled(case, vocabulary)
    for prefix in prefixes(case, vocabulary):
        assert constraint.accepts(prefix) == case.oracle.accepts(prefix), prefix
