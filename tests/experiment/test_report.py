"""`fewparse report`: tables, report.md, plots, comparisons and exported files of a results folder."""

import json
import re
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest

from experiment.conftest import lamp_table
from fewparse import read_results
from fewparse.evaluate.record_lines import Record
from fewparse.experiment.folder import RECORDS
from fewparse.experiment.markdown import report_markdown
from fewparse.experiment.plan import make_plan
from fewparse.experiment.run import run_experiment
from fewparse.lm.embedded import EmbeddedModel
from support.cli_runner import fewparse
from support.experiment_results import make_cell, make_results


@pytest.fixture(scope="module")
def finished(lamp_folder: Path, tmp_path_factory: pytest.TempPathFactory, model: EmbeddedModel) -> Path:
    """The results of a real run."""
    table = lamp_table(
        lamp_folder, name="lamps", target=["canonical", "program"], decoder=["greedy", "beam"], width=2
    )
    folder = tmp_path_factory.mktemp("finished")
    run_experiment(make_plan(table), folder, lambda name: nullcontext(model))
    return folder


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    """A copy of the results, to change."""
    return Path(shutil.copytree(finished, tmp_path / "results"))


def sections(markdown: str) -> list[str]:
    return re.findall(r"^##? (.*)$", markdown, re.MULTILINE)


def test_the_report_has_tables_on_the_screen_and_in_files(folder: Path) -> None:
    ended = fewparse("report", str(folder))
    assert ended.code == 0, ended.err
    assert max(len(line) for line in ended.out.splitlines() if "/" not in line) <= 100
    markdown = (folder / "report.md").read_text()
    assert sections(markdown)[:4] == [
        "lamps",
        "Cells",
        "The most accurate cell compared with the others",
        "Canonical minus program (C - M)",
    ]
    results = read_results(folder)
    for cell in results.cell_results:
        assert cell.label in ended.out
    assert results.cell_results[0].settings["model"]["identity"] in markdown
    pictures = re.findall(r"\]\((plots/.*?)\)", markdown)
    assert pictures
    for picture in pictures:
        assert (folder / picture).read_bytes().startswith(b"<?xml")
        assert (folder / picture).with_suffix(".png").is_file()


def test_the_report_of_the_same_results_is_the_same(folder: Path) -> None:
    fewparse("report", str(folder))
    first = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    fewparse("report", str(folder))
    assert {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == first


def test_another_folder_is_written_on_request_and_the_results_are_not_touched(
    folder: Path, tmp_path: Path
) -> None:
    before = sorted(folder.iterdir())
    ended = fewparse(
        "report", str(folder), "--out", str(tmp_path / "page"), "--export", str(tmp_path / "items.csv")
    )
    assert ended.code == 0, ended.err
    assert sorted(folder.iterdir()) == before
    assert (tmp_path / "page" / "report.md").is_file()
    assert len((tmp_path / "items.csv").read_text().splitlines()) == 1 + 4 * 2


def test_unfinished_items_are_stated(folder: Path) -> None:
    lines = (folder / RECORDS).read_text().splitlines(keepends=True)
    (folder / RECORDS).write_text("".join(lines[:-1]))
    ended = fewparse("report", str(folder))
    assert "Not finished: 1 of 8 results are missing" in ended.out
    assert "**Not finished:** 1 of 8 results" in (folder / "report.md").read_text()


def test_failures_are_stated_with_their_reasons() -> None:
    cell = make_cell([True, Record.failed("no\nanswer"), Record.failed("no answer")])
    markdown = report_markdown(make_results(cell, notes={"lamps": ["two items are odd"]}))
    assert "**Failed:** 2 of 3 results; they count as wrong.\n\n- 2 times: no answer\n" in markdown
    assert "lamps: two items are odd" in markdown
    assert "| 0.33 (0.06-0.79) |" in markdown


def test_averages_appear_if_there_are_several_domains() -> None:
    cells = [make_cell([True, flag], domain=domain) for domain, flag in (("a", True), ("b", False))]
    markdown = report_markdown(make_results(*cells))
    assert "## Averages over domains" in markdown
    assert "| embedded | 2 | 0.75 (" in markdown
    assert "Averages" not in report_markdown(make_results(cells[0]))


def test_two_cells_are_compared_item_by_item(folder: Path) -> None:
    lines = [json.loads(line) for line in (folder / RECORDS).read_text().splitlines()]
    cells = read_results(folder).cell_results
    for line in lines:
        line["correct"] = [line["system"] == cells[0].id] * len(line["correct"])
    (folder / RECORDS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    ended = fewparse("report", str(folder), "--compare", cells[0].label, cells[1].id)
    assert ended.code == 0, ended.err
    assert "2 items: difference +1.00" in ended.out
    assert "p = 0.500" in ended.out
    assert "only the first is correct: 2" in ended.out
    for item in cells[0].items:
        assert item.utterance in ended.out
    assert not (folder / "report.md").exists()


def test_an_unknown_cell_is_an_error_with_the_nearest(folder: Path) -> None:
    ended = fewparse("report", str(folder), "--compare", "canonical, gredy", "program, greedy")
    assert ended.code == 2
    assert "Did you mean 'canonical, greedy'" in ended.err


def test_a_folder_without_results_is_an_error(tmp_path: Path) -> None:
    ended = fewparse("report", str(tmp_path))
    assert ended.code == 1
    assert "experiment.json" in ended.err


def test_search_errors_are_counted_on_request(folder: Path) -> None:
    ended = fewparse("report", str(folder), "--search-errors", "--allow-code")
    assert ended.code == 0, ended.err
    assert "Search errors" in ended.out
    assert "## Search errors" in (folder / "report.md").read_text()
