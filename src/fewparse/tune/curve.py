"""The learning curve of a tuning run: as a few lines of text for a terminal, and as an SVG picture."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

BLOCKS = "▁▂▃▄▅▆▇█"
MAX_COLUMNS = 40
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 480.0, 260.0, 52.0, 52.0, 44.0, 44.0
STYLE = """
text { font: 12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: #6b7691; }
.title { font-weight: 600; font-size: 14px; }
.right { fill: none; stroke: #3f6bd8; stroke-width: 2; }
.loss { fill: none; stroke: #cda955; stroke-width: 2; stroke-dasharray: 5 3; }
.right-label { fill: #3f6bd8; }
.loss-label { fill: #a8812c; }
.axis { fill: none; stroke: #8a93a8; stroke-width: 1; }
.chosen { stroke: #8a93a8; stroke-dasharray: 2 3; }
"""


@dataclass(frozen=True)
class LearningCurve:
    """The mean loss of each epoch, and how many held-out examples are right after it.

    `fit` are the losses without the held-out examples, `refit` those of the final training on all examples.
    `held_out_correct` belongs to the epochs of `fit`; without `held_out` examples, both are empty. `epochs` is the
    number of epochs that was chosen or given.
    """

    fit: tuple[float, ...]
    refit: tuple[float, ...]
    held_out_correct: tuple[int, ...]
    held_out: int
    epochs: int

    @property
    def losses(self) -> tuple[float, ...]:
        """The losses to show: of the epochs after which held-out examples were parsed, or else of all."""
        return self.fit or self.refit

    def as_dict(self) -> dict[str, Any]:
        """Return the curve as a JSON object."""
        return asdict(self)

    def text(self) -> list[str]:
        """Return a line for the loss and one for the held-out examples, with a block for each epoch."""
        losses = [round(loss, 2) for loss in self.losses]
        lines = [f"loss             {sparkline(self.losses, 0.0)}  {losses[0]:.2f} to {losses[-1]:.2f}"]
        if self.held_out:
            right = self.held_out_correct
            lines.append(
                f"held-out right   {sparkline(right, 0.0, self.held_out)}  {right[0]} to {right[-1]} of "
                f"{self.held_out}; epoch {self.epochs} of {len(right)} is chosen"
            )
        return lines

    def svg(self, title: str) -> str:
        """Return the curve as an SVG document that is readable on light and dark backgrounds."""
        losses, count = self.losses, max(len(self.losses), 1)
        highest, middle = max(losses, default=1.0) or 1.0, WIDTH / 2
        parts = [
            f'<text class="title" x="{LEFT}" y="20">{escape(title, quote=False)}</text>',
            f'<path class="axis" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}V{TOP}"/>',
            f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">epoch (1 to {len(losses)})</text>',
            path("loss", [loss / highest for loss in losses]),
            label("loss-label", "start", WIDTH - RIGHT + 6, f"{highest:.2f}", "0"),
            f'<text class="loss-label" x="{WIDTH - RIGHT:.1f}" y="{TOP - 8:.1f}" text-anchor="end">loss</text>',
        ]
        if self.held_out:
            x = column(self.epochs - 1, count)
            parts += [
                path("right", [right / self.held_out for right in self.held_out_correct]),
                label("right-label", "end", LEFT - 6, f"{self.held_out}", "0"),
                f'<text class="right-label" x="{LEFT:.1f}" y="{TOP - 8:.1f}">held-out examples right</text>',
                f'<path class="chosen" d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}"/>',
            ]
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" '
            f'width="{WIDTH:.0f}" height="{HEIGHT:.0f}" role="img">'
        )
        described = f"<title>{escape(title, quote=False)}</title>"
        summary = f"<desc>{escape('; '.join(self.text()), quote=False)}</desc>"
        return "\n".join([head, described, summary, f"<style>{STYLE}</style>", *parts, "</svg>\n"])


def sparkline(values: Sequence[float], low: float, high: float | None = None) -> str:
    """Return a block for each value, higher for higher ones; of many values, evenly spaced ones."""
    top = max(values, default=0.0) if high is None else high
    columns = min(len(values), MAX_COLUMNS)
    chosen = [values[round(i * (len(values) - 1) / max(columns - 1, 1))] for i in range(columns)]
    scale = (len(BLOCKS) - 1) / ((top - low) or 1.0)
    return "".join(BLOCKS[max(0, min(len(BLOCKS) - 1, round((value - low) * scale)))] for value in chosen)


def column(index: int, count: int) -> float:
    """Return the horizontal position of an epoch."""
    return LEFT + (WIDTH - LEFT - RIGHT) * (index / (count - 1) if count > 1 else 0.5)


def path(kind: str, shares: Sequence[float]) -> str:
    """Return a line through values from 0 to 1; a single one is a short line."""
    points = [(column(i, len(shares)), TOP + (HEIGHT - TOP - BOTTOM) * (1 - s)) for i, s in enumerate(shares)]
    if len(points) == 1:
        points = [(points[0][0] + shift, points[0][1]) for shift in (-8, 8)]
    drawn = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f'<path class="{kind}" d="M{drawn}"/>'


def label(kind: str, anchor: str, x: float, high: str, low: str) -> str:
    """Return the labels at both ends of a vertical axis."""
    shown = ((TOP + 4, high), (HEIGHT - BOTTOM + 4, low))
    return "".join(
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>' for y, text in shown
    )
