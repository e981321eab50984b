"""The laws of a constraint, written once, for every kind of constraint and both kinds of vocabulary."""

import random
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewparse.constrain.state import State
from fewparse.vocabulary import BYTES, Vocabulary
from support.constraint_cases import CASES, CONTEXT_FREE, Case, Step, compiled, further, prefixes, steps

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
on_random_walks = settings(max_examples=5, deadline=None, derandomize=True, database=None)
seeds = st.integers(0, 2**32).map(random.Random)


def places(case: Case, vocabulary: Vocabulary, rng: random.Random, count: int = 6) -> list[Step]:
    """Some places of one random walk, its start and its end among them."""
    walked = list(steps(compiled(case, vocabulary), rng))
    return [walked[0], walked[-1], *rng.sample(walked, min(count, len(walked)))]


def answers(state: State) -> tuple[bytes, bool, bytes]:
    """Everything that a state says."""
    return np.packbits(state.mask()).tobytes(), state.may_end, state.forced()


def reached(state: State | None) -> State:
    assert state is not None
    return state


@every_case
@given(rng=seeds)
@on_random_walks
def test_the_mask_is_what_advancing_allows(case: Case, vocabulary: Vocabulary, rng: random.Random) -> None:
    for said, state in places(case, vocabulary, rng):
        mask = state.mask()
        assert mask.shape == (len(vocabulary),)
        assert mask.dtype == np.bool_
        yes, no = np.flatnonzero(mask).tolist(), np.flatnonzero(~mask).tolist()
        for i in [*rng.sample(yes, min(100, len(yes))), *rng.sample(no, min(200, len(no)))]:
            assert (state.advance(vocabulary.tokens[i]) is not None) == mask[i], (said, vocabulary.tokens[i])


@every_case
def test_the_mask_is_what_advancing_allows_for_every_byte(case: Case) -> None:
    start = compiled(case, BYTES).start()
    for prefix in prefixes(case, BYTES):
        state = reached(start.advance(prefix)) if prefix else start
        assert state.mask().tolist() == [state.advance(token) is not None for token in BYTES.tokens], prefix


@pytest.mark.parametrize("name", ["unicode", "quoted", "no greedy lexer", "calendar"])
def test_the_mask_is_what_advancing_allows_for_every_token(name: str, model_vocabulary: Vocabulary) -> None:
    case = next(case for case in CONTEXT_FREE if case.name == name)
    for prefix in prefixes(case, model_vocabulary)[5:7]:
        state = reached(compiled(case, model_vocabulary).start().advance(prefix))
        allowed = [state.advance(token) is not None for token in model_vocabulary.tokens]
        assert state.mask().tolist() == allowed, prefix


@every_case
@given(rng=seeds)
@on_random_walks
def test_advancing_does_not_change_a_state(case: Case, vocabulary: Vocabulary, rng: random.Random) -> None:
    for here in places(case, vocabulary, rng):
        before = answers(here.state)
        children = [further(here, rng) for _ in range(3) if not here.state.must_end]
        said = [answers(child.state) for child in children]
        for child in children:
            if not child.state.must_end:
                answers(further(child, rng).state)
        here.state.advance(b"\xff")
        assert answers(here.state) == before
        assert [answers(child.state) for child in children] == said


@every_case
@given(rng=seeds)
@on_random_walks
def test_two_pieces_lead_where_their_sum_leads(case: Case, vocabulary: Vocabulary, rng: random.Random) -> None:
    walked = places(case, vocabulary, rng)
    end = walked[1]
    for said, state in walked:
        rest = end.text[len(said) :]
        for cut in rng.sample(range(1, len(rest)), min(4, max(0, len(rest) - 1))):
            halfway = reached(state.advance(rest[:cut]))
            assert answers(reached(halfway.advance(rest[cut:]))) == answers(reached(state.advance(rest)))
            assert answers(reached(state.advance(rest))) == answers(end.state)
        for piece in (b"\x80", b"a", b")"):
            halfway_or_not = state.advance(rest) if rest else state
            assert (state.advance(rest + piece) is None) == (reached(halfway_or_not).advance(piece) is None)


@every_case
@given(rng=seeds)
@on_random_walks
def test_walking_takes_as_many_pieces_as_advance(case: Case, vocabulary: Vocabulary, rng: random.Random) -> None:
    walked = list(steps(compiled(case, vocabulary), rng))
    pieces = [after.text[len(before.text) :] for before, after in pairwise(walked)]
    assert walked[0].state.walk([])[0] == 0
    for start in {0, rng.randrange(len(walked))}:
        count, state = walked[start].state.walk(pieces[start:])
        assert count == len(pieces) - start
        assert answers(state) == answers(walked[-1].state)
        wrong = refused(walked[-1].state, vocabulary, rng)
        for piece in [b"", *wrong]:
            count, state = walked[start].state.walk([*pieces[start:], piece, b"a"])
            assert count == len(pieces) - start
            assert answers(state) == answers(walked[-1].state)


def refused(state: State, vocabulary: Vocabulary, rng: random.Random) -> list[bytes]:
    """A token with bytes that may not follow, where there is one."""
    ids = np.flatnonzero(~state.mask() & vocabulary.is_text).tolist()
    return [vocabulary.tokens[rng.choice(ids)]] if ids else []


@every_case
@given(rng=seeds)
@on_random_walks
def test_asking_for_some_pieces_agrees_with_the_mask(
    case: Case, vocabulary: Vocabulary, rng: random.Random
) -> None:
    for _, state in places(case, vocabulary, rng):
        ids = rng.sample(range(len(vocabulary)), 100) + np.flatnonzero(state.mask())[:50].tolist()
        assert state.allowed([vocabulary.tokens[i] for i in ids]) == state.mask()[ids].tolist()
        assert state.allowed([]) == []


def no_bytes_never_may_follow(state: State) -> None:
    assert state.advance(b"") is None
    assert not state.mask()[~state.vocabulary.is_text].any(), "markup is no text"


def the_output_must_end_iff_nothing_may_follow(state: State) -> None:
    assert state.must_end == (not state.mask().any())
    assert state.may_end or not state.must_end


def every_continuation_begins_with_the_forced_bytes(state: State) -> None:
    forced, tokens = state.forced(), state.vocabulary.tokens
    for i in np.flatnonzero(state.mask()):
        assert tokens[i].startswith(forced) or forced.startswith(tokens[i])
    assert state.forced(limit=2) == forced[:2]
    if forced:
        assert not state.may_end
        behind = reached(state.advance(forced))
        firsts = {tokens[i][0] for i in np.flatnonzero(behind.mask())}
        assert behind.may_end or len(firsts) != 1, "more was forced"


@every_case
@pytest.mark.parametrize(
    "law",
    [
        no_bytes_never_may_follow,
        the_output_must_end_iff_nothing_may_follow,
        every_continuation_begins_with_the_forced_bytes,
    ],
    ids=lambda law: law.__name__,
)
@given(rng=seeds)
@on_random_walks
def test_everywhere(case: Case, law: Callable[[State], None], vocabulary: Vocabulary, rng: random.Random) -> None:
    for _, state in places(case, vocabulary, rng):
        law(state)


@every_case
def test_accepts_what_may_end(case: Case, vocabulary: Vocabulary) -> None:
    constraint = compiled(case, vocabulary)
    for prefix in prefixes(case, vocabulary):
        assert constraint.accepts(prefix) == case.oracle.accepts(prefix), prefix
