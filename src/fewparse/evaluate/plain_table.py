"""Tables as plain text that fits a terminal of 80 columns: heads and names are wrapped."""

import textwrap
from collections.abc import Sequence
from itertools import zip_longest

WIDTH = 80
MIN_NAME = 8
GAP = "  "


def plain_table(lines: Sequence[Sequence[str]], width: int = WIDTH) -> str:
    """Return a table of its heads and rows; the first column has names, all others are figures.

    Figures are never wrapped, so a table with many columns can be wider.
    """
    widths = [column_width(column) for column in list(zip(*lines, strict=True))[1:]]
    rest = width - sum(len(GAP) + own for own in widths)
    name_width = max(min(max(len(line[0]) for line in lines), rest), MIN_NAME)
    heads, *rows = lines
    wrapped_heads = [textwrap.wrap(head, own) or [""] for head, own in zip(heads[1:], widths, strict=True)]
    shown = aligned([textwrap.wrap(heads[0], name_width) or [""], *wrapped_heads], name_width, widths)
    for name, *figures in rows:
        shown += aligned([textwrap.wrap(name, name_width) or [""], *([f] for f in figures)], name_width, widths)
    return "\n".join(shown)


def column_width(cells: Sequence[str]) -> int:
    """Return the width of a column of figures below a head, whose words can be on several lines."""
    head, *figures = cells
    return max(map(len, [*head.split(), *figures]), default=0)


def aligned(cells: Sequence[Sequence[str]], name_width: int, widths: Sequence[int]) -> list[str]:
    """Return the lines of a row, whose cells have several lines each."""
    lines = []
    for name, *figures in zip_longest(*cells, fillvalue=""):
        columns = (figure.rjust(width) for figure, width in zip(figures, widths, strict=True))
        lines.append(GAP.join([name.ljust(name_width), *columns]).rstrip())
    return lines
