"""A new domain folder is a copy of the starter with another name."""

from pathlib import Path

import pytest

from fewparse.cli.domain import make_domain
from fewparse.domains.load import load_domain
from fewparse.errors import UsageError


def test_a_new_domain_is_the_starter_under_its_own_name(tmp_path: Path) -> None:
    domain, starter = load_domain(make_domain("home", tmp_path / "home")), load_domain("starter")
    domain.check()
    assert domain.name == "home"
    assert domain.examples == starter.examples
    assert domain.test_examples == starter.test_examples
    assert domain.table.model_copy(update={"name": "starter"}) == starter.table


def test_bytecode_files_of_the_starter_are_not_copied(tmp_path: Path) -> None:
    assert load_domain("starter").executor is not None
    folder = make_domain("home", tmp_path / "home")
    assert not list(folder.rglob("*.pyc"))


@pytest.mark.parametrize("name", ["", "a b", "../x", "-x", 'x"', "x\n"])
def test_an_invalid_name_is_rejected_and_no_folder_is_created(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a valid name for a domain"):
        make_domain(name, tmp_path / "home")
    assert not (tmp_path / "home").exists()


def test_an_existing_folder_is_an_error_and_not_changed(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    with pytest.raises(UsageError, match="exists already"):
        make_domain("home", tmp_path / "home")
    assert not list((tmp_path / "home").iterdir())
