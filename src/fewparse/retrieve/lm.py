r"""The paper's similarity: the language model's log-probability of the utterance after a training utterance.

score(t, u) = log p(" " + u | "1. " + t + "\n2."): the new utterance is item 2 of a list whose item 1 is the
training utterance. One pair is scored per example of the pool, so the cost grows with the pool. Scores are stored
(`similarity_store.py`). Many utterances together cost less than one by one: what they have in common is evaluated
once for each training utterance.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fewparse.errors import ModelError, UsageError
from fewparse.lm.load import NamedModel
from fewparse.lm.model import LanguageModel, Prefix, total_logprobs
from fewparse.lm.usage import Usage
from fewparse.prompt import Part, Prompt
from fewparse.retrieve.retriever import Pool
from fewparse.retrieve.similarity_store import Scores, SimilarityStore

if TYPE_CHECKING:
    from fewparse.lm.http.load import RemoteSettings

LIST = Prompt((Part("1.", False),))
UTTERANCES_PER_BLOCK = 32
"""How many utterances `prepare` scores together before it stores them: what an interruption can lose."""
PAIRS_PER_QUERY = 512

Progress = Callable[[int, int], None]
"""Called with the number of pairs scored and the number of all pairs to score."""


class LmRetriever:
    """Ranks by the model's log-probability of the utterance; the model is used only for scores not stored."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._store = SimilarityStore(pool.model_identity, pool.utterances)

    def rank(self, utterance: str, usage: Usage) -> list[int]:
        """Rank by unnormalised log-probability; the two items are tokenised separately."""
        if not self._pool.utterances:
            return []
        scores = self._store.get(utterance)
        if scores is None:
            (scores,) = self._compute([utterance], usage, lambda pairs: None)
            self._store.put(utterance, scores)
        return [int(i) for i in np.argsort(-scores, kind="stable")]

    def prepare(
        self, utterances: Iterable[str], usage: Usage, progress: Progress = lambda done, total: None
    ) -> None:
        """Compute and store the scores of utterances that are not stored, so that `rank` needs no model.

        What is finished is stored: an interrupted preparation continues. Without a store, nothing is done.
        """
        if not self._store.working or not self._pool.utterances:
            return
        missing = sorted(u for u in set(utterances) if self._store.get(u) is None)
        done, total = 0, len(missing) * len(self._pool.utterances)

        def advance(pairs: int) -> None:
            nonlocal done
            done += pairs
            progress(done, total)

        for start in range(0, len(missing), UTTERANCES_PER_BLOCK):
            block = missing[start : start + UTTERANCES_PER_BLOCK]
            for utterance, scores in zip(block, self._compute(block, usage, advance), strict=True):
                self._store.put(utterance, scores)

    def _compute(self, utterances: Sequence[str], usage: Usage, advance: Callable[[int], None]) -> Scores:
        """Return the scores of each utterance with each one of the pool, and call `advance` for every query."""
        model = self._pool.model
        seconds = [model.tokenize(f" {text}") for text in utterances]
        scores = np.empty((len(utterances), len(self._first_items)))
        step = max(1, PAIRS_PER_QUERY // len(utterances))
        for start in range(0, len(self._first_items), step):
            pairs = [(first, second) for first in self._first_items[start : start + step] for second in seconds]
            prefixes, continuations = [first for first, _ in pairs], [second for _, second in pairs]
            totals = total_logprobs(model, LIST, prefixes, continuations, usage)
            scores[:, start : start + step] = np.reshape(totals, (-1, len(utterances))).T
            advance(len(pairs))
        if np.isnan(scores).any():
            raise ModelError(f"{model.name} returned log-probabilities that are not numbers")
        return scores

    @cached_property
    def _first_items(self) -> list[Prefix]:
        return [self._pool.model.tokenize(f" {text}\n2.") for text in self._pool.utterances]


def prepare_similarity(
    pool: Sequence[str],
    model: str | LanguageModel,
    utterances: Iterable[str],
    usage: Usage | None = None,
    progress: Progress = lambda done, total: None,
    remote: "RemoteSettings | None" = None,
) -> None:
    """Store the similarity of utterances to a pool, so that the retriever `lm` with this model need not open it.

    A model given by name is opened only if something is missing, and closed before this returns. Raises
    `UsageError` if nothing can be stored, because the identity of the model is unknown.
    """
    source = NamedModel(model, remote=remote) if isinstance(model, str) else model
    given = Pool(pool, source)
    try:
        if given.model_identity is None:
            raise UsageError(
                f"similarities by {source.name} cannot be stored: what its results depend on is unknown",
                "Use the embedded model, a GGUF file in one part, or a named model of a server.",
            )
        LmRetriever(given).prepare(utterances, usage or Usage(), progress)
    finally:
        if isinstance(source, NamedModel):
            source.close()
