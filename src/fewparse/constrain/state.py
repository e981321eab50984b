"""The protocol of a constraint: immutable states over bytes, asked what may follow.

A byte string may follow iff the whole stays a prefix of some well-formed string. Given a vocabulary, a state
also answers over tokens, by a mask; tokens may straddle anything. Ending is never a token.
"""

import heapq
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import count

import numpy as np

from fewparse.errors import DeadEnd
from fewparse.vocabulary import Mask, Vocabulary

MAX_STATES = 10_000
CLOSERS = frozenset(b")]}>\"'")
CLOSING, OPENING = 1, 4


class State(ABC):
    """Where a hypothesis stands. Three things are asked of an implementation; the rest is derived."""

    vocabulary: Vocabulary

    @property
    @abstractmethod
    def may_end(self) -> bool:
        """Whether what has been said is well-formed as it is."""

    @abstractmethod
    def advance(self, piece: bytes) -> "State | None":
        """The state after these bytes, or None where they may not follow. No bytes never may."""

    @abstractmethod
    def mask(self) -> Mask:
        """Which tokens of the vocabulary may follow; shared, not to be written to."""

    @property
    def must_end(self) -> bool:
        """Whether nothing can follow. Raises `DeadEnd` if it may not end either."""
        if self.mask().any():
            return False
        if not self.may_end:
            raise dead_end()
        return True

    def allowed(self, pieces: Sequence[bytes]) -> list[bool]:
        """Which of these may follow, for models whose vocabulary is unknown."""
        return [self.advance(piece) is not None for piece in pieces]

    def walk(self, pieces: Sequence[bytes]) -> tuple[int, "State"]:
        """How many of these pieces may follow one after the other, and the state behind them."""
        state: State = self
        for taken, piece in enumerate(pieces):
            following = state.advance(piece)
            if following is None:
                return taken, state
            state = following
        return len(pieces), state

    def forced(self, limit: int = 256) -> bytes:
        """The bytes that must follow from here (at most `limit`): no other continuation is well-formed."""
        state: State = self
        span = bytearray()
        while len(span) < limit and not state.may_end:
            first = first_bytes(state.vocabulary, state.mask())
            following = state.advance(first) if len(first) == 1 else None
            if following is None:
                break
            span += first
            state = following
        return bytes(span)


class Constraint(ABC):
    """A well-formedness condition on outputs, compiled for a vocabulary."""

    vocabulary: Vocabulary

    @abstractmethod
    def start(self) -> State:
        """The state before anything has been said."""

    def accepts(self, text: bytes) -> bool:
        """Whether a finished string is well-formed."""
        if not text:
            return self.start().may_end
        state = self.start().advance(text)
        return state is not None and state.may_end

    def ending(self, text: bytes) -> bytes | None:
        """A short way to end what has been said: the bytes that are missing. None if there is none near."""
        state = self.start().advance(text) if text else self.start()
        return None if state is None else cheapest_ending(state)


def cheapest_ending(begin: State) -> bytes | None:
    """The cheapest bytes after which the output may end, by uniform-cost search: closing is cheap."""
    order = count()
    frontier: list[tuple[int, bytes, int, State]] = [(0, b"", next(order), begin)]
    for _ in range(MAX_STATES):
        if not frontier:
            return None
        cost, said, _, state = heapq.heappop(frontier)
        if state.may_end:
            return said
        for byte in np.unique(state.vocabulary.first_bytes[state.mask()]):
            piece = bytes([int(byte)])
            following = state.advance(piece)
            if following is not None:
                step = CLOSING if int(byte) in CLOSERS else OPENING
                heapq.heappush(frontier, (cost + step, said + piece, next(order), following))
    return None


def dead_end() -> DeadEnd:
    """The defect that nothing may follow a state that may not end."""
    return DeadEnd(
        "nothing may follow here and the output may not end",
        "Does the model's vocabulary spell every character of the grammar?",
    )


def first_bytes(vocabulary: Vocabulary, mask: Mask) -> bytes:
    """The distinct first bytes of the tokens of a mask; only the first two differing ones are looked for."""
    ids = np.flatnonzero(mask)
    if len(ids) == 0:
        return b""
    found = vocabulary.first_bytes[ids]
    low, high = int(found.min()), int(found.max())
    return bytes([low]) if low == high else bytes([low, high])
