"""Retrievers that ignore the utterance: a random baseline, and the fixed order that a KV cache can reuse."""

import hashlib
import random

from fewparse.lm.usage import Usage
from fewparse.retrieve.retriever import Pool


class PoolOrder:
    """The pool in its own order: all prompts share their examples, which a KV cache evaluates once."""

    def __init__(self, pool: Pool) -> None:
        self._count = len(pool.utterances)

    def rank(self, utterance: str, usage: Usage) -> list[int]:
        """Return the indices in order."""
        return list(range(self._count))


class RandomRetriever:
    """A shuffle that depends on the seed and the utterance only."""

    def __init__(self, pool: Pool) -> None:
        self._count = len(pool.utterances)
        self._seed = pool.seed

    def rank(self, utterance: str, usage: Usage) -> list[int]:
        """Return a permutation: the same for the same utterance and seed on every machine."""
        digest = hashlib.sha256(f"{self._seed}\n{utterance}".encode()).digest()
        order = list(range(self._count))
        random.Random(digest).shuffle(order)
        return order
