"""No constraint: any text, for baselines. It must not be empty."""

import numpy as np

from fewparse.constrain.state import Constraint, State
from fewparse.vocabulary import Mask, Vocabulary


class AnyText(State):
    """Everything may follow; ending is allowed once something has been said behind the lead."""

    def __init__(self, constraint: "Unconstrained", said: int) -> None:
        self.vocabulary = constraint.vocabulary
        self._constraint = constraint
        self._said = said

    @property
    def may_end(self) -> bool:
        """Once something has been said."""
        return self._said > len(self._constraint.lead)

    @property
    def must_end(self) -> bool:
        """Never: anything can follow."""
        return False

    def advance(self, piece: bytes) -> State | None:
        """Anything but nothing; the lead comes first."""
        rest = self._constraint.lead[self._said :]
        if not piece or not (piece.startswith(rest) or rest.startswith(piece)):
            return None
        return AnyText(self._constraint, self._said + len(piece))

    def mask(self) -> Mask:
        """All text tokens, or those that carry on the lead."""
        masks = self._constraint.lead_masks
        if self._said >= len(self._constraint.lead):
            return self.vocabulary.is_text
        if self._said not in masks:
            masks[self._said] = np.array([self.advance(token) is not None for token in self.vocabulary.tokens])
        return masks[self._said]


class Unconstrained(Constraint):
    """Any text behind the lead."""

    def __init__(self, vocabulary: Vocabulary, lead: bytes = b"") -> None:
        self.vocabulary = vocabulary
        self.lead = lead
        self.lead_masks: dict[int, Mask] = {}

    def start(self) -> State:
        """Nothing said yet."""
        return AnyText(self, 0)
