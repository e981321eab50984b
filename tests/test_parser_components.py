"""A parser with a retriever, constraint or reranker object of the caller."""

import math
from pathlib import Path

import pytest

from fewparse import Parser
from fewparse.constrain.trie import Trie
from fewparse.errors import UsageError
from fewparse.lm.usage import Usage
from support.letters_domain import make_letters
from support.toy_model import LongContextToyModel


class ReversedRetriever:
    """Ranks the pool in reverse order."""

    def __init__(self, count: int) -> None:
        self._count = count

    def rank(self, utterance: str, usage: Usage) -> list[int]:
        return list(reversed(range(self._count)))


class LengthReranker:
    """Scores outputs by their length."""

    def score(self, utterance: str, output: str) -> float:
        return 100.0 * len(output)


def test_a_retriever_object_chooses_the_examples(tmp_path: Path) -> None:
    domain = make_letters(tmp_path)
    parser = Parser.from_domain(domain, LongContextToyModel(), retriever=ReversedRetriever(len(domain.examples)))
    assert [example.utterance for example in parser.parse("one").examples] == ["three", "two"]


@pytest.mark.parametrize("prompt", ["lisp", "canonical"])
def test_a_constraint_object_applies_to_the_outputs_without_the_lead(tmp_path: Path, prompt: str) -> None:
    model = LongContextToyModel()
    constraint = Trie(["bab", "cab"], model.vocabulary)
    parser = Parser.from_domain(
        make_letters(tmp_path), model, constraint=constraint, prompt=prompt, decoder="beam"
    )
    assert {candidate.text for candidate in parser.parse("one").candidates} == {"bab", "cab"}


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_a_reranker_must_return_numbers(tmp_path: Path, wrong: float) -> None:
    class WrongReranker:
        def score(self, utterance: str, output: str) -> float:
            return wrong

    parser = Parser.from_domain(make_letters(tmp_path), LongContextToyModel(), reranker=WrongReranker())
    with pytest.raises(UsageError, match="the reranker returned a score"):
        parser.parse("letters")


def test_a_reranker_object_orders_the_candidates(tmp_path: Path) -> None:
    parser = Parser.from_domain(
        make_letters(tmp_path), LongContextToyModel(), reranker=LengthReranker(), decoder="beam", width=4
    )
    lengths = [len(candidate.text) for candidate in parser.parse("one").candidates]
    assert lengths == sorted(lengths, reverse=True)
    assert len(set(lengths)) > 1


def test_a_name_selects_a_bundled_component(tmp_path: Path) -> None:
    make_letters(tmp_path)
    parser = Parser.from_domain(tmp_path, LongContextToyModel(), retriever="all", constraint="none")
    assert parser.options.retriever == "all"
    assert parser.domain.table.constraint.kind == "none"


def test_options_for_loading_are_rejected_for_a_loaded_domain(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="`pool` cannot be set for a domain that is already loaded"):
        Parser.from_domain(make_letters(tmp_path), LongContextToyModel(), pool=1)
