"""A constraint on outputs, extended to outputs after the lead of a prompt template."""

from functools import cached_property

import numpy as np

from fewparse.constrain.state import Constraint, State
from fewparse.vocabulary import Mask


class LeadState(State):
    """Part of the lead is still to come."""

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
        for length in range(1, len(self._rest) + 1):
            mask[[i for i in self.vocabulary.starting_with(self._rest[:length]) if self._allowed(i)]] = True
        return mask

    def _allowed(self, token: int) -> bool:
        return self.advance(self.vocabulary.tokens[token]) is not None


class LeadConstraint(Constraint):
    """The strings of another constraint, each after the lead."""

    def __init__(self, inner: Constraint, lead: str) -> None:
        self.vocabulary = inner.vocabulary
        self._inner = inner
        self._start = LeadState(inner, lead.encode()) if lead else None

    def start(self) -> State:
        """Return the state before the lead."""
        return self._start or self._inner.start()
