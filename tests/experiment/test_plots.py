"""Plots are the same bytes for the same results, well-formed, without overlaps, and absent if they say nothing."""

import itertools
import random
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewparse.errors import UsageError
from fewparse.evaluate.record_lines import Record
from fewparse.experiment import figures
from fewparse.experiment.figures import DIGIT_WIDTH, LABEL_HEIGHT, label_offsets, overlap, ranges, spread
from fewparse.experiment.plots import Plot, make_plots
from fewparse.experiment.points import points_of
from fewparse.experiment.results import CellResult, Results
from support.experiment_results import make_cell, make_record, make_results

pytest.importorskip("matplotlib")


def records(seed: object, candidates: int = 3) -> list[Record]:
    """Return random records of ten items."""
    source = random.Random(str(seed))
    return [
        make_record(
            *(source.random() < 0.5 for _ in range(candidates)),
            requests=source.randint(1, 50),
            seconds=source.random(),
        )
        for _ in range(10)
    ]


@pytest.fixture(scope="module")
def grid() -> Results:
    return make_results(
        *(
            make_cell(records((w, t, e)), decoder="speculative", width=w, temperature=t, examples=e)
            for w in (1, 3)
            for t in (0.5, 1.0)
            for e in (2, 5)
        ),
        make_cell(records("greedy"), decoder="greedy", examples=2),
    )


@pytest.fixture(scope="module")
def plots(grid: Results) -> dict[str, Plot]:
    return {plot.name: plot for plot in make_plots(grid)}


def texts(plot: Plot) -> list[str]:
    """Return all texts of a picture."""
    tree = ElementTree.fromstring(plot.svg)
    return ["".join(each.itertext()).strip() for each in tree.iter("{http://www.w3.org/2000/svg}text")]


def test_a_full_grid_has_all_plots(plots: dict[str, Plot]) -> None:
    assert list(plots) == ["accuracy-requests", "accuracy-seconds", "top-k", "width-temperature", "examples"]


def test_plots_are_the_same_bytes_for_the_same_results(grid: Results, plots: dict[str, Plot]) -> None:
    assert {plot.name: plot for plot in make_plots(grid)} == plots


def test_pictures_are_svg_with_text_and_png(plots: dict[str, Plot]) -> None:
    for plot in plots.values():
        assert any(plot.title in text for text in texts(plot))
        assert plot.png.startswith(b"\x89PNG")


def test_every_point_has_its_number_and_its_label(grid: Results, plots: dict[str, Plot]) -> None:
    found = texts(plots["accuracy-requests"])
    for number, cell in enumerate(grid.cell_results, 1):
        assert str(number) in found
        assert f"{number}  {cell.label}".split() in [text.split() for text in found]


def test_a_heat_map_shows_the_accuracy_of_each_combination(grid: Results, plots: dict[str, Plot]) -> None:
    shown = [text for text in texts(plots["width-temperature"]) if len(text) == 4 and text[1] == "."]
    accuracies = [point.accuracy for point in points_of(grid) if "width" in point.options]
    assert sorted(shown) == sorted(f"{accuracy:.2f}" for accuracy in accuracies)


@pytest.mark.parametrize("panels", [1, 2, 3, 4])
def test_a_heat_map_has_a_panel_for_each_combination_of_the_other_options(panels: int) -> None:
    cells = [
        make_cell([True, w == t], width=w, temperature=t, examples=e)
        for e in range(panels)
        for w in (1, 3)
        for t in (1.0, 3.0)
    ]
    (heat_map,) = (plot for plot in make_plots(make_results(*cells)) if plot.name == "width-temperature")
    assert texts(heat_map).count("width W") == panels
    shown = [text for text in texts(heat_map) if text in ("0.50", "1.00")]
    assert sorted(shown) == ["0.50"] * (2 * panels) + ["1.00"] * (2 * panels)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([], []),
        ([make_cell([True, False], width=1)], []),
        ([make_cell([None], width=1), make_cell([None], width=2)], []),
        ([make_cell([True], width=1), make_cell([False], width=2)], ["accuracy-requests", "accuracy-seconds"]),
    ],
)
def test_plots_that_say_nothing_are_absent(cells: list[CellResult], expected: list[str]) -> None:
    assert [plot.name for plot in make_plots(make_results(*cells))] == expected


def test_cells_of_several_domains_are_averaged() -> None:
    results = make_results(
        *(make_cell([True, flag], domain=domain, width=w) for domain, flag in DOMAINS for w in (1, 2))
    )
    found = points_of(results)
    assert [(point.label, point.accuracy) for point in found] == [("W=1", 0.75), ("W=2", 0.75)]
    assert make_plots(results)[0].title == "Accuracy against requests, average of 2 domains"


DOMAINS = (("a", True), ("b", False))


def test_without_common_cells_each_cell_is_a_point() -> None:
    results = make_results(make_cell([True], domain="a", width=1), make_cell([False], domain="b", width=2))
    assert [point.accuracy for point in points_of(results)] == [1, 0]


def test_numbers_of_points_cover_neither_each_other_nor_other_points() -> None:
    source = random.Random(0)
    at = [(source.uniform(0, 360), source.uniform(0, 220)) for _ in range(24)]
    boxes = []
    for number, ((x, y), (dx, dy)) in enumerate(zip(at, label_offsets(at), strict=True), 1):
        half = DIGIT_WIDTH * len(str(number)) / 2
        boxes.append((x + dx - half, y + dy - LABEL_HEIGHT / 2, x + dx + half, y + dy + LABEL_HEIGHT / 2))
    assert all(overlap(first, second) == 0 for first, second in itertools.combinations(boxes, 2))
    assert all(overlap(box, (x - 3, y - 3, x + 3, y + 3)) == 0 for box in boxes for x, y in at)


@given(st.lists(st.floats(0, 1), max_size=12).map(sorted))
def test_spread_values_keep_their_order_and_distance(values: list[float]) -> None:
    moved = spread(values, 0.05)
    assert len(moved) == len(values)
    assert all(b - a >= 0.05 - 1e-9 for a, b in itertools.pairwise(moved))
    if all(b - a >= 0.05 for a, b in itertools.pairwise(values)):
        assert moved == pytest.approx(values)


def test_successive_numbers_are_written_as_ranges() -> None:
    assert ranges([1, 3, 4, 5, 7, 8]) == "1, 3-5, 7, 8"


def test_plots_need_no_display_and_no_pyplot() -> None:
    script = "import sys; from fewparse.experiment import plots, figures; figures.new_axes('', 1); "
    done = subprocess.run(
        [sys.executable, "-c", script + "print('matplotlib.pyplot' in sys.modules)"],
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "False", done.stderr


def test_missing_matplotlib_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"matplotlib is not installed.*\n.*pip install"):
        make_plots(make_results(make_cell([True])))
