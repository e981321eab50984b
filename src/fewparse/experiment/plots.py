"""Plots of an experiment as SVG and PNG: accuracy by cost, width and temperature, top k, number of examples."""

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fewparse.experiment.figures import (
    figure_settings,
    legend_lines,
    logarithmic_axis,
    new_axes,
    new_panels,
    number_points,
    numbered_legend,
    ranges,
    rendered,
    share_axis,
    spread,
    styles,
)
from fewparse.experiment.points import MAX_K, Point, points_of
from fewparse.experiment.results import Results
from fewparse.experiment.statistics import Interval

MAX_PANEL_COLUMNS = 3
MAX_CURVES = 16
MIN_LABEL_DISTANCE = 0.04
DIGIT_SPACE = 0.013
"""The width of a character beside a curve, in parts of the width of the axes."""


@dataclass(frozen=True)
class Plot:
    """A plot: the name of its files, its title and its pictures."""

    name: str
    title: str
    svg: bytes
    png: bytes


def make_plots(results: Results) -> list[Plot]:
    """Return the plots that make sense for the cells; raise `UsageError` if matplotlib is not installed."""
    points = points_of(results)
    averaged = any("domain" not in point.options for point in points)
    note = f", average of {len(results.domains)} domains" if averaged else ""
    plots = []
    with figure_settings():
        for name, (title, draw) in PLOTS.items():
            figure = draw(points, title + note)
            if figure is not None:
                plots.append(Plot(name, title + note, *rendered(figure)))
    return plots


def against_requests(points: Sequence[Point], title: str) -> Any:
    """Draw accuracy against requests; None if there are fewer than two points with requests."""
    return against(points, title, "requests per item", lambda point: point.requests)


def against_seconds(points: Sequence[Point], title: str) -> Any:
    """Draw accuracy against time; None if there are fewer than two points with a time."""
    return against(points, title, "seconds per item (prefill and decoding)", lambda point: point.seconds)


def against(points: Sequence[Point], title: str, axis: str, cost: Callable[[Point], float]) -> Any:
    """Draw accuracy with its interval against a cost on a logarithmic axis."""
    points = [point for point in points if cost(point) > 0]
    if len(points) < 2:
        return None
    labels = [point.label for point in points]
    figure, axes = new_axes(title, legend_lines(labels))
    looks = [style.drawing for style in styles(points)]
    for point, look in zip(points, looks, strict=True):
        x = cost(point)
        axes.vlines(x, *point.interval, color=look["color"], alpha=0.35, linewidth=1.2)
        axes.plot([x], [point.accuracy], linestyle="none", **look)
    logarithmic_axis(axes)
    axes.set_xlabel(axis)
    share_axis(axes, "accuracy (95% interval)")
    numbered_legend(axes, labels, looks)
    number_points(figure, axes, [(cost(point), point.accuracy) for point in points])
    return figure


def top_k(points: Sequence[Point], title: str) -> Any:
    """Draw the share of items with a correct program among k candidates; None if all have one candidate."""
    largest = min(MAX_K, max((point.candidates for point in points), default=0))
    if largest < 2:
        return None
    curves = [
        Curve(point.label, point, [(k, point.within[k - 1]) for k in range(1, largest + 1)]) for point in points
    ]
    return curves_figure(curves, title, "k candidates", "share of items with a correct program")


def by_examples(points: Sequence[Point], title: str) -> Any:
    """Draw accuracy by number of examples in the prompt; None if it does not vary between equal points."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        if "examples" in point.options:
            groups.setdefault(point.key_without("examples"), []).append(point)
    series = [sorted(group, key=lambda point: point.options["examples"]) for group in groups.values()]
    series = [group for group in series if len(group) > 1]
    if not series:
        return None
    curves = [
        Curve(
            group[0].label_without(["examples"], points),
            group[0],
            [(point.options["examples"], point.accuracy) for point in group],
            [point.interval for point in group],
        )
        for group in series
    ]
    return curves_figure(curves, title, "examples in the prompt", "accuracy (95% interval)")


@dataclass(frozen=True)
class Curve:
    """A curve of shares: its label, the point whose style it has, its positions and perhaps their intervals."""

    label: str
    style: Point
    positions: Sequence[tuple[int, float]]
    intervals: Sequence[Interval] = ()


def curves_figure(curves: Sequence[Curve], title: str, x_label: str, y_label: str) -> Any:
    """Draw curves, numbered at their right ends; of many, only those that end highest."""
    if len(curves) > MAX_CURVES:
        title += f", the highest {MAX_CURVES} of {len(curves)}"
        highest = sorted(range(len(curves)), key=lambda i: -curves[i].positions[-1][1])[:MAX_CURVES]
        curves = [curves[i] for i in sorted(highest)]
    labels = [curve.label for curve in curves]
    figure, axes = new_axes(title, legend_lines(labels))
    looks = [
        {**style.drawing, "linestyle": "-" if style.filled else "--"}
        for style in styles([curve.style for curve in curves])
    ]
    for curve, look in zip(curves, looks, strict=True):
        axes.plot(*zip(*curve.positions, strict=True), linewidth=1.3, **{**look, "markersize": 4})
        for (x, _), interval in zip(curve.positions, curve.intervals, strict=False):
            axes.vlines(x, *interval, color=look["color"], alpha=0.35, linewidth=1.2)
    axes.set_xticks(sorted({x for curve in curves for x, _ in curve.positions}))
    axes.set_xlabel(x_label)
    share_axis(axes, y_label)
    if len(curves) > 1:
        longest = max(map(len, number_ends(axes, curves)))
        numbered_legend(axes, labels, looks, distance=0.04 + DIGIT_SPACE * longest)
    return figure


def number_ends(axes: Any, curves: Sequence[Curve]) -> list[str]:
    """Write the numbers of curves beside their right ends, those of one end together; return the texts."""
    ends: dict[tuple[int, float], list[int]] = {}
    for number, curve in enumerate(curves, 1):
        ends.setdefault(curve.positions[-1], []).append(number)
    order = sorted(ends, key=lambda end: end[1])
    texts = [ranges(ends[end]) for end in order]
    right = max(x for x, _ in order)
    line = {"arrowstyle": "-", "color": "#999999", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 2}
    heights = spread([y for _, y in order], MIN_LABEL_DISTANCE)
    for text, end, height in zip(texts, order, heights, strict=True):
        place = axes.transData.transform((right, height)) - axes.transData.transform(end)
        offset = place * 72 / axes.figure.dpi + (16, 0)
        axes.annotate(text, end, offset, textcoords="offset points", va="center", fontsize=8, arrowprops=line)
    return texts


def width_temperature(points: Sequence[Point], title: str) -> Any:
    """Draw accuracy by width and temperature, a panel for each combination of the others.

    None unless both vary within a combination.
    """
    groups: dict[str, list[Point]] = {}
    for point in points:
        if {"width", "temperature"} <= point.options.keys():
            groups.setdefault(point.key_without("width", "temperature"), []).append(point)
    panels = [
        group
        for group in groups.values()
        if all(len(values(group, name)) > 1 for name in ("width", "temperature"))
    ]
    if not panels:
        return None
    figure, grid = new_panels(title, len(panels), MAX_PANEL_COLUMNS)
    for axes, group in zip(grid, panels, strict=True):
        heat_map(axes, group, group[0].label_without(["width", "temperature"], [each[0] for each in panels]))
    figure.tight_layout()
    return figure


def heat_map(axes: Any, points: Sequence[Point], title: str) -> None:
    """Draw accuracies in a grid of widths and temperatures; combinations without a cell are empty."""
    widths, temperatures = values(points, "width"), values(points, "temperature")
    found = {(point.options["width"], point.options["temperature"]): point.accuracy for point in points}
    rows = [[found.get((width, temperature), math.nan) for width in widths] for temperature in temperatures]
    axes.imshow(rows, cmap="viridis", vmin=0, vmax=1, origin="lower", aspect="auto")
    for j, row in enumerate(rows):
        for i, accuracy in enumerate(row):
            if not math.isnan(accuracy):
                colour = "white" if accuracy < 0.6 else "black"
                axes.text(i, j, f"{accuracy:.2f}", ha="center", va="center", color=colour)
    for i in range(1, len(widths)):
        axes.axvline(i - 0.5, color="white")
    for j in range(1, len(temperatures)):
        axes.axhline(j - 0.5, color="white")
    axes.set_xticks(range(len(widths)), [f"{width:g}" for width in widths])
    axes.set_yticks(range(len(temperatures)), [f"{temperature:g}" for temperature in temperatures])
    axes.set_xlabel("width W")
    axes.set_ylabel("temperature T")
    axes.set_title(textwrap.fill(title, 34), fontsize=9)


def values(points: Sequence[Point], name: str) -> list[float]:
    """Return the distinct values of an option of numbers, ascending."""
    return sorted({point.options[name] for point in points})


PLOTS: dict[str, tuple[str, Callable[[Sequence[Point], str], Any]]] = {
    "accuracy-requests": ("Accuracy against requests", against_requests),
    "accuracy-seconds": ("Accuracy against time", against_seconds),
    "top-k": ("A correct program among the first k candidates", top_k),
    "width-temperature": ("Accuracy by width and temperature", width_temperature),
    "examples": ("Accuracy by number of examples", by_examples),
}
