"""Grammars as files and folders: what they are made of, and what is said where a part is missing."""

from pathlib import Path

import pytest

from fewparse.errors import FewparseError, GrammarError, UsageError
from fewparse.grammar.readers.load import open_grammar
from fewparse.grammar.synchronous import SynchronousGrammar
from fewparse.grammar.translation.translator import Translator
from support.data import SMCALFLOW

RELEASED = SMCALFLOW / "released-grammar"
TYPES = "Switch,Unit,device: Device\n#Device,Device\n"
TEMPLATES = "Switch,turn on $device\n"
START = "start -> unit\n"
LITERALS = 'device -> "the lamp" , " lamp"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "deeper").mkdir()
    (tmp_path / "types.csv").write_text(TYPES)
    (tmp_path / "templates.csv").write_text(TEMPLATES)
    (tmp_path / "start.scfg").write_text(START)
    (tmp_path / "deeper" / "literals.scfg").write_text(LITERALS)
    return tmp_path


def refused(path: Path) -> FewparseError:
    with pytest.raises(FewparseError) as caught:
        open_grammar(path)
    return caught.value


def utterance(grammar: object) -> str | None:
    assert isinstance(grammar, SynchronousGrammar)
    return Translator(grammar).to_utterance(" (Switch :device lamp)").best


def test_a_folder_is_its_rule_files_and_what_its_tables_induce(folder: Path) -> None:
    assert utterance(open_grammar(folder)) == "turn on the lamp"


def test_an_empty_table_of_templates_has_functions_said_by_their_names(folder: Path) -> None:
    (folder / "templates.csv").write_text("")
    assert utterance(open_grammar(folder)) == "(call Switch with device set to the lamp)"


def test_tables_need_their_templates(folder: Path) -> None:
    (folder / "templates.csv").unlink()
    error = refused(folder)
    assert isinstance(error, GrammarError)
    assert error.message == f"{folder}: there are type tables and no templates.csv with their English"
    assert "an empty file" in str(error.hint)


def test_tables_need_rules_that_begin_a_text(folder: Path) -> None:
    for path in folder.rglob("*.scfg"):
        path.unlink()
    error = refused(folder)
    assert error.message == f"{folder}: there are type tables and no .scfg file: no rule begins a text"
    assert "Put the .scfg files that belong to the tables beside them" in str(error.hint)


@pytest.mark.skipif(not RELEASED.is_dir(), reason="the tables of SMCalFlow are not at hand")
def test_the_released_tables_alone_say_what_they_lack() -> None:
    assert "one has a rule called `start`" in str(refused(RELEASED).hint)


def test_rule_files_without_a_start_are_refused(folder: Path) -> None:
    (folder / "start.scfg").unlink()
    assert "no rule is called `start`" in refused(folder).message


def test_a_folder_without_any_part_of_a_grammar_is_refused(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("nothing")
    error = refused(tmp_path)
    assert error.message == f"{tmp_path}: the folder has no .scfg file and no types.csv"
    assert "one .scfg or .lark file, or a folder" in str(error.hint)


def test_a_table_in_place_of_its_folder_is_told_the_folder(folder: Path) -> None:
    error = refused(folder / "types.csv")
    assert isinstance(error, UsageError)
    assert error.hint == f"Give the folder that holds all of it: {folder}"


@pytest.mark.parametrize("name", ["nowhere", "nowhere.txt"])
def test_a_place_where_nothing_is_has_no_dialect_to_quarrel_about(name: str, tmp_path: Path) -> None:
    assert refused(tmp_path / name).message == f"{tmp_path / name}: there is no such file or folder"


@pytest.mark.parametrize(
    ("name", "problem"),
    [("more.scfg", "cannot be read: Is a directory"), ("latin.scfg", "not UTF-8 text (byte 15)")],
)
def test_a_file_that_cannot_be_read_is_named(name: str, problem: str, folder: Path) -> None:
    if name == "more.scfg":
        (folder / name).mkdir()
    else:
        (folder / name).write_bytes(b'device -> "caf\xe9"\n')
    assert refused(folder).message == f"{folder / name}: {problem}"
