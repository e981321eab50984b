"""The guide "add a reranker": one file, an object for a parser."""

from pathlib import Path
from typing import Any

import pytest

from fewparse import Domain, Parser, Reranker
from support.letters_domain import make_letters
from support.toy_model import LongContextToyModel

FILE = '''\
"""Prefer outputs that mention the numbers of the utterance."""

import re

NUMBER = re.compile(r"\\d+")


class NumberReranker:
    """Counts the numbers of the utterance that an output does not mention."""

    def score(self, utterance: str, output: str) -> float:
        """Return 0 if all numbers are mentioned, and 2 less for each other one."""
        missing = set(NUMBER.findall(utterance)) - set(NUMBER.findall(output))
        return -2.0 * len(missing)
'''
USE = """\
from fewparse import Parser
from my_reranker import NumberReranker

parser = Parser.from_domain("./letters", reranker=NumberReranker())
"""


@pytest.fixture
def reranker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reranker:
    (tmp_path / "my_reranker.py").write_text(FILE)
    monkeypatch.syspath_prepend(tmp_path)
    from my_reranker import NumberReranker  # type: ignore[import-not-found]

    made: Reranker = NumberReranker()
    return made


def test_it_decides_between_candidates(reranker: Reranker) -> None:
    domain = Domain("levels", [("level one", "1")], 'start: "1" | "2" | "3"')
    model = LongContextToyModel()
    for number in ("1", "2", "3"):
        parser = Parser(domain, model, reranker=reranker, decoder="beam", width=3, rerank=10.0, retriever="all")
        assert parser.parse(f"set it to {number}").program == number


def test_the_use_is_valid(reranker: Reranker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_letters(tmp_path / "letters")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fewparse.parser.open_model", lambda *_: LongContextToyModel())
    used: dict[str, Any] = {}
    exec(USE, used)
    assert used["parser"].parse("12").program is not None
