"""The points of plots: one for each cell or, if there are several domains, for the cells averaged over them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fewparse.evaluate.metrics import count
from fewparse.experiment.grid import Cell, varying
from fewparse.experiment.results import CellResult, Results
from fewparse.experiment.statistics import Interval, averages, mean_interval, summary

MAX_K = 10


@dataclass(frozen=True)
class Point:
    """What plots show of a cell, or of the simple average of cells over domains.

    `within` is the share of items with a correct program among the first k candidates, for k from 1 to `MAX_K`;
    `candidates` is the largest number of candidates of an item. `requests` and `seconds` are means per item.
    """

    label: str
    options: Mapping[str, Any]
    accuracy: float
    interval: Interval
    within: tuple[float, ...]
    candidates: int
    requests: float
    seconds: float

    def key_without(self, *names: str) -> str:
        """Return the same text for points that differ in these options only."""
        return json.dumps({name: value for name, value in self.options.items() if name not in names})

    def label_without(self, names: Sequence[str], points: "Sequence[Point]") -> str:
        """Return the options in which the points differ, without these."""
        shown = [name for name in varying_options(points) if name not in names]
        return Cell(self.options).label(shown)


def points_of(results: Results) -> list[Point]:
    """Return the points of all cells with finished items.

    With several domains, cells are averaged over them if there are cells that differ only in the domain and cover
    all domains; otherwise each cell is a point.
    """
    groups = [(each.label, each.cells) for each in averages(results) if len(each.cells) == len(results.domains)]
    if not groups:
        groups = [(cell.label, (cell,)) for cell in results.cell_results]
    return [make_point(label, cells) for label, cells in groups if all(any(cell.finished()) for cell in cells)]


def make_point(label: str, cells: Sequence[CellResult]) -> Point:
    """Return the point of a cell, or of the mean of cells of several domains."""
    figures = [summary(cell) for cell in cells]
    accuracies = [each.accuracy for each in figures]
    records = [[record for _, record in cell.finished()] for cell in cells]
    shared = cells[0].options if len(cells) == 1 else {k: v for k, v in cells[0].options.items() if k != "domain"}
    return Point(
        label,
        shared,
        mean([each.value for each in accuracies]),
        mean_interval(accuracies),
        tuple(
            mean([count([record.correct_within(k) for record in of_cell]).value for of_cell in records])
            for k in range(1, MAX_K + 1)
        ),
        max(len(record.outputs) for of_cell in records for record in of_cell),
        mean([each.requests for each in figures]),
        mean([each.seconds for each in figures]),
    )


def varying_options(points: Sequence[Point]) -> tuple[str, ...]:
    """Return the options in which points differ, in the order of the grid."""
    return varying([Cell(point.options) for point in points])


def mean(values: Sequence[float]) -> float:
    """Return the mean of numbers."""
    return sum(values) / len(values)
