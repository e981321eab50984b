"""BM25 over the words of the utterances."""

import re

import bm25s
import numpy as np

from fewparse.lm.usage import Usage
from fewparse.retrieve.retriever import Pool, Scores, by_score

WORD = re.compile(r"\w+(?:'\w+)?")


class Bm25Retriever:
    """Okapi BM25, computed by `bm25s`; function words count too."""

    compares_words = True

    def __init__(self, pool: Pool) -> None:
        self._index = bm25s.BM25()
        self._pool = [words(text) for text in pool.utterances]
        self._vocabulary = {word for text in self._pool for word in text}
        if self._vocabulary:
            self._index.index(self._pool, show_progress=False)

    def rank(self, utterance: str, usage: Usage) -> list[int]:
        """Rank by BM25 score; in the order of the pool if no word of the utterance occurs in it."""
        return by_score(self.scores(utterance, usage))

    def scores(self, utterance: str, usage: Usage) -> Scores:
        """Return the BM25 scores; 0 for all if no word of the utterance occurs in the pool."""
        query = [word for word in words(utterance) if word in self._vocabulary]
        return np.asarray(self._index.get_scores(query)) if query else np.zeros(len(self._pool))


def words(text: str) -> list[str]:
    """Return the words of a text, lower-cased, in order."""
    return WORD.findall(text.lower())
