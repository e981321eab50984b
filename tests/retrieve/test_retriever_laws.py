"""The laws of a retriever for every retriever of the table, and the ranking of each."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewparse.errors import UnknownName
from fewparse.lm.embedded import EmbeddedModel
from fewparse.lm.usage import Usage
from fewparse.retrieve.retriever import RETRIEVERS, Pool, Retriever, open_retriever
from fewparse.testing import RETRIEVER_LAWS
from support.prompts import plain_prompt
from support.toy_model import ToyModel

POOL = [
    "turn on the lamp",
    "is the radio on",
    "close the blinds at night",
    "what time is it in Oslo",
    "write down: buy milk",
    "turn on the lamp",
]


@pytest.fixture(autouse=True)
def _nothing_stored(isolated_cache: Path) -> None:
    """No similarity of an earlier test or run is found."""


def opened(name: str, pool: list[str], model: EmbeddedModel | ToyModel, seed: int = 0) -> Retriever:
    return open_retriever(name, Pool(pool, model, seed))


@pytest.mark.parametrize("name", RETRIEVERS.names)
@pytest.mark.parametrize("law", RETRIEVER_LAWS, ids=lambda law: law.__name__)
def test_law(model: EmbeddedModel, name: str, law: Callable[..., None]) -> None:
    law(RETRIEVERS[name], model)


@settings(max_examples=30)
@given(
    pool=st.lists(st.text(max_size=20), max_size=8),
    utterance=st.text(min_size=1, max_size=20),
    name=st.sampled_from(RETRIEVERS.names),
)
def test_any_text_can_be_in_a_pool_and_a_query(pool: list[str], utterance: str, name: str) -> None:
    ranking = opened(name, pool, ToyModel()).rank(utterance, Usage())
    assert sorted(ranking) == list(range(len(pool)))
    assert all(isinstance(i, int) for i in ranking)


@pytest.mark.parametrize("name", ["embedding", "bm25", "lm", "all"])
def test_ties_are_ranked_by_index(name: str) -> None:
    assert opened(name, ["same words"] * 5, ToyModel()).rank("same words", Usage()) == [0, 1, 2, 3, 4]
    ranking = opened(name, POOL, ToyModel()).rank("the radio", Usage())
    assert ranking.index(0) < ranking.index(5)


@pytest.mark.parametrize("name", ["embedding", "bm25", "lm"])
def test_an_utterance_of_the_pool_is_ranked_first_for_itself(model: EmbeddedModel, name: str) -> None:
    retriever = opened(name, POOL, model)
    for i, utterance in enumerate(POOL[:5]):
        assert retriever.rank(utterance, Usage())[0] == i


def test_bm25_ranks_by_common_words() -> None:
    assert opened("bm25", POOL, ToyModel()).rank("OSLO", Usage())[0] == 3
    assert opened("bm25", POOL, ToyModel()).rank("unknown words only", Usage()) == [0, 1, 2, 3, 4, 5]


def test_embeddings_rank_by_similar_meaning() -> None:
    assert opened("embedding", POOL, ToyModel()).rank("shut the curtains this evening", Usage())[0] == 2


def test_the_lm_retriever_scores_the_utterance_as_item_two_of_a_list(model: EmbeddedModel) -> None:
    utterance = "is the lamp on"
    pool = POOL[:3]
    expected = []
    for text in pool:
        prompt = plain_prompt(f"1. {text}\n2.")
        expected.append(sum(model.score(prompt, [()], [model.tokenize(f" {utterance}")], Usage())[0]))
    usage = Usage()
    best = opened("lm", pool, model).rank(utterance, usage)[0]
    assert expected[best] == pytest.approx(max(expected), abs=1.0)
    assert usage.requests == len(pool)


def test_only_the_lm_retriever_calls_the_model(model: EmbeddedModel) -> None:
    for name in set(RETRIEVERS) - {"lm"}:
        usage = Usage()
        opened(name, POOL, model).rank("lamp", usage)
        assert usage == Usage()


def test_random_depends_on_seed_and_utterance_and_all_keeps_the_order_of_the_pool() -> None:
    pool = [str(i) for i in range(30)]
    ranking = opened("random", pool, ToyModel(), seed=1).rank("lamp", Usage())
    assert opened("random", pool, ToyModel(), seed=2).rank("lamp", Usage()) != ranking
    assert opened("random", pool, ToyModel(), seed=1).rank("radio", Usage()) != ranking
    assert opened("all", pool, ToyModel(), seed=1).rank("lamp", Usage()) == list(range(30))


def test_an_unknown_retriever_is_reported_with_a_suggestion() -> None:
    with pytest.raises(UnknownName) as caught:
        opened("bm26", POOL, ToyModel())
    assert caught.value.hint == "Did you mean bm25?"
