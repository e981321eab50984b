"""Data frames have a row per cell, or per cell and item, with options as columns, in either library."""

import csv
from importlib.util import find_spec
from pathlib import Path

import pytest

from fewparse.errors import ResultsError, UsageError
from fewparse.evaluate.record_lines import Record
from fewparse.experiment import frames
from fewparse.experiment.frames import LIBRARIES, Library, export
from fewparse.experiment.results import Results
from support.experiment_results import make_cell, make_record, make_results


@pytest.fixture
def results() -> Results:
    return make_results(
        make_cell([make_record(False, True), True, None], decoder="beam", width=3, first_seen=[2, None, None]),
        make_cell([Record.failed("no answer"), True, False], decoder="greedy"),
    )


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> Library:
    pytest.importorskip(request.param)
    found: Library = request.param
    return found


def test_items_have_a_row_per_cell_and_item(results: Results, library: Library) -> None:
    frame = results.items(library)
    columns = {name: list(frame[name]) for name in frame.columns}
    assert columns["decoder"] == ["beam"] * 3 + ["greedy"] * 3
    assert columns["item"] == [0, 1, 2, 0, 1, 2]
    assert columns["finished"] == [True, True, False, True, True, True]
    assert columns["rank_of_correct"][:2] == [2, 1]
    assert columns["gold_seen"] == [True, False, False, False, False, False]
    assert columns["failure"][3] == "no answer"
    assert columns["usage_requests"][:2] == [4, 4]
    assert columns["cell"][0] == results.cell_results[0].id


def test_missing_values_leave_integers_and_flags_as_they_are(results: Results, library: Library) -> None:
    frame = results.items(library)
    assert [str(frame[name].dtype) for name in ("width", "correct")] in (
        ["Int64", "boolean"],
        ["Int64", "Boolean"],
    )
    missing = frame["correct"].isna() if library == "pandas" else frame["correct"].is_null()
    assert list(missing) == [False, False, True, False, False, False]


def test_cells_have_a_row_each_with_options_and_figures(results: Results, library: Library) -> None:
    frame = results.cells(library)
    assert list(frame["decoder"]) == ["beam", "greedy"]
    assert list(frame["finished"]) == [2, 3]
    assert list(frame["failed"]) == [0, 1]
    assert list(frame["accuracy"]) == [1 / 2, 1 / 3]
    assert all(
        low < share < high for low, share, high in zip(*(frame[f"accuracy{x}"] for x in LIMITS), strict=True)
    )


LIMITS = ("_low", "", "_high")


def test_the_mean_of_correct_is_the_accuracy(results: Results, library: Library) -> None:
    items, cells = results.items(library), results.cells(library)
    for cell, accuracy in zip(cells["cell"], cells["accuracy"], strict=True):
        flags = [ok for own, ok, done in zip(*(items[x] for x in COLUMNS), strict=True) if own == cell and done]
        assert sum(flags) / len(flags) == accuracy


COLUMNS = ("cell", "correct", "finished")


def test_a_csv_file_has_the_values_of_the_frame(results: Results, library: Library, tmp_path: Path) -> None:
    export(results, tmp_path / "items.csv", library)
    with (tmp_path / "items.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["utterance"] for row in rows] == [item.utterance for c in results.cell_results for item in c.items]
    assert [row["width"] for row in rows] == ["3"] * 3 + [""] * 3


def test_a_parquet_file_is_written_or_its_library_named(results: Results, tmp_path: Path) -> None:
    path = tmp_path / "cells.parquet"
    if find_spec("pyarrow") is None and find_spec("pandas") is not None:
        with pytest.raises(UsageError, match="pyarrow"):
            export(results, path)
        assert list(tmp_path.iterdir()) == []
    else:
        export(results, path)
        assert path.read_bytes()[:4] == b"PAR1"


@pytest.mark.parametrize("name", ["items.xls", "other.csv", "items"])
def test_other_files_are_refused(results: Results, tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"cannot export.*\n.*items\.csv"):
        export(results, tmp_path / name)


def test_a_folder_is_not_overwritten(results: Results, tmp_path: Path) -> None:
    (tmp_path / "cells.csv").mkdir()
    with pytest.raises(ResultsError, match="it is a folder"):
        export(results, tmp_path / "cells.csv")


def test_a_missing_library_is_named_with_the_command_to_install_it(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"neither pandas nor polars is installed.*\n.*pip install pandas"):
        results.cells()
    with pytest.raises(UsageError, match=r"polars is not installed.*\n.*pip install polars"):
        results.items("polars")


def test_an_experiment_without_cells_has_an_empty_frame() -> None:
    assert len(make_results().items()) == 0
