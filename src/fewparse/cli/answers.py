"""Show the answer of a program: as a table if it has columns and rows, otherwise on one line."""

from typing import Any

from fewparse.cli.console import out
from fewparse.example import answer_text
from fewparse.text import printable

SHOWN_ROWS = 50
PIPE_WIDTH = 100_000
MAX_CELL = 200
RULED = "    \n    \n ── \n    \n    \n    \n    \n    \n"
"""The box of a table: a line below the header, and nothing else."""


def is_table(answer: Any) -> bool:
    """Return whether an answer has columns and rows, such as that of a query."""
    return isinstance(answer, dict) and answer.keys() == {"columns", "rows", "truncated"}


def show_answer(answer: Any, prefix: str = "") -> None:
    """Print an answer after a prefix; a table of more than one value starts on the next line."""
    if not is_table(answer):
        out.print(f"{prefix}{answer_text(answer)}", style="green", markup=False)
        return
    columns, rows = answer["columns"], answer["rows"]
    if not rows:
        out.print(f"{prefix}no rows", style="green", markup=False)
    elif len(rows) == 1 and len(columns) == 1:
        out.print(f"{prefix}{cell_text(rows[0][0])}", style="green", markup=False)
    else:
        show_table(columns, rows[:SHOWN_ROWS], len(prefix))
        if len(rows) > SHOWN_ROWS:
            out.print(f"{' ' * len(prefix)}... and {len(rows) - SHOWN_ROWS} more rows: --json has them all")
    if answer["truncated"]:
        out.print(f"{' ' * len(prefix)}(cut at {len(rows):,} rows: the query has more)", style="yellow")


def show_table(columns: list[str], rows: list[list[Any]], indent: int) -> None:
    """Print a table that fits into the width of the terminal; long cells end in an ellipsis."""
    from rich.box import Box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=Box(RULED), pad_edge=False, show_edge=False, header_style="green", style="dim")
    for i, name in enumerate(columns):
        numbers = all(isinstance(row[i], int | float) for row in rows if row[i] is not None)
        table.add_column(
            Text(short(name)),
            justify="right" if numbers else "left",
            no_wrap=True,
            overflow="ellipsis",
            min_width=4,
        )
    for row in rows:
        table.add_row(*(Text(cell_text(cell), style="green") for cell in row))
    width = out.width if out.is_terminal else PIPE_WIDTH
    with out.capture() as captured:
        out.print(table, soft_wrap=False, width=max(20, width - indent), crop=False)
    for line in captured.get().splitlines():
        out.file.write(f"{' ' * indent}{line.rstrip()}\n")


def cell_text(value: Any) -> str:
    """Return a value as it is shown in a cell."""
    if value is None:
        return "NULL"
    return short(value if isinstance(value, str) else answer_text(value))


def short(text: str) -> str:
    """Return the start of a text on one line, safe to show."""
    line = printable(" ".join(text.split()) if len(text.split("\n")) > 1 else text)
    return line if len(line) <= MAX_CELL else f"{line[: MAX_CELL - 1]}…"
