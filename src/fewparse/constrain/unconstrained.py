"""The constraint that allows any non-empty text, for unconstrained decoding."""

import numpy as np

from fewparse.constrain.state import Constraint, State
from fewparse.vocabulary import Mask, Vocabulary


class AnyText(State):
    """Everything may follow; ending is allowed once there is text after the lead."""

    def __init__(self, constraint: "Unconstrained", length: int) -> None:
        self.vocabulary = constraint.vocabulary
        self._constraint = constraint
        self._length = length

    @property
    def may_end(self) -> bool:
        """Whether there is text after the lead."""
        return self._length > len(self._constraint.lead)

    @property
    def must_end(self) -> bool:
        """Always false."""
        return False

    def advance(self, piece: bytes) -> State | None:
        """Return the state after any piece; the lead must come first."""
        rest = self._constraint.lead[self._length :]
        if not piece or not (piece.startswith(rest) or rest.startswith(piece)):
            return None
        return AnyText(self._constraint, self._length + len(piece))

    def mask(self) -> Mask:
        """Return all text tokens, or those that continue the lead."""
        masks = self._constraint.lead_masks
        if self._length >= len(self._constraint.lead):
            return self.vocabulary.is_text
        if self._length not in masks:
            masks[self._length] = np.array([self.advance(token) is not None for token in self.vocabulary.tokens])
        return masks[self._length]


class Unconstrained(Constraint):
    """Any text after the lead."""

    def __init__(self, vocabulary: Vocabulary, lead: bytes = b"") -> None:
        self.vocabulary = vocabulary
        self.lead = lead
        self.lead_masks: dict[int, Mask] = {}

    def start(self) -> State:
        """Return the state of the empty prefix."""
        return AnyText(self, 0)
