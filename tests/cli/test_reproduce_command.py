"""`fewparse reproduce`: the tables of the paper with the real data and the real model."""

import json
from pathlib import Path

import pytest

from fewparse.experiment.folder import RECORDS
from support.cli_runner import CommandResult, fewparse


def on_overnight(data: Path, *arguments: str) -> CommandResult:
    return fewparse("reproduce", *arguments, "--dataset", "overnight", "--data", str(data))


def test_an_unknown_table_is_an_error_with_the_nearest_name() -> None:
    ended = fewparse("reproduce", "tabel3")
    assert ended.code == 2
    assert "unknown table 'tabel3'" in ended.err
    assert "Did you mean table3" in ended.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dataset", "overnigt"], "Did you mean overnight?"),
        (["--retriever", "bm52"], "Did you mean bm25?"),
        (["--markdown", "--json"], "one format only"),
    ],
)
def test_wrong_options_are_errors(arguments: list[str], message: str) -> None:
    ended = fewparse("reproduce", "table2", *arguments)
    assert ended.code == 2
    assert message in ended.err


@pytest.mark.parametrize("table", ["table1", "table2", "table6"])
def test_a_missing_dataset_is_an_error_with_the_command_that_gets_it(table: str, tmp_path: Path) -> None:
    ended = on_overnight(tmp_path, table, "--out", str(tmp_path / "out"))
    assert ended.code == 1
    assert "fewparse data get overnight" in ended.err
    assert "fewparse data import overnight DIR" in ended.err
    assert not (tmp_path / "out").exists()


def test_nothing_runs_if_the_second_dataset_is_missing(overnight_data: Path, tmp_path: Path) -> None:
    ended = fewparse("reproduce", "table2", "--data", str(overnight_data), "--out", str(tmp_path / "out"))
    assert ended.code == 1
    assert "fewparse data get smcalflow" in ended.err
    assert not (tmp_path / "out").exists()


def test_table_1_shows_the_example_of_the_paper(overnight_data: Path) -> None:
    shown = json.loads(on_overnight(overnight_data, "table1", "--json").out)["examples"]
    assert [(each["domain"], each["paper"]) for each in shown] == [("overnight/calendar", True)]
    plain = on_overnight(overnight_data, "table1").out
    assert "Canonical utterance     meeting that has the smallest end time\n" in plain
    assert "| overnight/calendar | which meeting has" in on_overnight(overnight_data, "table1", "--markdown").out


def test_table_1_translates_programs_without_a_canonical_utterance(smcalflow_data: Path) -> None:
    ended = fewparse("reproduce", "table1", "--dataset", "smcalflow", "--data", str(smcalflow_data), "--json")
    (example,) = json.loads(ended.out)["examples"]
    assert example["paper"]
    assert example["canonical"].startswith('create an event called "Hide and Seek"')


def test_a_dry_run_says_how_much_would_be_run(overnight_data: Path, tmp_path: Path) -> None:
    ended = on_overnight(overnight_data, "table5", "--dry-run", "--out", str(tmp_path / "out"))
    assert ended.code == 0
    assert "14 cells, 1,400 items to parse" in ended.out
    assert not (tmp_path / "out").exists()


def test_a_table_is_run_written_and_its_results_are_used_by_other_tables(
    overnight_data: Path, tmp_path: Path
) -> None:
    settings = ["--improved", "--retriever", "bm25", "--limit", "1", "--out", str(tmp_path)]
    ended = on_overnight(overnight_data, "table2", *settings, "--json")
    assert ended.code == 0, ended.err
    figures = json.loads(ended.out)
    assert figures == json.loads((tmp_path / "table2.json").read_text())
    (ours,) = figures["rows"][-1]["figures"]
    assert (ours["items"], ours["failed"]) == (1, 0)
    assert (tmp_path / "table2.md").read_text().startswith("**Table 2.**")
    before = (tmp_path / "overnight" / RECORDS).read_bytes()

    larger = json.loads(on_overnight(overnight_data, "table3", *settings, "--no-run", "--json").out)
    canonical, program, difference = larger["rows"][-1]["figures"]
    assert canonical["value"] == ours["value"]
    assert (program["value"], difference["value"]) == (None, None)
    assert "0 items to parse" in on_overnight(overnight_data, "table2", *settings, "--dry-run").out
    assert on_overnight(overnight_data, "table2", *settings).code == 0
    assert (tmp_path / "overnight" / RECORDS).read_bytes() == before
