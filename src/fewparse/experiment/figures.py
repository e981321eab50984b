"""Parts of figures for plots by matplotlib: sizes, colours, numbered labels that do not overlap, legends, files.

Figures are made without `pyplot`, which has global state and may need a display. The same results give the same
bytes.
"""

import io
import math
import textwrap
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from fewparse.errors import UsageError
from fewparse.experiment.points import Point, varying_options

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")
"""Of Okabe and Ito's palette, which can be told apart with any colour vision, those that show on white."""
MARKERS = "osD^vPX*"
STYLE_OPTIONS = ("decoder", "model", "retriever", "adapter", "prompt", "target", "constrained", "width", "domain")
RC = {
    "svg.hashsalt": "fewparse",
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10.0,
    "axes.titlelocation": "left",
}
DPI = 144
LEGEND_CHARACTERS = 52
LABEL_HEIGHT, DIGIT_WIDTH, RADII = 11.0, 7.0, (10, 17, 25, 34, 44)
DIRECTIONS = (
    *((1, 1), (-1, 1), (1, -1), (-1, -1), (1, 0), (-1, 0), (0, 1.1), (0, -1.1)),
    *((0.5, 1.2), (-0.5, 1.2), (0.5, -1.2), (-0.5, -1.2)),
)
MISLEADING = 1000.0
"""The penalty of a label that is nearer to another point than to its own; an overlap counts by its area."""


@dataclass(frozen=True)
class Style:
    """How a point is drawn: by the value of one option, and filled or not by that of another."""

    colour: str
    marker: str
    filled: bool

    @property
    def drawing(self) -> dict[str, Any]:
        """The parameters of matplotlib."""
        fill = self.colour if self.filled else "white"
        return {"color": self.colour, "marker": self.marker, "markerfacecolor": fill, "markersize": 6}


def styles(points: Sequence[Point]) -> list[Style]:
    """Return a style for each point; colour and marker always vary together, so that neither is needed alone."""
    differing = varying_options(points)
    names = [name for name in STYLE_OPTIONS if name in differing] or list(differing)
    first, second = [*names, "", ""][:2]

    def number(name: str, point: Point) -> int:
        return distinct([each.options.get(name) for each in points]).index(point.options.get(name))

    return [
        Style(
            COLOURS[number(first, point) % len(COLOURS)],
            MARKERS[number(first, point) % len(MARKERS)],
            number(second, point) % 2 == 0,
        )
        for point in points
    ]


def distinct(values: Sequence[Hashable]) -> list[Hashable]:
    """Return the distinct values in order."""
    return list(dict.fromkeys(values))


@contextmanager
def figure_settings() -> Iterator[None]:
    """Apply the settings of all figures; raise `UsageError` if matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise UsageError("matplotlib is not installed, for plots", "Install it: pip install 'fewparse[report]'")
    import matplotlib

    with matplotlib.rc_context(RC):
        yield


def new_axes(title: str, legend_lines: int) -> tuple[Any, Any]:
    """Return a figure, high enough for its legend, and its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, max(3.8, 0.19 * legend_lines + 0.6)), dpi=DPI)
    axes = figure.subplots()
    axes.set_title(title)
    return figure, axes


def new_panels(title: str, count: int, max_columns: int) -> tuple[Any, list[Any]]:
    """Return a figure and the axes of so many panels, in rows."""
    from matplotlib.figure import Figure

    columns = min(max_columns, count)
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(max(4.8, 3.2 * columns), 2.9 * rows), dpi=DPI)
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for unused in axes[count:]:
        unused.remove()
    figure.suptitle(title, x=0.01, ha="left", fontsize=RC["axes.titlesize"])
    return figure, axes[:count]


def share_axis(axes: Any, label: str) -> None:
    """Make the vertical axis one of shares from 0 to 1."""
    axes.set_ylim(-0.03, 1.03)
    axes.set_ylabel(label)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)


def logarithmic_axis(axes: Any) -> None:
    """Make the horizontal axis logarithmic, with plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    axes.set_xscale("log")
    axes.margins(x=0.08)
    low, high = axes.get_xlim()
    axes.xaxis.set_major_locator(MaxNLocator(6) if high < 10 * low else LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def numbered_legend(
    axes: Any, labels: Sequence[str], looks: Sequence[Mapping[str, Any]], distance: float = 0.04
) -> None:
    """Add a legend to the right of the axes, at a distance in parts of their width; labels are numbered from 1."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], **{"linestyle": "none", **look}) for look in looks]
    texts = [legend_text(number, label) for number, label in enumerate(labels, 1)]
    axes.legend(
        handles, texts, loc="upper left", bbox_to_anchor=(1 + distance, 1.0), frameon=False, borderaxespad=0.0
    )


def legend_text(number: int, label: str) -> str:
    """Return a line of a legend, broken if it is long."""
    return "\n".join(textwrap.wrap(f"{number}  {label}", LEGEND_CHARACTERS, subsequent_indent="    "))


def legend_lines(labels: Sequence[str]) -> int:
    """Return the number of lines of a legend."""
    return sum(legend_text(number, label).count("\n") + 1 for number, label in enumerate(labels, 1))


def number_points(figure: Any, axes: Any, positions: Sequence[tuple[float, float]]) -> None:
    """Write the number of each point beside it, where it covers no other number and no point."""
    figure.draw_without_rendering()
    points_per_pixel = 72 / figure.dpi
    at = [tuple(axes.transData.transform(position) * points_per_pixel) for position in positions]
    line = {"arrowstyle": "-", "color": "#999999", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3}
    for number, (position, offset) in enumerate(zip(positions, label_offsets(at), strict=True), 1):
        axes.annotate(
            str(number),
            position,
            offset,
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=8,
            arrowprops=line if math.hypot(*offset) > 1.5 * RADII[0] else None,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.5},
        )


def label_offsets(at: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return where to write the numbers of points, relative to each: the best of a few places, in turn."""
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in at]
    chosen: list[tuple[float, float]] = []
    candidates = [(dx * radius, dy * radius) for radius in RADII for dx, dy in DIRECTIONS]
    for number, (x, y) in enumerate(at, 1):
        half = DIGIT_WIDTH * len(str(number)) / 2
        costs: list[tuple[float, int, Box]] = []
        for dx, dy in candidates:
            box = (x + dx - half, y + dy - LABEL_HEIGHT / 2, x + dx + half, y + dy + LABEL_HEIGHT / 2)
            nearest = min(math.dist((x + dx, y + dy), other) for other in at)
            misleading = MISLEADING if nearest < math.hypot(dx, dy) - 0.5 else 0.0
            costs.append((sum(overlap(box, other) for other in taken) + misleading, len(costs), box))
        _, best, box = min(costs)
        taken.append(box)
        chosen.append(candidates[best])
    return chosen


Box = tuple[float, float, float, float]


def overlap(first: Box, second: Box) -> float:
    """Return the area that two boxes share."""
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    return max(0.0, width) * max(0.0, height)


def ranges(numbers: Sequence[int]) -> str:
    """Return ascending numbers as text, successive ones as a range: `1, 3-5`."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(f"{part[0]}-{part[-1]}" if len(part) > 2 else ", ".join(map(str, part)) for part in parts)


def spread(values: Sequence[float], distance: float) -> list[float]:
    """Return ascending values, moved as little as possible so that neighbours have at least this distance."""
    clusters: list[tuple[float, int]] = []
    for value in values:
        centre, size = value, 1
        while clusters and centre - clusters[-1][0] < distance * (size + clusters[-1][1]) / 2:
            other, others = clusters.pop()
            centre, size = (centre * size + other * others) / (size + others), size + others
        clusters.append((centre, size))
    return [centre + distance * (i - (size - 1) / 2) for centre, size in clusters for i in range(size)]


def rendered(figure: Any) -> tuple[bytes, bytes]:
    """Return a figure as SVG and as PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    files = []
    for canvas, kind, metadata in ((FigureCanvasSVG, "svg", {"Date": None}), (FigureCanvasAgg, "png", {})):
        canvas(figure)
        file = io.BytesIO()
        figure.savefig(file, format=kind, metadata=metadata, bbox_inches="tight", facecolor="white")
        files.append(file.getvalue())
    return files[0], files[1]
