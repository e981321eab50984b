"""The tokens of a language model as byte strings: what a constraint needs to know of a model."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]


class Vocabulary:
    """Token ids with their exact bytes; markup tokens (ends, chat markers) have none and are never text."""

    def __init__(self, tokens: Sequence[bytes], end_ids: Iterable[int] = ()) -> None:
        self.tokens = tuple(tokens)
        self.end_ids = tuple(sorted(end_ids))

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def ids(self) -> dict[bytes, int]:
        """The (first) id of each byte string that is a token."""
        ids: dict[bytes, int] = {}
        for i, token in enumerate(self.tokens):
            if token:
                ids.setdefault(token, i)
        return ids

    @cached_property
    def missing_bytes(self) -> frozenset[int]:
        """Bytes that no single-byte token spells."""
        return frozenset(b for b in range(256) if bytes([b]) not in self.ids)

    @cached_property
    def is_text(self) -> Mask:
        """Which tokens are text rather than markup."""
        return np.array([bool(token) for token in self.tokens])

    @cached_property
    def first_bytes(self) -> NDArray[np.uint8]:
        """The first byte of each token (0 for markup)."""
        return np.array([token[0] if token else 0 for token in self.tokens], dtype=np.uint8)

    @cached_property
    def _sorted(self) -> tuple[list[bytes], NDArray[np.intp]]:
        order = sorted((i for i, token in enumerate(self.tokens) if token), key=self.tokens.__getitem__)
        return [self.tokens[i] for i in order], np.array(order, dtype=np.intp)

    def with_prefix(self, prefix: bytes, low: int = 0, high: int | None = None) -> tuple[int, int]:
        """The range, in byte order, of the tokens that begin with `prefix`; `low`, `high` narrow the search."""
        texts, _ = self._sorted
        high = len(texts) if high is None else high
        if not prefix:
            return low, high
        start = bisect_left(texts, prefix, low, high)
        if set(prefix) == {0xFF}:
            return start, high
        after = prefix.rstrip(b"\xff")
        return start, bisect_left(texts, after[:-1] + bytes([after[-1] + 1]), start, high)

    def at(self, rank: int) -> bytes:
        """The token at a rank of the byte order."""
        return self._sorted[0][rank]

    def ids_at(self, low: int, high: int) -> NDArray[np.intp]:
        """The ids of a range of ranks."""
        return self._sorted[1][low:high]

    def starting_with(self, prefix: bytes) -> NDArray[np.intp]:
        """The ids of all tokens that begin with `prefix`."""
        return self.ids_at(*self.with_prefix(prefix))

    @cached_property
    def _endings(self) -> dict[bytes, NDArray[np.intp]]:
        return {}

    def endings(self, stop: bytes) -> NDArray[np.intp]:
        """The ids that end an output: those that begin with the stop, and the model's own end tokens."""
        if stop not in self._endings:
            begins = self.starting_with(stop) if stop else np.array([], dtype=np.intp)
            self._endings[stop] = np.union1d(begins, np.array(self.end_ids, dtype=np.intp))
        return self._endings[stop]


BYTES = Vocabulary([bytes([b]) for b in range(256)])
"""The vocabulary of single bytes, for constraints on models whose own tokens are unknown."""


def is_text(said: bytes) -> bool:
    """Whether bytes are whole characters."""
    try:
        said.decode()
    except UnicodeDecodeError:
        return False
    return True
