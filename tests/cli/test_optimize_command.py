"""`fewparse optimize`: settings are written, an interrupted search resumes, mistakes are explained."""

import json
import signal
import subprocess
import time
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fewparse.cli.settings import settings_in_effect
from fewparse.domains.load import load_domain
from fewparse.lm.load import EMBEDDED
from support.cli_runner import CommandResult, fewparse, start_process
from support.domain_files import copy_starter
from support.switch_domain import EXAMPLES, REPHRASED, SETTINGS, make_switches
from support.tiny_model import write_tiny_model

ONLY_WEIGHTS = (
    "--decoder",
    "beam",
    "--width",
    "16",
    "--examples",
    "2",
    "--order",
    "best-last",
    "--retriever",
    "all",
)
"""One configuration is left, whose weights of reranking are compared."""
ORDERS = ("--decoder", "greedy", "--examples", "2", "--retriever", "all")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of a small random model, whose candidates only the reranking can put in order."""
    return f"gguf:{write_tiny_model(tmp_path_factory.mktemp('models') / 'tiny.gguf')}"


@pytest.fixture
def switches(tmp_path: Path, isolated_cache: Path) -> Path:
    return make_switches(tmp_path / "switches", REPHRASED).folder


def optimize(folder: Path, tiny: str, *arguments: str) -> CommandResult:
    return fewparse("optimize", str(folder), "--model", tiny, *arguments)


def test_better_settings_are_written_and_a_second_run_keeps_them(switches: Path, tiny: str) -> None:
    path = switches / "domain.toml"
    path.write_text("# The switches of the house.\n" + SETTINGS.replace("width = 1", "width = 1  # a beam"))
    ended = optimize(switches, tiny, *ONLY_WEIGHTS)
    assert ended.code == 0, ended.err
    assert "The best settings are chosen." in ended.out
    assert "There are too few examples to keep some for the comparison: the gain is optimistic." in ended.out
    assert f"Written to {path}:\n  [search]\n" in ended.out
    written = path.read_text()
    assert written.startswith("# The switches of the house.\n")
    assert "width = 16  # a beam" in written
    search = tomllib.loads(written)["search"]
    assert (search["decoder"], search["width"], search["max_tokens"]) == ("beam", 16, 32)
    assert search["rerank"] > 1
    assert f"rerank = {search['rerank']}  # was 0.0" in ended.out
    records = len(record_lines(switches.parent))
    again = optimize(switches, tiny, *ONLY_WEIGHTS)
    assert "The present settings are kept: nothing better was found." in again.out
    assert path.read_text() == written
    assert len(record_lines(switches.parent)) == records == len(REPHRASED), "all records are reused"


@pytest.mark.parametrize("arguments", [(), ("--json",)], ids=["text", "json"])
def test_settings_that_cannot_be_written_are_printed(
    switches: Path, tiny: str, arguments: tuple[str, ...]
) -> None:
    path = switches / "domain.toml"
    path.chmod(0o444)
    before = path.read_bytes()
    ended = optimize(switches, tiny, *ONLY_WEIGHTS, *arguments)
    assert ended.code == 0
    assert path.read_bytes() == before
    if arguments:
        found = json.loads(ended.out)
        assert (found["written"], found["not_written"]) == (None, f"{path} is read-only")
        assert {change["key"] for change in found["changes"]} == {"decoder", "width", "rerank"}
    else:
        assert f"Not written, because {path} is read-only. Write into domain.toml:\n  [search]\n" in ended.out


def test_the_changed_settings_can_be_written_elsewhere(switches: Path, tiny: str) -> None:
    before = (switches / "domain.toml").read_bytes()
    ended = optimize(switches, tiny, *ONLY_WEIGHTS, "--out", str(switches.parent / "new.toml"))
    assert ended.code == 0
    assert (switches / "domain.toml").read_bytes() == before
    assert tomllib.loads((switches.parent / "new.toml").read_text())["search"]["width"] == 16


def record_lines(cache: Path) -> list[bytes]:
    """Return the records of a search so far."""
    paths = (cache / "optimization").glob("switches-*-prompted.jsonl")
    return [line for path in paths for line in path.read_bytes().splitlines(keepends=True)]


def stop_after(process: subprocess.Popen[bytes], cache: Path, records: int, sent: signal.Signals) -> bytes:
    """Send a signal as soon as there are so many records; return standard error."""
    while len(record_lines(cache)) < records:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.send_signal(sent)
    return process.communicate(timeout=120)[1]


def without_times(found: dict[str, Any]) -> dict[str, Any]:
    """Return a result without what differs between any two runs."""
    tried = [{name: value for name, value in each.items() if name != "seconds"} for each in found["tried"]]
    return {**found, "seconds": None, "tried": tried}


def test_a_search_that_is_killed_ends_like_one_that_was_not(
    switches: Path, tiny: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    uninterrupted = json.loads(optimize(switches, tiny, *ORDERS, "--json").out)
    expected = len(record_lines(switches.parent))
    cache = switches.parent / "other"
    monkeypatch.setenv("FEWPARSE_CACHE", str(cache))
    process = start_process("optimize", str(switches), "--model", tiny, *ORDERS)
    stop_after(process, cache, 5, signal.SIGKILL)
    kept = [line for line in record_lines(cache) if line.endswith(b"\n")]
    assert 5 <= len(kept) < expected, "the search was interrupted"
    resumed = json.loads(optimize(switches, tiny, *ORDERS, "--json").out)
    assert without_times(resumed) == without_times(uninterrupted)
    assert record_lines(cache)[: len(kept)] == kept
    assert len(record_lines(cache)) == expected


def test_ctrl_c_ends_a_search_with_130_and_says_how_to_resume_it(switches: Path, tiny: str) -> None:
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a child process would inherit an ignored SIGINT
    try:
        process = start_process("optimize", str(switches), "--model", tiny, *ORDERS)
    finally:
        signal.signal(signal.SIGINT, before)
    error = stop_after(process, switches.parent, 2, signal.SIGINT)
    assert process.returncode == 130
    assert b"the same command resumes the search" in error
    assert b"Traceback" not in error


def test_a_budget_of_a_second_gives_what_it_has(switches: Path, tiny: str) -> None:
    ended = optimize(switches, tiny, "--minutes", "0.01")
    assert ended.code == 0
    assert "for lack of time: a larger --minutes continues the search" in ended.out
    assert "The present settings are kept" in ended.out


def test_a_dry_run_says_what_would_be_tried_and_parses_nothing(switches: Path) -> None:
    ended = optimize(switches, "gguf:nowhere.gguf", "--dry-run", "--order", "best-first")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("switches: 24 examples, 60 configurations, 30 minutes\n")
    assert "  retriever: all, embedding, bm25\n" in ended.out
    assert "- order: given, best-first\n" in ended.out
    assert not record_lines(switches.parent)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--minutes", "0"), "greater than or equal to 0.01"),
        (("--decoder", "beem"), "Did you mean beam?"),
        (("--target", "canonical"), "lacks canonical utterances"),
        (("--order", "random"), "Known: best-last, best-first, shuffled."),
        (("--examples", "-1"), "--examples"),
    ],
)
def test_options_that_are_wrong_are_explained(switches: Path, arguments: tuple[str, ...], message: str) -> None:
    ended = optimize(switches, "gguf:nowhere.gguf", *arguments)
    assert ended.code == 2
    assert message in ended.err


def test_too_few_examples_and_paper_mode_are_errors(tmp_path: Path) -> None:
    few = make_switches(tmp_path / "few", EXAMPLES[:9]).folder
    ended = fewparse("optimize", str(few))
    assert (ended.code, ended.out) == (2, "")
    assert "the domain switches has 9 examples, too few to choose settings on" in ended.err
    assert "Write at least 10" in ended.err
    paper = make_switches(tmp_path / "paper").folder / "domain.toml"
    paper.write_text("paper = true\n" + SETTINGS)
    assert "the settings of the domain are the paper's" in fewparse("optimize", str(paper.parent)).err


def test_a_folder_that_is_not_trusted_is_not_searched(tmp_path: Path) -> None:
    ended = fewparse("optimize", str(copy_starter(tmp_path / "home")))
    assert ended.code == 2
    assert "fewparse trust" in ended.err


def test_check_shows_where_each_setting_comes_from(tmp_path: Path) -> None:
    folder = make_switches(tmp_path / "switches").folder
    shown = fewparse("check", str(folder), "--model", "none", "--target", "program").out
    assert [line.split() for line in shown.splitlines() if line.startswith("  ")] == [
        ["target", "program", "command", "line"],
        ["prompt", "lisp", "default"],
        ["examples", "2", "domain.toml"],
        ["retriever", "all", "domain.toml"],
        ["order", "best-last", "default"],
        ["decoder", "greedy", "domain.toml"],
        ["rerank", "0.0", "default"],
        ["vote", "false", "default"],
        ["adapter", "none", "default"],
        ["constraint", "kind", "grammar", "default"],
    ]


def test_the_settings_of_the_tuned_and_of_the_prompted_model_have_their_origins() -> None:
    calendar = load_domain("calendar")
    tuned = {name: (value, origin) for name, value, origin in settings_in_effect(calendar, EMBEDDED, {})}
    assert tuned["rerank"] == (1.6, "[tuned]")
    assert tuned["examples"] == (0, "adapter")
    assert tuned["adapter"] == ("adapter-canonical.gguf", "domain folder")
    assert "retriever" not in tuned, "nothing is retrieved"
    given = {"adapter": "none", "target": "program"}
    prompted = {name: (value, origin) for name, value, origin in settings_in_effect(calendar, EMBEDDED, given)}
    assert prompted["rerank"] == (4.0, "domain.toml")
    assert prompted["target"] == ("program", "command line")
    assert prompted["adapter"] == ("none", "command line")
    paper = settings_in_effect(replace(calendar, paper=True), EMBEDDED, {"adapter": "none"})
    assert ("retriever", "lm", "paper mode") in paper
