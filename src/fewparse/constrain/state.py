"""The constraint protocol: immutable states over bytes that define which continuations are well-formed.

A byte string may follow iff the whole remains a prefix of some well-formed string. A state also has a mask of the
tokens of a vocabulary that may follow; tokens may straddle terminals. Ending is not a token.
"""

import heapq
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from itertools import count as counter

import numpy as np

from fewparse.errors import DeadEnd
from fewparse.vocabulary import Mask, Vocabulary

MAX_STATES = 10_000
CLOSERS = frozenset(b")]}>\"'")
CLOSER_COST, BYTE_COST = 1, 4


class State(ABC):
    """The state after a prefix. Implementations define `may_end`, `advance` and `mask`; the rest is derived."""

    vocabulary: Vocabulary

    @property
    @abstractmethod
    def may_end(self) -> bool:
        """Whether the prefix itself is a well-formed string."""

    @abstractmethod
    def advance(self, piece: bytes) -> "State | None":
        """Return the state after these bytes, or None if they may not follow or are empty."""

    @abstractmethod
    def mask(self) -> Mask:
        """Return which tokens of the vocabulary may follow; the array is shared and must not be written to."""

    @property
    def must_end(self) -> bool:
        """Whether nothing can follow. Raises `DeadEnd` if the output may not end either."""
        if self.mask().any():
            return False
        if not self.may_end:
            raise dead_end()
        return True

    def allowed(self, pieces: Sequence[bytes]) -> list[bool]:
        """Return which of these pieces may follow, for models whose vocabulary is unknown."""
        return [self.advance(piece) is not None for piece in pieces]

    def walk(self, pieces: Sequence[bytes]) -> tuple[int, "State"]:
        """Return how many of these pieces may follow in sequence, and the state after those."""
        state: State = self
        for count, piece in enumerate(pieces):
            following = state.advance(piece)
            if following is None:
                return count, state
            state = following
        return len(pieces), state

    def forced(self, limit: int = 256) -> bytes:
        """Return the bytes that must follow (at most `limit`): no other continuation is well-formed."""
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
        """Return the state of the empty prefix."""

    def accepts(self, text: bytes) -> bool:
        """Return whether a finished string is well-formed."""
        if not text:
            return self.start().may_end
        state = self.start().advance(text)
        return state is not None and state.may_end

    def ending(self, text: bytes) -> bytes | None:
        """Return a short suffix that makes a prefix well-formed; None if none was found."""
        state = self.start().advance(text) if text else self.start()
        return None if state is None else cheapest_ending(state)


class LeadState(State):
    """The state within the lead; `rest` is the part that must still follow."""

    def __init__(self, inner: Constraint, rest: bytes) -> None:
        self.vocabulary = inner.vocabulary
        self._inner = inner
        self._rest = rest

    @property
    def may_end(self) -> bool:
        """Always false."""
        return False

    def advance(self, piece: bytes) -> State | None:
        """Consume the lead, then bytes of the inner constraint."""
        rest = self._rest
        if piece and len(piece) < len(rest) and rest.startswith(piece):
            return LeadState(self._inner, rest[len(piece) :])
        if not piece.startswith(rest):
            return None
        start, output = self._inner.start(), piece[len(rest) :]
        return start.advance(output) if output else start

    def mask(self) -> Mask:
        """Return the tokens that continue the lead or reach into the output."""
        return self._mask

    @cached_property
    def _mask(self) -> Mask:
        mask = np.zeros(len(self.vocabulary), dtype=np.bool_)
        tokens = self.vocabulary.tokens
        candidates = self.vocabulary.starting_with(self._rest[:1])
        mask[[i for i in candidates if self.advance(tokens[i]) is not None]] = True
        return mask


class LeadConstraint(Constraint):
    """The strings of another constraint, each preceded by the lead."""

    def __init__(self, inner: Constraint, lead: str) -> None:
        self.vocabulary = inner.vocabulary
        self._inner = inner
        self._lead = lead.encode()
        self._start = LeadState(inner, self._lead) if lead else None

    def start(self) -> State:
        """Return the state before the lead."""
        return self._start or self._inner.start()

    def accepts(self, text: bytes) -> bool:
        """Return whether a text is the lead and a string of the inner constraint."""
        return text.startswith(self._lead) and self._inner.accepts(text[len(self._lead) :])

    def ending(self, text: bytes) -> bytes | None:
        """Return what is missing of the lead, and the suffix that the inner constraint finds."""
        rest = self._lead[len(text) :]
        suffix = self._inner.ending(text[len(self._lead) :]) if (text + rest).startswith(self._lead) else None
        return None if suffix is None else rest + suffix


def cheapest_ending(start: State) -> bytes | None:
    """Return the cheapest suffix after which the output may end, by uniform-cost search; brackets cost less."""
    order = counter()
    frontier: list[tuple[int, bytes, int, State]] = [(0, b"", next(order), start)]
    for _ in range(MAX_STATES):
        if not frontier:
            return None
        cost, suffix, _, state = heapq.heappop(frontier)
        if state.may_end:
            return suffix
        for byte in np.unique(state.vocabulary.first_bytes[state.mask()]):
            piece = bytes([int(byte)])
            following = state.advance(piece)
            if following is not None:
                step = CLOSER_COST if int(byte) in CLOSERS else BYTE_COST
                heapq.heappush(frontier, (cost + step, suffix + piece, next(order), following))
    return None


def dead_end() -> DeadEnd:
    """Return the error for a state that nothing may follow and that may not end."""
    return DeadEnd(
        "nothing may follow here and the output may not end",
        "Check that the model's vocabulary can spell every character of the grammar.",
    )


def first_bytes(vocabulary: Vocabulary, mask: Mask) -> bytes:
    """Return the distinct first bytes of the tokens of a mask, at most two of them."""
    ids = np.flatnonzero(mask)
    if len(ids) == 0:
        return b""
    found = vocabulary.first_bytes[ids]
    low, high = int(found.min()), int(found.max())
    return bytes([low]) if low == high else bytes([low, high])
