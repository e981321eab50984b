r"""The paper's similarity: the language model's log-probability of the utterance after a training utterance.

score(t, u) = log p(" " + u | "1. " + t + "\n2."): the new utterance is item 2 of a list whose item 1 is the
training utterance. One sequence is scored per example of the pool, so the cost grows with the pool.
"""

import numpy as np

from fewparse.errors import ModelError
from fewparse.lm.usage import Usage
from fewparse.prompt import Part, Prompt
from fewparse.retrieve.retriever import Pool

LIST = Prompt((Part("1.", False),))


class LmRetriever:
    """Ranks by the model's log-probability of the utterance."""

    def __init__(self, pool: Pool) -> None:
        self._model = pool.model
        self._first_items = [self._model.tokenize(f" {text}\n2.") for text in pool.utterances]

    def rank(self, utterance: str, usage: Usage) -> list[int]:
        """Rank by unnormalised log-probability; the two items are tokenised separately."""
        second = self._model.tokenize(f" {utterance}")
        if not self._first_items:
            return []
        pairs = [(*first, *second) for first in self._first_items]
        scores = self._model.score(LIST, [()] * len(pairs), pairs, usage)
        sums = [-sum(logprobs[len(logprobs) - len(second) :]) for logprobs in scores]
        if np.isnan(sums).any():
            raise ModelError(f"{self._model.name} returned log-probabilities that are not numbers")
        return [int(i) for i in np.argsort(sums, kind="stable")]
