"""BM25 over the words of the utterances."""

import re
from collections.abc import Sequence

import bm25s
import numpy as np

from fewparse.lm.usage import Usage
from fewparse.retrieve.index_cache import Arrays, stored_arrays
from fewparse.retrieve.retriever import Pool, Scores, by_score

SCORES = ("data", "indices", "indptr")
ARRAYS = ("words", *SCORES)
WORD = re.compile(r"\w+(?:'\w+)?")


class Bm25Retriever:
    """Okapi BM25, computed by `bm25s`; function words count too."""

    compares_words = True

    def __init__(self, pool: Pool) -> None:
        self._size = len(pool.utterances)
        self._index = bm25s.BM25()
        arrays = stored_arrays(
            f"bm25 {bm25s.__version__}", pool.utterances, ARRAYS, lambda: indexed(pool.utterances)
        )
        self._index.vocab_dict = {word: i for i, word in enumerate(arrays["words"].tobytes().decode().split())}
        self._index.nonoccurrence_array = None  # other variants of BM25 have one
        self._index.scores = {**{name: arrays[name] for name in SCORES}, "num_docs": self._size}

    def rank(self, utterance: str, usage: Usage) -> list[int]:
        """Rank by BM25 score; in the order of the pool if no word of the utterance occurs in it."""
        return by_score(self.scores(utterance, usage))

    def scores(self, utterance: str, usage: Usage) -> Scores:
        """Return the BM25 scores; 0 for all if no word of the utterance occurs in the pool."""
        query = [word for word in words(utterance) if word in self._index.vocab_dict]
        return np.asarray(self._index.get_scores(query)) if query else np.zeros(self._size)


def indexed(utterances: Sequence[str]) -> Arrays:
    """Return the words by their numbers, and the sparse matrix of the scores of words in utterances."""
    index = bm25s.BM25()
    split = [words(text) for text in utterances]
    if any(split):
        index.index(split, show_progress=False)
    else:
        index.vocab_dict, index.scores = {}, dict.fromkeys(SCORES, np.zeros(0))
    by_number = sorted(index.vocab_dict, key=index.vocab_dict.__getitem__)  # the last one is empty: bm25s adds it
    return {
        "words": np.frombuffer(" ".join(by_number).encode(), np.uint8),
        **{name: index.scores[name] for name in SCORES},
    }


def words(text: str) -> list[str]:
    """Return the words of a text, lower-cased, in order."""
    return WORD.findall(text.lower())
