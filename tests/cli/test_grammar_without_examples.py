"""The grammar of a benchmark can be used for translation before its examples are downloaded."""

import json
from pathlib import Path

import pytest

from fewparse.cli.grammar import make_translator
from fewparse.cli.grammar_source import resolve_grammar
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
    """A data folder that does not exist yet, and a package in which a benchmark has a tiny grammar."""
    folder = tmp_path / "package" / "smcalflow"
    folder.mkdir(parents=True)
    (folder / "domain.toml").write_text('name = "smcalflow"\n[constraint]\ngrammar = "grammar.scfg"\n')
    (folder / "grammar.scfg").write_text(GRAMMAR)
    monkeypatch.setattr(DATASETS["smcalflow"], "folder", folder)
    monkeypatch.setenv("FEWPARSE_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def test_without_examples_programs_are_ranked_by_length_with_a_warning(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    translator = make_translator(resolve_grammar("smcalflow"), "program")
    assert translator.to_program("play the music").best == "(on radio)"
    warning = capsys.readouterr().err
    assert "programs are ranked by length, not by probability: the examples of smcalflow are not in" in warning
    assert "fewparse data get smcalflow" in warning


def test_there_is_no_warning_if_no_learned_scorer_is_needed(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        make_translator(resolve_grammar("smcalflow"), "utterance").to_utterance("(on radio)").best
        == "play the music"
    )
    assert make_translator(resolve_grammar("smcalflow"), "program", "shortest").to_program("play the music").best
    assert capsys.readouterr().err == ""


def test_an_explicit_learned_scorer_requires_the_examples(data: Path) -> None:
    with pytest.raises(DataUnavailable, match="fewparse data get smcalflow"):
        make_translator(resolve_grammar("smcalflow"), "program", "learned")


def test_with_examples_programs_are_ranked_by_probability(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (data / "smcalflow").mkdir(parents=True)
    (data / "smcalflow" / "examples.jsonl").write_text(EXAMPLE)
    for scorer in (None, "learned"):
        translator = make_translator(resolve_grammar("smcalflow"), "program", scorer)
        assert translator.to_program("play the music").best == "(on gramophone)"
    assert capsys.readouterr().err == ""


def test_a_grammar_that_examples_would_have_to_make_needs_them(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = 'name = "overnight"\n[constraint]\nkind = "induced"\n'
    (tmp_path / "domain.toml").write_text(settings)
    monkeypatch.setattr(DATASETS["overnight"], "folder", tmp_path)
    with pytest.raises(DataUnavailable, match="the examples of overnight/blocks"):
        resolve_grammar("overnight/blocks")


def test_the_error_for_a_misspelling_in_a_large_grammar_is_short(tmp_path: Path) -> None:
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
