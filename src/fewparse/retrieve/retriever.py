"""The retriever protocol, the table of retrievers, and the order of retrieved examples in the prompt."""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Literal, Protocol, TypeVar, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fewparse.arguments import refuse
from fewparse.lm.load import NamedModel, model_identity
from fewparse.lm.model import LanguageModel
from fewparse.lm.usage import Usage
from fewparse.registry import Registry

Order = Literal["best-last", "best-first", "shuffled"]
ORDERS: tuple[Order, ...] = get_args(Order)
T = TypeVar("T")
Scores = NDArray[np.floating[Any]]


class Retriever(Protocol):
    """Ranks a fixed pool of utterances by their similarity to a new one."""

    def rank(self, utterance: str, usage: Usage) -> list[int]:
        """Return the indices of the whole pool, most similar first, ties by index.

        Calls of a language model are counted in `usage`.
        """


@runtime_checkable
class ScoringRetriever(Retriever, Protocol):
    """A retriever whose ranking is by a score."""

    def scores(self, utterance: str, usage: Usage) -> Scores | None:
        """Return the similarity of each utterance of the pool, larger if it is more similar; None if unknown."""


def by_score(scores: Scores) -> list[int]:
    """Return the indices of scores, best first, ties by index."""
    found: list[int] = np.argsort(-scores, kind="stable").tolist()
    return found


@dataclass(frozen=True)
class Pool:
    """The input of a retriever: the utterances to rank, the language model and the random seed.

    `source` is a model, or the name of one: it is opened when a retriever first uses `model`.
    """

    utterances: Sequence[str]
    source: LanguageModel | NamedModel
    seed: int = 0

    @property
    def model(self) -> LanguageModel:
        """The language model."""
        return self.source.open() if isinstance(self.source, NamedModel) else self.source

    @property
    def model_identity(self) -> str | None:
        """What the results of the model depend on, or None if that is unknown; the model is not opened."""
        return self.source.identity if isinstance(self.source, NamedModel) else model_identity(self.source)


RETRIEVERS: Registry[Callable[[Pool], Retriever]] = Registry(
    "retriever",
    {
        "embedding": "fewparse.retrieve.embedding:EmbeddingRetriever",
        "bm25": "fewparse.retrieve.bm25:Bm25Retriever",
        "lm": "fewparse.retrieve.lm:LmRetriever",
        "random": "fewparse.retrieve.baselines:RandomRetriever",
        "all": "fewparse.retrieve.baselines:PoolOrder",
    },
    group="fewparse.retrievers",
)


def open_retriever(name: str, pool: Pool, fold: Callable[[str], str] | None = None) -> Retriever:
    """Build the retriever of that name over a pool.

    `fold` replaces names of one kind by one word; it applies to retrievers that compare words (those with a true
    class attribute `compares_words`).
    """
    build = RETRIEVERS[name]
    if fold is None or not getattr(build, "compares_words", False):
        return build(pool)
    from fewparse.retrieve.folding import FoldedRetriever

    folded = replace(pool, utterances=[fold(text) for text in pool.utterances])
    return FoldedRetriever(build(folded), fold)


def check_ranking(ranking: Any, count: int) -> list[int]:
    """Return the ranking of a pool with so many utterances; raise `UsageError` if it is not one."""
    indices: list[Any] = list(ranking) if isinstance(ranking, Iterable) else [None]
    if not all(isinstance(i, Integral) and 0 <= int(i) < count for i in indices):
        refuse("the ranking of the retriever", ranking, f"a list of indices from 0 to {count - 1}, best first")
    return indices


def ordered(best_first: Sequence[T], order: Order, seed: int) -> list[T]:
    """Put ranked examples into the order of the prompt; the shuffle depends on the seed and their number."""
    match order:
        case "best-first":
            return list(best_first)
        case "best-last":
            return list(reversed(best_first))
        case "shuffled":
            shuffled = list(best_first)
            random.Random(seed).shuffle(shuffled)
            return shuffled


def fit(best_first: Sequence[T], fits: Callable[[Sequence[T]], bool]) -> list[T]:
    """Return as many of the best examples as fit, by binary search; the least similar are dropped first."""
    if fits(best_first):
        return list(best_first)
    low, high = 0, len(best_first) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if fits(best_first[:middle]):
            low = middle
        else:
            high = middle - 1
    return list(best_first[:low])
