"""The guide "add a model": one file, one line in the table."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fewparse import LanguageModel, Parser, open_model
from fewparse.lm.load import MODEL_KINDS
from fewparse.testing import MODEL_LAWS
from support.letters_domain import make_letters

FILE = '''\
"""A bigram model over bytes: the probability of a byte depends on the byte before it."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fewparse import UsageError, Vocabulary
from fewparse.lm.evaluator import TokenIds, WholeSequences
from fewparse.lm.load import ModelSettings, model_kind
from fewparse.lm.local import LocalModel

END = 256


class Bytes:
    """The tokenizer: every byte is a token."""

    begin_token = ord("\\n")

    def tokenize(self, text: str, special: bool, begin: bool) -> list[int]:
        """Return the bytes of the text."""
        return list(text.encode())


class Bigrams:
    """The counts of byte pairs in a text, smoothed."""

    context_length = 8192

    def __init__(self, text: bytes) -> None:
        counts = np.full((END + 1, END + 1), 0.01, dtype=np.float32)
        np.add.at(counts, (list(text[:-1]), list(text[1:])), 1)
        self._logits = np.log(counts)

    def evaluate_whole(self, sequences: Sequence[TokenIds], positions: Sequence[int]) -> NDArray[np.float32]:
        """Return the logits after these positions of each sequence."""
        last = [[sequence[min(i, len(sequence) - 1)] for i in positions] for sequence in sequences]
        return self._logits[np.array(last)]


class BigramModel(LocalModel):
    """The model of a text file."""

    def __init__(self, path: Path) -> None:
        vocabulary = Vocabulary([*(bytes([i]) for i in range(END)), b""], end_ids=[END])
        super().__init__(f"bigram:{path}", vocabulary, Bytes(), WholeSequences(Bigrams(path.read_bytes())))


@model_kind(argument="PATH")
def open_bigram(path: str, settings: ModelSettings) -> BigramModel:
    """Count the byte pairs of a text file."""
    if not Path(path).is_file():
        raise UsageError(f"there is no file {path!r}", "Name a text file: --model bigram:PATH")
    return BigramModel(Path(path))
'''
LINE = {"bigram": "my_model:open_bigram"}


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LanguageModel]:
    (tmp_path / "my_model.py").write_text(FILE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(MODEL_KINDS, "bundled", MODEL_KINDS.bundled | LINE)
    text = tmp_path / "text.txt"
    text.write_text("three, four, banana, orange\none, two, abc, abbc, ac\n" * 3)
    opened = open_model(f"bigram:{text}")
    yield opened
    opened.close()


@pytest.mark.parametrize("law", MODEL_LAWS, ids=lambda law: law.__name__)
def test_it_keeps_the_laws(model: LanguageModel, law: Callable[[LanguageModel], None]) -> None:
    law(model)


def test_a_parser_can_name_it(model: LanguageModel, tmp_path: Path) -> None:
    make_letters(tmp_path / "letters")
    parse = Parser.from_domain(tmp_path / "letters", model.name, decoder="beam", width=3).parse("one")
    assert parse.program is not None
    assert parse.model == model.name
