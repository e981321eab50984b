"""`--grammar`, `--copy` and `--context`; mistakes are reported before a model is loaded."""

from pathlib import Path

import pytest

from fewparse.cli.domain import make_domain
from fewparse.domains.trust import trust_folder
from support.cli_runner import HALL, CommandResult, fewparse, without_model

GRAMMAR = r"""
start -> " " unit , unit
unit -> "turn " state " the " device " in the " room , " (set (" device " " room ") " state ")"
unit -> "ask about the " device " in the " room , " (ask (" device " " room "))"
state -> "on"
device -> "lamp"
room -> "hall"
"""
FREE = 'unit -> "note " NOTE , " (note \\"" NOTE "\\")"\nNOTE -> /[a-z ]/ NOTE\nNOTE -> /[a-z ]/\n'
LAMP = '{"utterance": "lamp on in the hall", "program": "(set (lamp hall) on)"}\n'


@pytest.fixture
def grammar(tmp_path: Path) -> Path:
    path = tmp_path / "other.scfg"
    path.write_text(GRAMMAR + FREE)
    return path


@pytest.fixture
def home(tmp_path: Path) -> str:
    folder = make_domain("home", tmp_path / "home")
    (folder / "examples.jsonl").write_text(LAMP)
    for name in ("test.jsonl", "adapter-program.gguf"):
        (folder / name).unlink()
    return str(trust_folder(folder))


def test_check_uses_the_replaced_grammar(home: str, grammar: Path) -> None:
    passed = fewparse("check", home, "--grammar", str(grammar), "--model", "none")
    assert passed.code == 0, passed.out + passed.err
    grammar.write_text((GRAMMAR + FREE).replace('"hall"', '"attic"'))
    failed = fewparse("check", home, "--grammar", str(grammar), "--model", "none")
    assert failed.code == 1
    assert (
        "examples.jsonl:1: ill-formed: the program is not derived from character 12 on; expected 'attic'"
        in failed.out
    )


def run(command: str, home: str, tmp_path: Path, *options: str | bytes) -> CommandResult:
    utterance = [HALL] if command == "parse" else ["--split", "train"]
    return fewparse(command, home, *utterance, *options, env=without_model(tmp_path))


@pytest.mark.parametrize("command", ["parse", "eval"])
def test_a_missing_rule_to_copy_is_an_error_unless_no_text_is_copied(
    command: str, home: str, grammar: Path, tmp_path: Path
) -> None:
    grammar.write_text(GRAMMAR)
    rejected = run(command, home, tmp_path, "--grammar", str(grammar))
    assert rejected.code == 2
    assert "unknown rule to copy 'NOTE'" in rejected.err
    assert "--no-copy" in rejected.err
    free = run(command, home, tmp_path, "--grammar", str(grammar), "--no-copy")
    assert "pip could not download" in free.err


MISTAKES: dict[str, tuple[list[str | bytes], str, str]] = {
    "a missing grammar": (["--grammar", "nowhere"], "nowhere: there is no such file or folder", ""),
    "an empty folder": (["--grammar", "{empty}"], "the folder has no .scfg file", "one .scfg or .lark file"),
    "a grammar and a trie": (
        ["--grammar", "{other}", "--constraint", "trie"],
        "the constraint is `trie`",
        "Omit one",
    ),
    "copying with a trie": (
        ["--constraint", "trie", "--copy"],
        "`trie` has no rules whose text could be copied",
        "Omit --copy",
    ),
    "a prompt without context": (
        ["--context", "Hello."],
        "`lisp` does not show the context",
        "--prompt chatml-context",
    ),
    "a context that is not UTF-8": (
        ["--context", b"\xff", "--prompt", "chatml-context"],
        "the context is not UTF-8",
        "",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_reported_with_a_hint_before_the_model_is_loaded(
    mistake: str, home: str, grammar: Path, tmp_path: Path
) -> None:
    options, problem, hint = MISTAKES[mistake]
    (tmp_path / "empty").mkdir()
    places = {"{empty}": str(tmp_path / "empty"), "{other}": str(grammar)}
    ended = run("parse", home, tmp_path, *(places.get(o, o) if isinstance(o, str) else o for o in options))
    assert ended.code in (1, 2)
    assert problem in ended.err
    assert hint in ended.err
    assert "pip" not in ended.err


def test_a_context_needs_the_utterance_as_an_argument(home: str, tmp_path: Path) -> None:
    ended = fewparse(
        "parse", home, "--context", "Hello.", "--prompt", "chatml-context", stdin=HALL, env=without_model(tmp_path)
    )
    assert ended.code == 2
    assert "Give the utterance as an argument." in ended.err


def test_parsing_a_missing_benchmark_is_an_error_with_the_download_command(tmp_path: Path) -> None:
    ended = fewparse("parse", "smcalflow", "hello", "--data", str(tmp_path))
    assert ended.code == 1
    assert "the examples of smcalflow are not in" in ended.err
    assert "fewparse data get smcalflow" in ended.err


BAD_TEXTS = {
    "empty": ("", "ends too early; expected '(set (' or '(ask ('"),
    "unbalanced": ("(set (lamp hall) on", "ends too early; expected ')'"),
    "too many brackets": ("(set (lamp hall) on))", "is not derived from character 21 on\n"),
    "a misspelt function": ("(aks (lamp hall))", "is not derived from character 3 on; expected 'ask ('"),
    "other characters": ("\u202e🦓", "is not derived from character 1 on; expected '(set (' or '(ask ('"),
    "an utterance": ("turn on the lamp", "is not derived from character 1 on; expected '(set (' or '(ask ('"),
}


@pytest.mark.parametrize("bad", BAD_TEXTS)
def test_the_error_for_an_underivable_text_has_the_position_of_the_failure(bad: str, tmp_path: Path) -> None:
    text, failure = BAD_TEXTS[bad]
    grammar = tmp_path / "unspaced.scfg"
    grammar.write_text(GRAMMAR.replace('" " unit', "unit").replace('" (', '"('))
    ended = fewparse("grammar", "tree", str(grammar), text)
    assert ended.code == 1
    assert ended.err.startswith(f"error: the text {failure}")
