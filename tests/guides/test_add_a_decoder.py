"""The guide "add a decoder": one file, one line in the table."""

from pathlib import Path

import pytest

from fewparse import Parser
from fewparse.search.decoder import DECODERS
from support.letters_domain import make_letters
from support.toy_model import LongContextToyModel

FILE = '''\
"""Best-first search: always extend the hypothesis with the best score."""

from collections.abc import Sequence

from fewparse.search.context import SearchContext
from fewparse.search.decoder import Decoder
from fewparse.search.hypothesis import Hypothesis, ranked


def best_first_search(context: SearchContext, start: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Return the first finished hypothesis, or the best one at the length limit."""
    frontier = list(start)
    while True:
        best, *rest = ranked(frontier)
        if best.finished or len(best.tokens) >= context.settings.max_tokens:
            return [best]
        (answer,) = context.best_allowed([best], context.settings.width)
        frontier = rest + best.successors(answer, context.settings.width)


BEST_FIRST = Decoder(best_first_search)
'''
LINE = {"best-first": "my_decoder:BEST_FIRST"}


@pytest.fixture(autouse=True)
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_decoder.py").write_text(FILE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(DECODERS, "bundled", DECODERS.bundled | LINE)


def test_a_domain_and_a_parser_can_name_it(tmp_path: Path) -> None:
    folder = tmp_path / "letters"
    domain = make_letters(folder)
    settings = folder / "domain.toml"
    settings.write_text(settings.read_text().replace('"greedy"', '"best-first"'))
    parser = Parser.from_domain(folder, LongContextToyModel())
    assert parser.options.describe() == "best-first 5"
    found = parser.parse("one")
    wide = Parser.from_domain(domain, LongContextToyModel(), decoder="beam", width=20).parse("one")
    assert found.program in {candidate.program for candidate in wide.candidates}
