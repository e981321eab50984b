"""Paper mode: one switch sets every option as in the paper, and explicit options win."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from fewparse import Parser
from fewparse.domains.load import load_domain
from fewparse.errors import UsageError
from fewparse.options import SEARCH_OPTIONS, Options, prepare
from fewparse.search.settings import SearchSettings
from support.adapters import provenance, write_adapter
from support.cli_runner import HALL, fewparse
from support.domain_files import copy_starter, write_domain
from support.toy_model import LongContextToyModel

PAPER: dict[str, Any] = {
    "examples": 20,
    "retriever": "lm",
    "order": "shuffled",
    "fold": False,
    "rerank": 0.0,
    "vote": False,
    "decoder": "speculative",
    "width": 10,
    "temperature": 0.5,
    "rounds": 16,
    "free_back_off": False,
    "free_branching": False,
    "forced_spans": False,
    "margin": math.inf,
}
OTHER: dict[str, Any] = {
    "prompt": "chatml",
    "examples": 3,
    "retriever": "bm25",
    "order": "best-first",
    "fold": True,
    "rerank": 2.0,
    "vote": True,
    "decoder": "beam",
    "width": 4,
    "temperature": 1.0,
    "rounds": 5,
    "free_back_off": True,
    "free_branching": True,
    "forced_spans": True,
    "margin": 2.0,
}
EMBEDDED = "embedded:smollm2-135m"


def value(options: Options, name: str) -> object:
    return getattr(options.search if name in SEARCH_OPTIONS else options, name)


@pytest.mark.parametrize(("target", "prompt"), [("canonical", "canonical"), ("program", "lisp")])
def test_the_switch_sets_all_options_of_the_paper(target: Any, prompt: str) -> None:
    domain, options = prepare("calendar", EMBEDDED, paper=True, target=target)
    assert {name: value(options, name) for name in PAPER} == PAPER
    assert options.prompt == prompt
    assert options.search.follows_listing
    assert options.adapter is None
    assert domain.table.constraint.copy_rules == ()


@pytest.mark.parametrize("name", OTHER)
def test_an_explicit_option_wins_and_leaves_the_others_as_in_the_paper(name: str) -> None:
    _, paper = prepare("calendar", paper=True)
    chosen: Any = {name: OTHER[name]}
    _, options = prepare("calendar", paper=True, **chosen)
    assert value(options, name) == OTHER[name]
    assert [other for other in OTHER if value(options, other) != value(paper, other)] == [name]
    assert options.search.paper


def test_text_is_copied_in_paper_mode_if_that_is_requested() -> None:
    domain, _ = prepare("calendar", paper=True, copy=True)
    assert domain.table.constraint.copy_rules == ("TITLE",)


def test_without_the_switch_the_search_is_not_the_one_of_the_paper() -> None:
    assert not prepare("calendar")[1].search.paper
    assert prepare("calendar")[1] == prepare("calendar", paper=False)[1]


def paper_domain(folder: Path, more: str = "") -> Path:
    copy_starter(folder)
    examples = [json.loads(line) for line in (folder / "examples.jsonl").read_text().splitlines()]
    return write_domain(folder, f'name = "home"\npaper = true\n{more}', examples)


def test_a_domain_in_paper_mode_has_the_options_of_the_paper(tmp_path: Path) -> None:
    options = prepare(paper_domain(tmp_path / "home"))[1]
    assert {name: value(options, name) for name in PAPER} == PAPER
    assert (options.prompt, options.search.paper) == ("lisp", True)


def test_other_keys_of_domain_toml_win(tmp_path: Path) -> None:
    more = 'prompt = "chatml"\n[retrieve]\nexamples = 3\n[search]\nwidth = 4\n[constraint]\ncopy = ["NOTE"]\n'
    domain, options = prepare(paper_domain(tmp_path / "home", more))
    assert {name: value(options, name) for name in PAPER} == PAPER | {"examples": 3, "width": 4}
    assert options.prompt == "chatml"
    assert domain.table.constraint.copy_rules == ("NOTE",)


def test_the_switch_replaces_the_settings_of_the_domain_and_can_be_switched_off(tmp_path: Path) -> None:
    folder = paper_domain(tmp_path / "home", "[search]\nwidth = 4\n")
    assert prepare(folder, paper=True)[1].search.width == 10
    off = prepare(folder, paper=False)[1]
    assert (off.search.width, off.examples, off.search.paper) == (4, 10, False)


def test_the_switch_belongs_to_loading_a_domain(tmp_path: Path) -> None:
    domain = load_domain(paper_domain(tmp_path / "home"), paper=True)
    with pytest.raises(UsageError, match="`paper` cannot be set for a domain that is already loaded"):
        Parser.from_domain(domain, LongContextToyModel(), paper=True)
    assert Parser.from_domain(domain, LongContextToyModel()).options.search.paper


def test_only_an_explicit_adapter_is_used_with_the_prompt_of_its_tuning(tmp_path: Path) -> None:
    folder = copy_starter(tmp_path / "home")
    path = folder / "adapter-program.gguf"
    write_adapter(path, blocks=[0], matrices=["attn_v"], provenance=provenance())
    assert prepare(folder, EMBEDDED)[1].adapter is not None
    assert prepare(folder, EMBEDDED, paper=True)[1].adapter is None
    options = prepare(folder, EMBEDDED, paper=True, adapter=path)[1]
    assert options.adapter is not None
    assert (options.prompt, options.examples) == ("tuned", 0)
    assert options.search.follows_listing


def test_a_domain_in_paper_mode_passes_the_check(tmp_path: Path) -> None:
    ended = fewparse("check", str(paper_domain(tmp_path / "home")))
    assert (ended.code, ended.err) == (0, "")


def test_a_value_that_is_not_boolean_is_reported_with_its_line(tmp_path: Path) -> None:
    folder = paper_domain(tmp_path / "home")
    (folder / "domain.toml").write_text('name = "home"\npaper = "yes"\n')
    ended = fewparse("check", str(folder))
    assert ended.code == 1
    assert "domain.toml:2" in ended.err
    assert "`paper`" in ended.err


@pytest.mark.parametrize("decoder", [[], ["--decoder", "beam", "--width", "3"]], ids=["speculative", "beam"])
def test_the_command_line_parses_in_paper_mode(decoder: list[str]) -> None:
    ended = fewparse("parse", "starter", HALL, "--paper", "--json", *decoder)
    (found,) = map(json.loads, ended.out.splitlines())
    assert found["examples_used"] == 20
    assert found["output"].startswith("(")
    assert ended.code == 0


def test_an_utterance_for_which_nothing_finished_is_a_failure() -> None:
    ended = fewparse("parse", "starter", HALL, "--paper", "--retriever", "all", "--max-tokens", "2")
    assert ended.code == 1
    assert "no parse: nothing was finished within 16 rounds and 2 tokens" in ended.out


def test_the_report_of_an_evaluation_names_paper_mode(tmp_path: Path) -> None:
    arguments = ("eval", "starter", "--split", "train", "--limit", "1", "--paper", "--retriever", "all")
    ended = fewparse(*arguments, "--width", "2")
    assert ended.code == 0, ended.err
    assert "20 in the prompt by all (shuffled)" in " ".join(ended.out.split())
    assert "paper mode" in ended.out


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--no-free-back-off"], {"free_back_off": False}),
        (["--no-free-branching"], {"free_branching": False}),
        (["--forced-spans"], {"forced_spans": True}),
        (["--margin", "inf"], {"margin": math.inf}),
        (["--rounds", "3"], {"rounds": 3}),
        (["--alternatives", "7"], {"alternatives": 7}),
        (["--paper", "--free-back-off"], {"free_back_off": True, "paper": True}),
    ],
)
@pytest.mark.parametrize("command", ["parse", "eval"])
def test_each_option_of_the_search_reaches_the_search(
    command: str, flags: list[str], expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    resolved: list[SearchSettings] = []

    def stop_before_the_model(*_: object, **__: object) -> None:
        raise UsageError("stopped")

    def recorded(*arguments: Any, **options: Any) -> Any:
        found = prepare(*arguments, **options)
        resolved.append(found[1].search)
        return found

    module = "evaluate" if command == "eval" else command
    monkeypatch.setattr(f"fewparse.cli.{module}.prepare", recorded)
    monkeypatch.setattr(f"fewparse.cli.{module}.opened_model", stop_before_the_model)
    utterance = [HALL] if command == "parse" else ["--split", "train"]
    assert fewparse(command, "starter", *utterance, *flags).code == 2
    assert {name: getattr(resolved[0], name) for name in expected} == expected
