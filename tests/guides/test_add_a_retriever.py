"""The guide "add a retriever": one file, one line in the table."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fewparse import Parser
from fewparse.retrieve.retriever import RETRIEVERS
from fewparse.testing import RETRIEVER_LAWS
from support.cli_runner import fewparse
from support.letters_domain import make_letters
from support.toy_model import LongContextToyModel, ToyModel

FILE = '''\
"""Retrieve the examples whose utterances have the most similar length."""

from fewparse.lm.usage import Usage
from fewparse.retrieve.retriever import Pool


class LengthRetriever:
    """Ranks by the difference of lengths."""

    def __init__(self, pool: Pool) -> None:
        self._lengths = [len(utterance) for utterance in pool.utterances]

    def rank(self, utterance: str, usage: Usage) -> list[int]:
        """Return all indices, the most similar length first."""
        return sorted(range(len(self._lengths)), key=lambda i: abs(self._lengths[i] - len(utterance)))
'''
LINE = {"length": "my_retriever:LengthRetriever"}


@pytest.fixture(autouse=True)
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_retriever.py").write_text(FILE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(RETRIEVERS, "bundled", RETRIEVERS.bundled | LINE)


@pytest.mark.parametrize("law", RETRIEVER_LAWS, ids=lambda law: law.__name__)
def test_it_keeps_the_laws(law: Callable[..., None]) -> None:
    law(RETRIEVERS["length"], ToyModel())


def test_a_domain_and_a_parser_can_name_it(tmp_path: Path) -> None:

    folder = tmp_path / "letters"
    make_letters(folder)
    settings = folder / "domain.toml"
    settings.write_text(settings.read_text().replace('"bm25"', '"length"'))
    parser = Parser.from_domain(folder, LongContextToyModel())
    assert [example.utterance for example in parser.parse("three").examples] == ["three", "one"]


def test_the_help_names_the_bundled_ones() -> None:
    assert "embedding | bm25 | lm | random | all" in fewparse("parse", "--help").out
