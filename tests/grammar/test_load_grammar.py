"""Loading grammars from files and folders, and the errors for missing parts."""

from pathlib import Path

import pytest

from fewparse.errors import FewparseError, GrammarError, UsageError
from fewparse.grammar.readers.load import load_grammar
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


def rejection_of(path: Path) -> FewparseError:
    with pytest.raises(FewparseError) as caught:
        load_grammar(path)
    return caught.value


def utterance(grammar: object) -> str | None:
    assert isinstance(grammar, SynchronousGrammar)
    return Translator(grammar).to_utterance(" (Switch :device lamp)").best


def test_a_folder_has_its_rule_files_and_the_rules_of_its_tables(folder: Path) -> None:
    assert utterance(load_grammar(folder)) == "turn on the lamp"


def test_with_an_empty_template_table_functions_are_worded_by_their_names(folder: Path) -> None:
    (folder / "templates.csv").write_text("")
    assert utterance(load_grammar(folder)) == "(call Switch with device set to the lamp)"


def test_tables_need_their_templates(folder: Path) -> None:
    (folder / "templates.csv").unlink()
    error = rejection_of(folder)
    assert isinstance(error, GrammarError)
    assert error.message == f"{folder}: there are type tables but no templates.csv with their English templates"
    assert "with an empty file" in str(error.hint)


def test_tables_need_a_start_rule(folder: Path) -> None:
    for path in folder.rglob("*.scfg"):
        path.unlink()
    error = rejection_of(folder)
    assert error.message == f"{folder}: there are type tables but no .scfg file, so there is no start rule"
    assert "Put the .scfg files that belong to the tables into the folder" in str(error.hint)


@pytest.mark.skipif(not RELEASED.is_dir(), reason="the tables of SMCalFlow are not available")
def test_the_hint_for_tables_alone_mentions_the_start_rule() -> None:
    assert "one has a rule called `start`" in str(rejection_of(RELEASED).hint)


def test_rule_files_without_a_start_are_rejected(folder: Path) -> None:
    (folder / "start.scfg").unlink()
    assert "no rule is called `start`" in rejection_of(folder).message


def test_a_folder_without_any_part_of_a_grammar_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("nothing")
    error = rejection_of(tmp_path)
    assert error.message == f"{tmp_path}: the folder has no .scfg file and no types.csv"
    assert "one .scfg or .lark file, or a folder" in str(error.hint)


def test_the_hint_for_a_single_table_has_its_folder(folder: Path) -> None:
    error = rejection_of(folder / "types.csv")
    assert isinstance(error, UsageError)
    assert error.hint == f"Give the folder that contains all of them: {folder}"


@pytest.mark.parametrize("name", ["nowhere", "nowhere.txt"])
def test_a_missing_file_is_reported_before_its_dialect(name: str, tmp_path: Path) -> None:
    assert rejection_of(tmp_path / name).message == f"{tmp_path / name}: there is no such file or folder"


@pytest.mark.parametrize(
    ("name", "problem"),
    [("more.scfg", "not a regular file but a folder"), ("latin.scfg", "not UTF-8 text (byte 15)")],
)
def test_an_unreadable_file_is_reported_with_its_path(name: str, problem: str, folder: Path) -> None:
    if name == "more.scfg":
        (folder / name).mkdir()
    else:
        (folder / name).write_bytes(b'device -> "caf\xe9"\n')
    assert rejection_of(folder).message == f"{folder / name}: {problem}"


def test_the_limit_on_a_grammar_holds_for_all_files_of_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.scfg").write_text("# " + "x" * 600 + "\n")
    monkeypatch.setenv("FEWPARSE_MAX_GRAMMAR_BYTES", "1000")
    with pytest.raises(GrammarError, match="the files of the grammar have more than 1,000 characters") as caught:
        load_grammar(tmp_path)
    assert "FEWPARSE_MAX_GRAMMAR_BYTES" in str(caught.value.hint)
