r"""The paper's own similarity: how likely the language model finds the utterance beside a training one.

score(t, u) = log p(" " + u | "1. " + t + "\n2."): the new utterance as item 2 of a list whose item 1 is the
training utterance. One scored pair an example of the pool, so it is dear where the model is.
"""

from collections.abc import Sequence

import numpy as np

from fewparse.lm.model import LanguageModel
from fewparse.lm.usage import Usage
from fewparse.prompt import Part, Prompt

LIST = Prompt((Part("1.", False),))


class Likelihood:
    """Ranks by the model's log-probability of the utterance."""

    def __init__(self, pool: Sequence[str], model: LanguageModel) -> None:
        self._model = model
        self._first_items = [model.tokenize(f" {text}\n2.") for text in pool]

    def rank(self, utterance: str, usage: Usage) -> list[int]:
        """By unnormalised log-probability; the two items are tokenised apart."""
        second = self._model.tokenize(f" {utterance}")
        if not self._first_items:
            return []
        pairs = [(*first, *second) for first in self._first_items]
        scores = self._model.score(LIST, [()] * len(pairs), pairs, usage)
        sums = [-sum(logprobs[len(logprobs) - len(second) :]) for logprobs in scores]
        return [int(i) for i in np.argsort(sums, kind="stable")]
