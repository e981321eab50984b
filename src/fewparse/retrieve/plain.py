"""Retrievers that do not look at the utterance: baselines, and the fixed prompt that a KV cache loves."""

import hashlib
import random
from collections.abc import Sequence

from fewparse.lm.usage import Usage


class All:
    """The pool in its own order: every prompt begins alike, so that a cache evaluates the examples once."""

    def __init__(self, pool: Sequence[str]) -> None:
        self._count = len(pool)

    def rank(self, utterance: str, usage: Usage) -> list[int]:
        """First come, first served."""
        return list(range(self._count))


class Random:
    """A shuffle that depends on nothing but the seed and the utterance."""

    def __init__(self, pool: Sequence[str], seed: int) -> None:
        self._count = len(pool)
        self._seed = seed

    def rank(self, utterance: str, usage: Usage) -> list[int]:
        """The same for the same utterance, on every machine."""
        digest = hashlib.sha256(f"{self._seed}\n{utterance}".encode()).digest()
        order = list(range(self._count))
        random.Random(digest).shuffle(order)
        return order
