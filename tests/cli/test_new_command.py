"""`fewparse new`: a domain folder that can be used without changes."""

import os
from pathlib import Path

import pytest

from fewparse.domains.load import load_domain
from support.cli_runner import CommandResult, fewparse
from test_documents import check_invocation, invocations

KITCHEN = "turn on the lamp in the kitchen"


@pytest.fixture(scope="module")
def created(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CommandResult]:
    folder = tmp_path_factory.mktemp("new") / "home"
    return folder, fewparse("new", "home", "--in", str(folder))


def test_the_printed_command_parses_an_utterance(created: tuple[Path, CommandResult]) -> None:
    folder, ended = created
    shown = f'Created {folder}. Try it:\n  fewparse parse {folder} "{KITCHEN}"\n'
    assert ended == CommandResult(0, f"{shown}What to do next: {folder / 'README.md'}\n", "")
    tried = fewparse("parse", str(folder), KITCHEN)
    answer = '{"device": "lamp", "room": "kitchen", "state": "on"}'
    assert tried == CommandResult(0, f"{KITCHEN}\n  (set (lamp kitchen) on)\n  = {answer}\n", "")


def test_all_held_out_items_of_the_new_folder_are_right(created: tuple[Path, CommandResult]) -> None:
    folder, _ = created
    ended = fewparse("eval", str(folder))
    assert ended.code == 0, ended.err
    items = len(load_domain(folder).test_examples)
    assert items >= 12
    assert f"All {items} items are right." in ended.out
    assert "tuned on 48 examples (adapter-program.gguf)" in " ".join(ended.out.split())


def test_the_new_folder_has_nothing_to_complain_about(created: tuple[Path, CommandResult]) -> None:
    folder, _ = created
    ended = fewparse("check", str(folder), "--strict")
    assert (ended.code, ended.err) == (0, "")


def test_the_readme_of_the_new_folder_has_its_name_and_commands_that_exist(
    created: tuple[Path, CommandResult],
) -> None:
    readme = created[0] / "README.md"
    assert readme.read_text().startswith("# home\n")
    found = invocations(readme)
    assert [arguments[0] for arguments in found[:3]] == ["parse", "parse", "eval"]
    for arguments in found:
        check_invocation(arguments)


def test_in_the_current_folder_the_printed_path_is_not_the_name_of_a_domain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = fewparse("new", "calendar")
    assert "\n  fewparse parse ./calendar " in ended.out


def test_the_executor_of_the_new_folder_runs(created: tuple[Path, CommandResult]) -> None:
    folder, _ = created
    ended = fewparse("execute", str(folder), stdin="(set (lamp kitchen) (level 20))\n")
    assert ended == CommandResult(0, '{"device": "lamp", "room": "kitchen", "state": 20}\n', "")


def test_the_folder_has_the_given_name_and_only_the_source_files(created: tuple[Path, CommandResult]) -> None:
    folder, _ = created
    assert 'name = "home"' in (folder / "domain.toml").read_text()
    names = {path.name for path in folder.iterdir()} - {"__pycache__"}
    texts = {"README.md", "domain.toml", "examples.jsonl", "test.jsonl", "grammar.lark", "executor.py"}
    assert names == {*texts, "adapter-program.gguf"}


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
