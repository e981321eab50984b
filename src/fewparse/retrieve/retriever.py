"""The protocol of a retriever, and opening one by name."""

from collections.abc import Callable, Sequence
from typing import Protocol

from fewparse.errors import UnknownName
from fewparse.lm.model import LanguageModel
from fewparse.lm.usage import Usage

RETRIEVERS = ("embedding", "bm25", "lm", "random", "all")


class Retriever(Protocol):
    """Ranks a fixed pool of utterances by their use as examples for a new one."""

    def rank(self, utterance: str, usage: Usage) -> list[int]:
        """The indices of the whole pool, most similar first, ties by index."""


def open_retriever(
    name: str, pool: Sequence[str], model: LanguageModel, seed: int, fold: Callable[[str], str] | None = None
) -> Retriever:
    """The retriever of that name over a pool; what it needs is imported only now.

    Those that compare words compare folded ones where `fold` is given.
    """
    if fold is not None and name in ("bm25", "embedding"):
        from fewparse.retrieve.folding import Folded

        return Folded(open_retriever(name, [fold(text) for text in pool], model, seed), fold)
    match name:
        case "bm25":
            from fewparse.retrieve.bm25 import Bm25

            return Bm25(pool)
        case "embedding":
            from fewparse.retrieve.embedding import Embedding, WordVectors

            return Embedding(pool, WordVectors())
        case "lm":
            from fewparse.retrieve.likelihood import Likelihood

            return Likelihood(pool, model)
        case "random" | "all":
            from fewparse.retrieve.plain import All, Random

            return All(pool) if name == "all" else Random(pool, seed)
    raise UnknownName("retriever", name, RETRIEVERS)
