"""The vocabulary of a language model as byte strings, the only part of a model that constraints use."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]


class Vocabulary:
    """The exact bytes of every token id, and the ids of the model's own end tokens.

    Control tokens (end of text, chat markers) have empty bytes and are never text.
    """

    def __init__(self, tokens: Sequence[bytes], end_ids: Iterable[int] = ()) -> None:
        self.tokens = tuple(tokens)
        self.end_ids = tuple(sorted(end_ids))

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def ids(self) -> dict[bytes, int]:
        """The id of each byte string that is a token; the lowest one where several tokens have the same bytes."""
        ids: dict[bytes, int] = {}
        for i, token in enumerate(self.tokens):
            if token:
                ids.setdefault(token, i)
        return ids

    @cached_property
    def _equal(self) -> dict[bytes, tuple[int, ...]]:
        """The ids of each byte string that is a token."""
        equal: dict[bytes, tuple[int, ...]] = {token: (i,) for token, i in self.ids.items()}
        for i, token in enumerate(self.tokens):
            if token and self.ids[token] != i:
                equal[token] += (i,)
        return equal

    def ids_of(self, token: bytes) -> tuple[int, ...]:
        """Return the ids of the tokens with these bytes; none if there is no such token."""
        return self._equal.get(token, ())

    @cached_property
    def longest(self) -> int:
        """The number of bytes of the longest token."""
        return max(map(len, self.tokens), default=0)

    @cached_property
    def missing_bytes(self) -> frozenset[int]:
        """The bytes for which there is no single-byte token."""
        return frozenset(b for b in range(256) if bytes([b]) not in self.ids)

    @cached_property
    def is_text(self) -> Mask:
        """A mask of the tokens that are text rather than control tokens."""
        return np.array([bool(token) for token in self.tokens])

    @cached_property
    def is_utf8_part(self) -> Mask:
        """A mask of the tokens that are text and can be part of UTF-8 text: without the byte 0xFF."""
        return np.array([bool(token) and b"\xff" not in token for token in self.tokens])

    @cached_property
    def first_bytes(self) -> NDArray[np.uint8]:
        """The first byte of each token (0 for control tokens)."""
        return np.array([token[0] if token else 0 for token in self.tokens], dtype=np.uint8)

    @cached_property
    def _sorted(self) -> tuple[list[bytes], NDArray[np.intp]]:
        """The texts of all tokens in byte order, and their ids in the same order."""
        order = sorted((i for i, token in enumerate(self.tokens) if token), key=self.tokens.__getitem__)
        return [self.tokens[i] for i in order], np.array(order, dtype=np.intp)

    def with_prefix(self, prefix: bytes, low: int = 0, high: int | None = None) -> tuple[int, int]:
        """Return the range of ranks, in byte order, of the tokens that start with `prefix`, within [low, high)."""
        texts, _ = self._sorted
        high = len(texts) if high is None else high
        if not prefix:
            return low, high
        start = bisect_left(texts, prefix, low, high)
        if set(prefix) == {0xFF}:
            return start, high
        after = prefix.rstrip(b"\xff")
        return start, bisect_left(texts, after[:-1] + bytes([after[-1] + 1]), start, high)

    def after_equal(self, text: bytes, low: int, high: int) -> int:
        """Return the rank after the tokens that are equal to `text`, in a range of ranks that starts with them."""
        texts, _ = self._sorted
        while low < high and texts[low] == text:
            low += 1
        return low

    def proper_prefixes(self, last_bytes: Iterable[int]) -> list[bytes]:
        """Return the starts of tokens that end in one of these bytes, sorted; never a whole token."""
        class_of_bytes = b"".join(b"\\x%02x" % byte for byte in last_bytes)
        if not class_of_bytes:
            return []
        ends = re.compile(b"(?s)[" + class_of_bytes + b"](?=.)")
        return sorted({token[: found.end()] for token in self.tokens for found in ends.finditer(token)})

    def at(self, rank: int) -> bytes:
        """Return the bytes of the token at a rank of the byte order."""
        return self._sorted[0][rank]

    def ids_at(self, low: int, high: int) -> NDArray[np.intp]:
        """Return the token ids of a range of ranks of the byte order."""
        return self._sorted[1][low:high]

    def starting_with(self, prefix: bytes) -> NDArray[np.intp]:
        """Return the ids of all tokens that start with `prefix`."""
        return self.ids_at(*self.with_prefix(prefix))

    @cached_property
    def _endings(self) -> dict[bytes, NDArray[np.intp]]:
        return {}

    def endings(self, stop: bytes) -> NDArray[np.intp]:
        """Return the ids that end an output: tokens that start with `stop`, and the model's own end tokens."""
        if stop not in self._endings:
            stops = self.starting_with(stop) if stop else np.array([], dtype=np.intp)
            self._endings[stop] = np.union1d(stops, np.array(self.end_ids, dtype=np.intp))
        return self._endings[stop]


BYTES = Vocabulary([bytes([b]) for b in range(256)])
"""The vocabulary of the 256 single bytes, for models whose own vocabulary is unknown."""


def is_text(data: bytes) -> bool:
    """Return whether bytes are valid UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
