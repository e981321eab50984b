"""The laws of a retriever."""

from collections.abc import Callable

from fewparse.lm.model import LanguageModel
from fewparse.lm.usage import Usage
from fewparse.retrieve.retriever import Pool, Retriever

UTTERANCES = (
    "turn on the lamp",
    "is the radio on",
    "close the blinds at night",
    "what time is it in Oslo",
    "write down: buy milk",
    "turn on the lamp",
)
QUERIES = ("lamp off please", "zyxwv qqq", "…?!", "Öl für 中文")
UNUSUAL = ("", " ", "\n", "é" * 20, "(a b)", "'", "zero\x00byte", "日本語")

Build = Callable[[Pool], Retriever]


def ranking_is_a_permutation(build: Build, model: LanguageModel) -> None:
    """A ranking contains every index of the pool once, for any utterance."""
    for utterances in (UTTERANCES, UNUSUAL):
        retriever = build(Pool(utterances, model))
        for query in (*QUERIES, *filter(str.strip, UNUSUAL)):
            ranking = retriever.rank(query, Usage())
            assert sorted(ranking) == list(range(len(utterances))), query
            assert all(isinstance(i, int) for i in ranking)


def ranking_is_deterministic(build: Build, model: LanguageModel) -> None:
    """Two retrievers over the same pool give the same ranking."""
    for query in QUERIES:
        first = build(Pool(UTTERANCES, model)).rank(query, Usage())
        assert build(Pool(UTTERANCES, model)).rank(query, Usage()) == first, query


def empty_pool_ranks_nothing(build: Build, model: LanguageModel) -> None:
    """The ranking of an empty pool is empty."""
    assert build(Pool((), model)).rank("anything", Usage()) == []


RETRIEVER_LAWS: tuple[Callable[[Build, LanguageModel], None], ...] = (
    ranking_is_a_permutation,
    ranking_is_deterministic,
    empty_pool_ranks_nothing,
)
"""Each takes a function that builds the retriever (its class, or its entry in the table) and a language model."""
