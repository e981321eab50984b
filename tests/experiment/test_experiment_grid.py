"""A grid is expanded into cells; mistakes in its file are reported with their line."""

import itertools
from pathlib import Path
from typing import Any

import pytest

from fewparse.errors import DomainError, UsageError
from fewparse.experiment.grid import AXES, MAX_CELLS, ExperimentTable, GridTable, read_experiment, varying
from fewparse.options import AllOptions

SPECULATIVE = {"domain": "calendar", "decoder": "speculative"}


def cells(*grids: dict[str, Any]) -> list[dict[str, Any]]:
    return [dict(cell.options) for cell in ExperimentTable.model_validate({"grid": list(grids)}).cells()]


def test_the_cells_are_all_combinations_of_the_values() -> None:
    found = cells(SPECULATIVE | {"model": ["a", "b"], "width": [1, 5], "temperature": [0.5, 1.0], "seed": 3})
    assert len(found) == 8
    combinations = {(cell["model"], cell["width"], cell["temperature"]) for cell in found}
    assert combinations == set(itertools.product("ab", (1, 5), (0.5, 1.0)))
    assert all(cell["seed"] == 3 and cell["decoder"] == "speculative" for cell in found)


def test_an_option_that_is_not_given_is_left_to_the_domain() -> None:
    assert cells({"domain": "calendar"}) == [{"domain": "calendar", "model": "embedded"}]


def test_cells_that_differ_in_options_without_effect_are_one_cell() -> None:
    found = cells(
        {"domain": "calendar", "decoder": ["greedy", "beam"], "width": [1, 5], "temperature": [0.1, 0.9]}
    )
    assert [(cell["decoder"], cell.get("width")) for cell in found] == [("greedy", None), ("beam", 1), ("beam", 5)]


def test_the_decoding_model_as_retriever_model_is_the_default() -> None:
    found = cells({"domain": "calendar", "model": ["a", "b"], "retriever_model": "a"})
    assert found == [
        {"domain": "calendar", "model": "a"},
        {"domain": "calendar", "model": "b", "retriever_model": "a"},
    ]


def test_the_same_cell_of_two_grids_is_run_once() -> None:
    assert len(cells(SPECULATIVE | {"width": [1, 5]}, SPECULATIVE | {"width": [5, 10]})) == 3


def test_an_id_depends_on_the_options_only() -> None:
    (first,) = ExperimentTable.model_validate({"grid": [SPECULATIVE]}).cells()
    (second,) = ExperimentTable.model_validate({"name": "x", "grid": dict(reversed(SPECULATIVE.items()))}).cells()
    (other,) = ExperimentTable.model_validate({"grid": [SPECULATIVE | {"seed": 1}]}).cells()
    assert first.id == second.id != other.id


def test_a_label_names_the_options_in_which_cells_differ() -> None:
    grid = SPECULATIVE | {"width": [1, 5], "constrained": [True, False], "paper": True}
    found = ExperimentTable.model_validate({"grid": [grid]}).cells()
    assert varying(found) == ("constrained", "width")
    assert found[0].label(varying(found)) == "constrained, W=1"
    assert found[-1].label(varying(found)) == "unconstrained, W=5"


def test_every_option_of_a_parser_can_be_varied() -> None:
    elsewhere = {"data", "isolate_grammar", "allow_code", "n_best", "execute", "max_risk"}
    assert set(AllOptions.__annotations__) - elsewhere <= set(AXES)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('[[grid]]\ndomain = "c"\nwdith = 3', 3, "unknown key `grid.wdith`"),
        ('[[grid]]\ndomain = "c"\nwidth = []', 3, "`grid.width`"),
        ('[[grid]]\ndomain = "c"\nwidth = [0]', 3, "`grid.width`"),
        ('[[grid]]\ndomain = "c"\ndecoder = "bean"', 3, "Did you mean beam?"),
        ('[[grid]]\ndomain = "c"\nconstrained = "yes"', 3, "`grid.constrained`"),
        ("grid = []", 1, "`grid`"),
        ('[[grid]]\nmodel = "m"', 1, "`grid.domain`: Field required"),
        ('lmit = 3\n[[grid]]\ndomain = "c"', 1, "unknown key `lmit`"),
        ('[[grid]\ndomain = "c"', 1, "not valid TOML"),
    ],
)
def test_a_mistake_is_shown_with_its_line(text: str, line: int, message: str, tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    path.write_text(text)
    with pytest.raises(DomainError) as caught:
        read_experiment(path)
    assert caught.value.line == line
    assert message in str(caught.value)


def test_a_misspelt_option_is_corrected(tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    path.write_text('[grid]\ndomain = "c"\ntemprature = 1.0\n')
    with pytest.raises(DomainError, match="Did you mean temperature"):
        read_experiment(path)


def test_a_grid_that_explodes_is_refused() -> None:
    grid = GridTable.model_validate({"domain": "calendar", "seed": list(range(MAX_CELLS + 1))})
    with pytest.raises(UsageError, match="cells"):
        ExperimentTable(grid=(grid,)).cells()
