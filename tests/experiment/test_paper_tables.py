"""The experiments of a table have exactly the cells of the paper's table, and tables share cells."""

from typing import Any

import pytest

from fewparse.experiment.grid import Cell
from fewparse.experiment.paper_figures import Dataset, EvaluationSet
from fewparse.experiment.paper_tables import PAPER_TABLES
from fewparse.experiment.reproduction import Reproduction


def cells(name: str, dataset: Dataset, **settings: Any) -> tuple[Cell, ...]:
    return Reproduction(PAPER_TABLES[name], ["embedded"], **settings).experiments()[dataset].cells()


@pytest.mark.parametrize(
    ("name", "overnight", "smcalflow"),
    [
        ("table2", 1, 1),
        ("table3", 2, 2),  # two targets
        ("table4", 4, 4),  # constrained or not, two beams
        ("table5", 14, 14),  # 7 rows, two targets
        ("table6", 16, 2),  # two targets, eight domains
        ("table7", 8, 8),  # two targets, constrained or not, two beams
        ("table8", 22, 22),  # 11 rows, two targets
    ],
)
def test_a_table_has_the_cells_of_the_paper(name: str, overnight: int, smcalflow: int) -> None:
    assert (len(cells(name, "overnight")), len(cells(name, "smcalflow"))) == (overnight, smcalflow)


@pytest.mark.parametrize("dataset", ["overnight", "smcalflow"])
@pytest.mark.parametrize(("part", "whole"), [("table2", "table7"), ("table4", "table7"), ("table5", "table8")])
def test_a_table_is_part_of_a_larger_one(part: str, whole: str, dataset: Dataset) -> None:
    assert set(cells(part, dataset)) < set(cells(whole, dataset))


def test_tables_2_and_3_and_the_beam_searches_of_table_8_are_cells_of_table_7() -> None:
    all_beams = set(cells("table7", "overnight"))
    assert set(cells("table3", "overnight")) < all_beams
    beams = {cell for cell in cells("table8", "overnight") if cell.options["decoder"] == "beam"}
    assert len(beams) == 4
    assert beams < all_beams


def test_every_model_has_all_cells() -> None:
    (experiment,) = (
        Reproduction(PAPER_TABLES["table4"], ["embedded", "gguf:a.gguf"], ["smcalflow"]).experiments().values()
    )
    assert [cell.model for cell in experiment.cells()].count("gguf:a.gguf") == 4
    assert len(experiment.cells()) == 8


def test_the_cells_are_in_paper_mode_or_without_adapters() -> None:
    (paper,) = cells("table2", "overnight", retriever="bm25")
    assert paper.options == {
        "domain": "overnight/calendar",
        "model": "embedded",
        "paper": True,
        "target": "canonical",
        "retriever": "bm25",
        "constrained": True,
        "decoder": "beam",
        "width": 5,
    }
    (improved,) = cells("table2", "overnight", paper=False, retriever_model="gguf:b.gguf")
    assert "paper" not in improved.options
    assert improved.options["adapter"] == "none"
    assert improved.options["retriever_model"] == "gguf:b.gguf"


@pytest.mark.parametrize(
    ("items", "limit", "overnight", "smcalflow"),
    [
        ("subset", None, ("test", 100), ("test", 200)),
        ("subset", 150, ("test", 100), ("test", 150)),
        ("full", None, ("test", None), ("full", None)),
        ("full", 5, ("test", 5), ("full", 5)),
    ],
)
def test_the_items_are_the_first_of_the_split(
    items: EvaluationSet, limit: int | None, overnight: tuple[str, int], smcalflow: tuple[str, int]
) -> None:
    found = Reproduction(PAPER_TABLES["table7"], ["embedded"], items=items, limit=limit).experiments()
    assert [(table.split, table.limit) for table in found.values()] == [overnight, smcalflow]


def test_results_of_all_items_have_folders_of_their_own() -> None:
    names = {
        Reproduction(table, ["embedded"], items=items).folder_name(dataset)
        for table in PAPER_TABLES.values()
        for items in ("subset", "full")
        for dataset in ("overnight", "smcalflow")
    }
    assert names == {"overnight", "overnight-full", "smcalflow", "smcalflow-full"}
