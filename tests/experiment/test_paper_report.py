"""The printed tables: figures of hand-made results beside those of the paper, intervals, speeds, notes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fewparse.evaluate.record_lines import Record
from fewparse.experiment.folder import CellEntry, Item, Manifest
from fewparse.experiment.paper_figures import Dataset
from fewparse.experiment.paper_report import Report, as_json, make_report, markdown, plain
from fewparse.experiment.paper_tables import PAPER_TABLES
from fewparse.experiment.reproduction import Reproduction
from fewparse.experiment.results import CellResult, Results
from fewparse.lm.usage import Usage

RIGHT, WRONG = True, False
BEAM_OF_5 = {"decoder": "beam", "width": 5, "constrained": True}


def record(correct: bool, seconds: float = 1.5, prompt_seconds: float = 0.5) -> Record:
    return Record(
        ("x",), ("x",), (correct,), (correct,), (0.0,), (0.0,), correct, correct, Usage(), seconds, prompt_seconds
    )


def cell_result(
    reproduction: Reproduction,
    domain: str,
    options: Mapping[str, Any],
    records: Sequence[Record | bool | None],
    model: str = "embedded",
) -> CellResult:
    """Return a cell with these records, which may be given as whether they are correct."""
    cell = reproduction.cell(domain, model, options)
    entry = CellEntry(cell.id, cell.options, {"options": {"retriever": "bm25"}}, 200)
    items = tuple(Item(domain, index, str(index), "u", "", "g", None, None) for index in range(len(records)))
    made = tuple(record(each) if isinstance(each, bool) else each for each in records)
    return CellResult(entry, "", items, made)


def results(
    *cells: CellResult, limit: int | None = None, notes: Mapping[str, Sequence[str]] | None = None
) -> Results:
    entries = tuple(cell.entry for cell in cells)
    return Results(Path(), Manifest("", "1.2.3", "test", limit, False, entries, notes or {}), cells)


def report(reproduction: Reproduction, **found: Results) -> Report:
    by_dataset: dict[Dataset, Results] = {"overnight": found["overnight"]} if "overnight" in found else {}
    if "smcalflow" in found:
        by_dataset["smcalflow"] = found["smcalflow"]
    return make_report(reproduction, by_dataset, "2026-01-31")


@pytest.fixture
def table2() -> Reproduction:
    return Reproduction(PAPER_TABLES["table2"], ["embedded"], limit=4)


@pytest.fixture
def table2_report(table2: Reproduction) -> Report:
    options = {"target": "canonical", **BEAM_OF_5}
    calendar = cell_result(table2, "overnight/calendar", options, [RIGHT, RIGHT, RIGHT, WRONG, WRONG])
    dialogues = cell_result(table2, "smcalflow", options, [RIGHT, WRONG, None, WRONG])
    return report(
        table2,
        overnight=results(calendar, notes={"overnight/calendar": ["a remark"]}),
        smcalflow=results(dialogues),
    )


def test_plain_text_has_the_layout_of_the_paper_and_our_rows(table2_report: Report) -> None:
    assert plain(table2_report).splitlines() == [
        "Table 2: Models, with constrained decoding of canonical utterances by beam search (beam 5)",
        "",
        "                                Accuracy",
        "Model                  Overnight Cal.  SMCalFlow",
        "Davinci (paper)                  0.81      0.340",
        "Curie (paper)                    0.66      0.260",
        "Davinci Codex (paper)            0.86      0.355",
        "Cushman Codex (paper)            0.87      0.320",
        "embedded                         0.75          -",
        "",
        "Items: overnight/calendar 4, smcalflow 4",
        "Only the first 4 items of each domain are used (--limit)",
        "Training examples: overnight/calendar 200, smcalflow 200",
        "Settings: those of the paper; examples retrieved by bm25",
        "overnight/calendar: a remark",
        "- not finished",
        "fewparse 1.2.3, 2026-01-31",
    ]


def test_markdown_has_intervals(table2_report: Report) -> None:
    lines = markdown(table2_report).splitlines()
    assert "| Model | Accuracy: Overnight Cal. | Accuracy: SMCalFlow |" in lines
    assert "| Davinci Codex (paper) | 0.86 | 0.355 |" in lines
    assert "| embedded | 0.75 (0.30 to 0.95) | \\- |" in lines  # Wilson's interval of 3 of 4


def test_json_has_the_options_and_the_number_of_items(table2_report: Report) -> None:
    rows = as_json(table2_report)["rows"]
    assert [row["paper"] for row in rows] == [True] * 4 + [False]
    ours, unfinished = rows[-1]["figures"]
    assert ours == {
        "dataset": "overnight",
        "measure": "accuracy",
        "options": {"target": "canonical", **BEAM_OF_5},
        "value": 0.75,
        "items": 4,
        "failed": 0,
        "low": 0.3006,
        "high": 0.9544,
    }
    assert unfinished["value"] is None


def test_a_folder_with_fewer_items_than_requested_is_not_finished(table2: Reproduction) -> None:
    cell = cell_result(table2, "overnight/calendar", {"target": "canonical", **BEAM_OF_5}, [RIGHT] * 3)
    figures = report(table2, overnight=results(cell, limit=3)).parts[0][1][-1].figures
    assert figures == (None, None)


def test_the_difference_is_that_of_the_same_items() -> None:
    table3 = Reproduction(PAPER_TABLES["table3"], ["embedded"], ["overnight"], limit=4)
    found = results(
        cell_result(
            table3, "overnight/calendar", {"target": "canonical", **BEAM_OF_5}, [RIGHT, RIGHT, WRONG, WRONG]
        ),
        cell_result(
            table3, "overnight/calendar", {"target": "program", **BEAM_OF_5}, [RIGHT, WRONG, WRONG, RIGHT]
        ),
    )
    made = report(table3, overnight=found)
    assert plain(made).splitlines()[-7].split() == ["embedded", "0.50", "0.50", "0.00"]
    difference = made.parts[0][1][-1].figures[2]
    assert difference is not None
    assert difference.interval is not None
    low, high = difference.interval
    assert low == pytest.approx(-high)  # as many items in favour of one as of the other
    assert 0 < high < 1


def test_items_per_second_are_those_of_the_first_ten_with_their_prompts() -> None:
    table5 = Reproduction(PAPER_TABLES["table5"], ["embedded"], ["smcalflow"])
    timed = [record(RIGHT, 1.5, 0.5)] * 9 + [Record.failed("no answer")]
    later = [record(RIGHT, 100.0, 100.0)] * 2
    cell = cell_result(table5, "smcalflow", {"target": "canonical", **BEAM_OF_5}, [*timed, *later, None])
    made = report(table5, smcalflow=results(cell))
    (line,) = [line for line in made.parts[0][1] if line.row.labels == ("5", "BS") and not line.paper]
    assert [figure and figure.text for figure in line.figures] == [None, None, "0.500", None]
    assert "Failed, and counted as wrong: 1 of 12 results" in made.notes


def test_responses_from_the_cache_are_noted_where_speeds_are_printed() -> None:
    table5 = Reproduction(PAPER_TABLES["table5"], ["embedded"], ["smcalflow"])
    cached = replace(record(RIGHT), usage=Usage(cached_requests=1))
    cell = cell_result(table5, "smcalflow", {"target": "canonical", **BEAM_OF_5}, [cached])
    assert any("cache" in note for note in report(table5, smcalflow=results(cell)).notes)


def test_the_accuracy_of_several_domains_is_their_mean() -> None:
    table6 = Reproduction(PAPER_TABLES["table6"], ["embedded"], ["overnight"], items="full")
    options = {"target": "program", "decoder": "speculative", "width": 10, "temperature": 0.5, "constrained": True}
    domains = table6.table.domains("overnight")
    wrong = [cell_result(table6, domain, options, [WRONG] * 3) for domain in domains[1:]]
    found = results(cell_result(table6, domains[0], options, [RIGHT]), *wrong)
    line = report(table6, overnight=found).parts[0][1][-1]
    assert [figure and figure.text for figure in line.figures] == ["0.125"]
    without_one = results(*found.cell_results[:-1])
    assert report(table6, overnight=without_one).parts[0][1][-1].figures == (None,)


def test_rows_of_all_models_for_one_setting_are_adjacent_unless_the_paper_compares_models() -> None:
    models = ["embedded", "gguf:/some/folder/small.gguf"]
    by_setting = report(Reproduction(PAPER_TABLES["table4"], models)).parts[0][1]
    assert [line.label for line in by_setting[:4]] == [
        "Davinci Codex (paper)",
        "embedded",
        "small.gguf",
        "Davinci Codex (paper)",
    ]
    by_model = report(Reproduction(PAPER_TABLES["table7"], models)).parts[0][1]
    assert [line.label for line in by_model[-16::8]] == ["embedded", "small.gguf"]


def test_models_of_the_same_file_name_have_their_full_names() -> None:
    lines = report(Reproduction(PAPER_TABLES["table2"], ["gguf:a/x.gguf", "gguf:b/x.gguf"])).parts[0][1]
    assert [line.label for line in lines[-2:]] == ["gguf:a/x.gguf", "gguf:b/x.gguf"]


@pytest.mark.parametrize("name", PAPER_TABLES)
def test_plain_tables_fit_a_terminal(name: str) -> None:
    table = plain(report(Reproduction(PAPER_TABLES[name], ["embedded"]))).partition("\n")[2]
    assert max(map(len, table.splitlines())) <= 80
