"""`fewparse new`: a domain folder that can be used without changes."""

import os
from pathlib import Path

import pytest

from support.cli_runner import QUICK, CommandResult, fewparse

KITCHEN = "turn on the lamp in the kitchen"


@pytest.fixture(scope="module")
def created(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CommandResult]:
    folder = tmp_path_factory.mktemp("new") / "home"
    return folder, fewparse("new", "home", "--in", str(folder))


def test_the_printed_command_parses_an_utterance(created: tuple[Path, CommandResult]) -> None:
    folder, ended = created
    assert ended == CommandResult(0, f'Created {folder}. Try it:\n  fewparse parse {folder} "{KITCHEN}"\n', "")
    tried = fewparse("parse", str(folder), KITCHEN, *QUICK)
    assert (tried.code, tried.err) == (0, "")
    assert tried.out.splitlines()[0] == KITCHEN
    assert tried.out.splitlines()[2].startswith("  = ")


def test_the_executor_of_the_new_folder_runs(created: tuple[Path, CommandResult]) -> None:
    folder, _ = created
    ended = fewparse("execute", str(folder), stdin="(set (lamp kitchen) (level 20))\n")
    assert ended == CommandResult(0, '{"device": "lamp", "room": "kitchen", "state": 20}\n', "")


def test_the_folder_has_the_given_name_and_only_the_source_files(created: tuple[Path, CommandResult]) -> None:
    folder, _ = created
    assert 'name = "home"' in (folder / "domain.toml").read_text()
    names = {path.name for path in folder.iterdir()} - {"__pycache__"}
    assert names == {"domain.toml", "examples.jsonl", "test.jsonl", "grammar.lark", "executor.py"}


def test_an_existing_folder_is_not_overwritten(created: tuple[Path, CommandResult]) -> None:
    folder, _ = created
    before = (folder / "domain.toml").read_text()
    ended = fewparse("new", "other", "--in", str(folder))
    assert (ended.code, ended.out) == (2, "")
    assert f"{folder} exists already" in ended.err
    assert (folder / "domain.toml").read_text() == before


@pytest.mark.parametrize("name", ["", "a/b", "../up", "two words", "-x-"])
def test_an_invalid_name_is_rejected(name: str, tmp_path: Path) -> None:
    ended = fewparse("new", "--in", str(tmp_path / "x"), "--", name)
    assert ended.code == 2
    assert "is not a valid name for a domain" in ended.err
    assert not (tmp_path / "x").exists()


@pytest.mark.skipif(os.name != "posix", reason="the message depends on the operating system")
def test_the_error_for_a_folder_that_cannot_be_created_has_its_path(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ended = fewparse("new", "home", "--in", str(tmp_path / "file" / "home"))
    assert ended.code == 2
    assert f"{tmp_path}/file/home cannot be created: Not a directory" in ended.err
