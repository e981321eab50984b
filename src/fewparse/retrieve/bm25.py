"""BM25 over the words of the utterances."""

from collections.abc import Sequence

import bm25s
import numpy as np

from fewparse.lm.usage import Usage
from fewparse.retrieve.words import words


class Bm25:
    """Okapi BM25, as `bm25s` computes it; every word counts, function words too."""

    def __init__(self, pool: Sequence[str]) -> None:
        self._index = bm25s.BM25()
        self._pool = [words(text) for text in pool]
        self._known = {word for text in self._pool for word in text}
        if self._known:
            self._index.index(self._pool, show_progress=False)

    def rank(self, utterance: str, usage: Usage) -> list[int]:
        """By score; an utterance of unknown words leaves the pool as it is."""
        query = [word for word in words(utterance) if word in self._known]
        if not query:
            return list(range(len(self._pool)))
        scores = np.asarray(self._index.get_scores(query))
        return [int(i) for i in np.argsort(-scores, kind="stable")]
