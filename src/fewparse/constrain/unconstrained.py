"""The constraint that allows any non-empty text, for unconstrained decoding."""

from fewparse.constrain.state import Constraint, State
from fewparse.vocabulary import Mask, Vocabulary


class AnyText(State):
    """Everything may follow; only the empty text may not end."""

    def __init__(self, vocabulary: Vocabulary, is_empty: bool) -> None:
        self.vocabulary = vocabulary
        self._is_empty = is_empty

    @property
    def may_end(self) -> bool:
        """Whether there is any text."""
        return not self._is_empty

    @property
    def must_end(self) -> bool:
        """Always false."""
        return False

    def advance(self, piece: bytes) -> State | None:
        """Return the state after any non-empty piece."""
        return AnyText(self.vocabulary, is_empty=False) if piece else None

    def mask(self) -> Mask:
        """Return all text tokens."""
        return self.vocabulary.is_text


class Unconstrained(Constraint):
    """Any non-empty text."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    def start(self) -> State:
        """Return the state of the empty text."""
        return AnyText(self.vocabulary, is_empty=True)
