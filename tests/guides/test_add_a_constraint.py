"""The guide "add a constraint": one file, one line in the table."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fewparse import Parser, load_domain
from fewparse.domains.constraints import CONSTRAINT_KINDS
from fewparse.errors import DomainError
from fewparse.testing import CONSTRAINT_LAWS
from fewparse.vocabulary import BYTES
from support.letters_domain import make_letters
from support.toy_model import LongContextToyModel

FILE = '''\
"""A constraint to a fixed number of letters."""

from fewparse.constrain.state import Constraint
from fewparse.constrain.trie import Trie
from fewparse.domains.constraints import ConstraintKind
from fewparse.domains.schema import ConstraintTable
from fewparse.example import Target
from fewparse.prompt import Template
from fewparse.vocabulary import Vocabulary


class LettersTable(ConstraintTable):
    """[constraint] with kind = "letters"."""

    letters: str = "ab"


class LettersConstraint(ConstraintKind):
    """All strings of two of the letters."""

    table = LettersTable
    settings: LettersTable

    def build(self, vocabulary: Vocabulary, target: Target, utterance: str, template: Template) -> Constraint:
        """Return the strings as a trie."""
        letters = self.settings.letters
        return Trie((template.with_lead(a + b) for a in letters for b in letters), vocabulary)
'''
LINE = {"letters": "my_constraint:LettersConstraint"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "my_constraint.py").write_text(FILE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(CONSTRAINT_KINDS, "bundled", CONSTRAINT_KINDS.bundled | LINE)
    domain = tmp_path / "letters"
    make_letters(domain)
    settings = domain / "domain.toml"
    settings.write_text(
        settings.read_text().replace('grammar = "grammar.lark"', 'kind = "letters"\nletters = "xyz"')
    )
    return domain


@pytest.mark.parametrize("law", CONSTRAINT_LAWS, ids=lambda law: law.__name__)
def test_it_keeps_the_laws(folder: Path, law: Callable[..., None]) -> None:
    law(load_domain(folder).constraint(BYTES, "program"))


def test_a_domain_can_name_it_with_settings_of_its_own(folder: Path) -> None:
    parse = Parser.from_domain(folder, LongContextToyModel(), decoder="beam", width=9).parse("one")
    assert {candidate.text for candidate in parse.candidates} <= {a + b for a in "xyz" for b in "xyz"}
    assert parse.program is not None


def test_a_mistake_in_its_settings_is_shown_at_its_line(folder: Path) -> None:
    settings = folder / "domain.toml"
    settings.write_text(settings.read_text().replace("letters = ", "leters = "))
    with pytest.raises(DomainError) as caught:
        load_domain(folder)
    assert "domain.toml:7: unknown key `constraint.leters`" in caught.value.message
    assert caught.value.hint == "Did you mean letters?"
