"""The laws of a constraint, checked along random walks through its states."""

import random
from collections import deque
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from fewparse.constrain.state import Constraint, State

CLOSERS = [bytes([byte]) for byte in b'")]}mxc']
SAMPLED_STATES = 6
TOO_LONG = 20
MAX_BYTES = 100_000


class Step(NamedTuple):
    """A prefix and the state after it."""

    text: bytes
    state: State


def random_walk(constraint: Constraint, rng: random.Random, long: int = 30) -> Iterator[Step]:
    """Yield the steps of a random walk through the masks, from the start to a state in which the output may end.

    After `long` bytes the walk prefers tokens that close something, and ends as soon as it may. In a grammar that
    opens more than it closes it might never end: after many times as many bytes, it takes the shortest ending.
    Raises an error if none is found until `MAX_BYTES`.
    """
    here, limit = Step(b"", constraint.start()), TOO_LONG * long
    while True:
        yield here
        if len(here.text) >= limit:
            assert limit <= MAX_BYTES, f"the walk has no end: {here.text[:100]!r}..."
            ending, limit = constraint.ending(here.text), 2 * limit
            if ending is not None:
                for i in range(len(ending)):
                    here = Step(here.text + ending[i : i + 1], reached(here.state.advance(ending[i : i + 1])))
                    yield here
                return
        closing = len(here.text) >= long
        if here.state.must_end or (here.state.may_end and rng.random() < (0.9 if closing else 0.2)):
            return
        here = random_step(here, rng, closing)


def end_of_walk(constraint: Constraint, rng: random.Random, long: int = 30) -> Step:
    """Return the last step of a random walk; the others are not kept, as those of a long text need much memory."""
    return deque(random_walk(constraint, rng, long), maxlen=1).pop()


def random_step(here: Step, rng: random.Random, closing: bool = False) -> Step:
    """Take one allowed token."""
    vocabulary, mask = here.state.vocabulary, here.state.mask()
    token = vocabulary.tokens[rng.choice(np.flatnonzero(mask).tolist())]
    if closing and rng.random() < 0.7:
        token = next((t for t in CLOSERS if mask[vocabulary.ids[t]]), token)
    state = here.state.advance(token)
    assert state is not None, f"the mask allows {token!r} after {here.text!r}, and advance does not"
    return Step(here.text + token, state)


def sampled_steps(constraint: Constraint, rng: random.Random) -> list[Step]:
    """Return some steps of one random walk: its first, its last and a sample."""
    walk = list(random_walk(constraint, rng))
    return [walk[0], walk[-1], *rng.sample(walk, min(SAMPLED_STATES, len(walk)))]


def observed(state: State) -> tuple[bytes, bool, bytes]:
    """Return everything that can be observed of a state: its mask, whether it may end, its forced bytes."""
    return np.packbits(state.mask()).tobytes(), state.may_end, state.forced()


def reached(state: State | None) -> State:
    """Return a state that must exist."""
    assert state is not None
    return state


def mask_agrees_with_advance(constraint: Constraint, seed: int = 0) -> None:
    """A token is in the mask iff `advance` accepts its bytes."""
    rng, vocabulary = random.Random(seed), constraint.vocabulary
    for text, state in sampled_steps(constraint, rng):
        mask = state.mask()
        assert mask.shape == (len(vocabulary),)
        assert mask.dtype == np.bool_
        yes, no = np.flatnonzero(mask).tolist(), np.flatnonzero(~mask).tolist()
        for i in [*rng.sample(yes, min(100, len(yes))), *rng.sample(no, min(200, len(no)))]:
            assert (state.advance(vocabulary.tokens[i]) is not None) == mask[i], (text, vocabulary.tokens[i])


def states_are_immutable(constraint: Constraint, seed: int = 0) -> None:
    """Advancing changes neither a state nor the states reached from it before."""
    rng = random.Random(seed)
    for here in sampled_steps(constraint, rng):
        before = observed(here.state)
        children = [random_step(here, rng) for _ in range(3) if not here.state.must_end]
        of_children = [observed(child.state) for child in children]
        for child in children:
            if not child.state.must_end:
                observed(random_step(child, rng).state)
        here.state.advance(b"\xff")
        assert observed(here.state) == before
        assert [observed(child.state) for child in children] == of_children


def pieces_can_be_joined(constraint: Constraint, seed: int = 0) -> None:
    """Two pieces lead to the same state as their concatenation."""
    rng = random.Random(seed)
    walk = sampled_steps(constraint, rng)
    end = walk[1]
    for text, state in walk:
        rest = end.text[len(text) :]
        for cut in rng.sample(range(1, len(rest)), min(4, max(0, len(rest) - 1))):
            halfway = reached(state.advance(rest[:cut]))
            assert observed(reached(halfway.advance(rest[cut:]))) == observed(reached(state.advance(rest)))
            assert observed(reached(state.advance(rest))) == observed(end.state)
        for piece in (b"\x80", b"a", b")"):
            after_rest = reached(state.advance(rest) if rest else state)
            assert (state.advance(rest + piece) is None) == (after_rest.advance(piece) is None)


def walk_consumes_what_advance_accepts(constraint: Constraint, seed: int = 0) -> None:
    """`walk` consumes pieces up to the first that `advance` rejects."""
    rng, vocabulary = random.Random(seed), constraint.vocabulary
    walk = list(random_walk(constraint, rng))
    pieces = [after.text[len(before.text) :] for before, after in pairwise(walk)]
    assert walk[0].state.walk([])[0] == 0
    for start in {0, rng.randrange(len(walk))}:
        count, state = walk[start].state.walk(pieces[start:])
        assert count == len(pieces) - start
        assert observed(state) == observed(walk[-1].state)
        rejected = np.flatnonzero(~walk[-1].state.mask() & vocabulary.is_text).tolist()
        for piece in [b"", *([vocabulary.tokens[rng.choice(rejected)]] if rejected else [])]:
            count, state = walk[start].state.walk([*pieces[start:], piece, b"a"])
            assert count == len(pieces) - start
            assert observed(state) == observed(walk[-1].state)


def allowed_agrees_with_mask(constraint: Constraint, seed: int = 0) -> None:
    """`allowed` accepts the same tokens as the mask."""
    rng, vocabulary = random.Random(seed), constraint.vocabulary
    for _, state in sampled_steps(constraint, rng):
        ids = rng.sample(range(len(vocabulary)), 100) + np.flatnonzero(state.mask())[:50].tolist()
        assert state.allowed([vocabulary.tokens[i] for i in ids]) == state.mask()[ids].tolist()
        assert state.allowed([]) == []


def empty_pieces_never_follow(constraint: Constraint, seed: int = 0) -> None:
    """An empty piece is rejected, and markup tokens are in no mask."""
    for _, state in sampled_steps(constraint, random.Random(seed)):
        assert state.advance(b"") is None
        assert not state.mask()[~state.vocabulary.is_text].any(), "markup is not text"


def must_end_iff_nothing_may_follow(constraint: Constraint, seed: int = 0) -> None:
    """The output must end iff the mask is empty, and then it may end."""
    for _, state in sampled_steps(constraint, random.Random(seed)):
        assert state.must_end == (not state.mask().any())
        assert state.may_end or not state.must_end


def continuations_start_with_forced_bytes(constraint: Constraint, seed: int = 0) -> None:
    """Every allowed token starts with the forced bytes or is a prefix of them; no more bytes are forced."""
    for _, state in sampled_steps(constraint, random.Random(seed)):
        forced, tokens = state.forced(), state.vocabulary.tokens
        for i in np.flatnonzero(state.mask()):
            assert tokens[i].startswith(forced) or forced.startswith(tokens[i])
        assert state.forced(limit=2) == forced[:2]
        if forced:
            assert not state.may_end
            after = reached(state.advance(forced))
            first_bytes = {tokens[i][0] for i in np.flatnonzero(after.mask())}
            assert after.may_end or len(first_bytes) != 1, "more was forced"


def walks_end_in_accepted_strings(constraint: Constraint, seed: int = 0) -> None:
    """No walk reaches a dead end, and the string of a finished walk is accepted."""
    last = end_of_walk(constraint, random.Random(seed))
    assert constraint.accepts(last.text), last.text


CONSTRAINT_LAWS: tuple[Callable[..., None], ...] = (
    mask_agrees_with_advance,
    states_are_immutable,
    pieces_can_be_joined,
    walk_consumes_what_advance_accepts,
    allowed_agrees_with_mask,
    empty_pieces_never_follow,
    must_end_iff_nothing_may_follow,
    continuations_start_with_forced_bytes,
    walks_end_in_accepted_strings,
)
"""Each takes a constraint and, optionally, the seed of its random walks."""
