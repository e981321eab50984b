"""Parts of pages in Markdown."""

from collections.abc import Iterable, Sequence

GENERATED = "<!-- Written by tools/reference_pages.py: run make reference. -->"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    lines = [header, ["---"] * len(header), *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def range_text(low: float | None, high: float | None) -> str:
    """Return the range of a number, as it follows its kind."""
    match low, high:
        case None, None:
            return ""
        case _, None:
            return f" ≥ {low:,}"
        case None, _:
            return f" ≤ {high:,}"
    return f" {low:,} to {high:,}"
