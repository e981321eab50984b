"""The grammar of a benchmark can be looked at and translated with before its examples are fetched."""

import json
from pathlib import Path

import pytest

from fewparse.cli.grammar import make_translator
from fewparse.cli.grammar_source import choose
from fewparse.datasets.registry import DATASETS
from fewparse.errors import DataUnavailable
from support.cli_runner import fewparse

GRAMMAR = """
start -> "play the " device , "(on " device ")"
device -> "music" , "radio"
device -> "music" , "gramophone"
"""
EXAMPLE = '{"utterance": "music!", "program": "(on gramophone)"}\n'


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder without anything in it, and a package in which a benchmark has a tiny grammar."""
    folder = tmp_path / "package" / "smcalflow"
    folder.mkdir(parents=True)
    (folder / "domain.toml").write_text('name = "smcalflow"\n[constraint]\ngrammar = "grammar.scfg"\n')
    (folder / "grammar.scfg").write_text(GRAMMAR)
    monkeypatch.setattr(DATASETS["smcalflow"], "folder", folder)
    monkeypatch.setenv("FEWPARSE_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def test_the_shortest_program_wins_and_that_is_said(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    translator = make_translator(choose("smcalflow"), "program")
    assert translator.to_program("play the music").best == "(on radio)"
    said = capsys.readouterr().err
    assert "the shortest program wins, not the likeliest: the examples of smcalflow are not in" in said
    assert "fewparse data get smcalflow" in said


def test_nothing_is_said_where_nothing_is_missed(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert make_translator(choose("smcalflow"), "utterance").to_utterance("(on radio)").best == "play the music"
    assert make_translator(choose("smcalflow"), "program", "shortest").to_program("play the music").best
    assert capsys.readouterr().err == ""


def test_what_must_be_learned_has_to_be_fetched(data: Path) -> None:
    with pytest.raises(DataUnavailable, match="fewparse data get smcalflow"):
        make_translator(choose("smcalflow"), "program", "learned")


def test_once_they_are_fetched_the_likeliest_program_wins(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (data / "smcalflow").mkdir(parents=True)
    (data / "smcalflow" / "examples.jsonl").write_text(EXAMPLE)
    for scorer in (None, "learned"):
        translator = make_translator(choose("smcalflow"), "program", scorer)
        assert translator.to_program("play the music").best == "(on gramophone)"
    assert capsys.readouterr().err == ""


def test_a_grammar_that_examples_would_have_to_make_needs_them(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = 'name = "overnight"\n[constraint]\nkind = "induced"\n'
    (tmp_path / "domain.toml").write_text(settings)
    monkeypatch.setattr(DATASETS["overnight"], "folder", tmp_path)
    with pytest.raises(DataUnavailable, match="the examples of overnight/blocks"):
        choose("overnight/blocks")


def test_what_is_misspelt_in_a_large_grammar_is_told_in_a_few_words(tmp_path: Path) -> None:
    given = "(Yield :output (Today))\n(Yeild :output (Today))\n(Yield :output (Tomorow))\n(Yield :output (Today)\n"
    ended = fewparse(
        *("grammar", "translate", "smcalflow", "--to", "utterance"),
        stdin=given,
        env={"FEWPARSE_DATA": str(tmp_path)},
    )
    assert (ended.code, ended.err) == (0, "")
    right, *wrong = [json.loads(line) for line in ended.out.splitlines()]
    assert right["output"]
    errors = [line["error"] for line in wrong]
    assert errors[0].startswith("is not derived from character 3 on; expected 'Yield")
    assert errors[1].startswith("is not derived from character 22 on; expected 'Tomorrow")
    assert errors[2].startswith("ends too early; expected ")
    assert all(len(error) < 400 for error in errors)
