"""Tables of results: all figures as JSON rows, the main ones as Markdown and plain text; the files of a report."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fewparse.errors import ResultsError
from fewparse.evaluate.metrics import Proportion, pair
from fewparse.evaluate.plain_table import plain_table
from fewparse.evaluate.run import SystemResult
from fewparse.evaluate.summary import summarise
from fewparse.files import check_replaceable, os_reason, write_atomically
from fewparse.lm.usage import Usage
from fewparse.text import without_surrogates

FIGURES, SUMMARY = "report.json", "report.md"
ELSEWHERE = "Write the results to another folder (--out); the records of this one stay."
Row = dict[str, Any]
OPTIONAL_COLUMNS = ("failed", "cost")
"""Columns that are omitted if they are empty in all rows."""
COST_COLUMNS = ("items/s", "requests", "forward tokens", "cost")
DIGITS = {"seconds": 4, "cost": 8}


def rows(results: Sequence[SystemResult], reference: str) -> list[Row]:
    """Return one row per system with all figures, and a comparison with the reference system item by item."""
    compared = next(result for result in results if result.name == reference)
    return [row(result, compared) for result in results]


def row(result: SystemResult, reference: SystemResult) -> Row:
    """Return the figures of one system; costs are means over the items that did not fail."""
    records = result.records
    figures = summarise(records)
    correct = [record.correct_within(1) for record in records]
    paired = pair(correct, [record.correct_within(1) for record in reference.records[: len(records)]])
    return {
        "system": result.name,
        "items": figures.items,
        "failed": figures.failed,
        "accuracy": share(figures.accuracy),
        "exact_match": share(figures.exact_match),
        "before_reranking": share(figures.before_reranking),
        "by_vote": share(figures.by_vote),
        "top_k": {str(k): share(proportion) for k, proportion in figures.top_k.items()},
        "comparison": {
            "reference": reference.name,
            "only_this_correct": paired.only_first,
            "only_reference_correct": paired.only_second,
            "p_value": round(paired.p_value, 4),
        },
        "items_per_second": round(figures.items_per_second, 3),
        "decoding_seconds": round(figures.decoding_seconds, 4),
        "prompt_seconds": round(figures.prompt_seconds, 4),
        "examples_dropped": round(figures.examples_dropped, 2),
        **{
            name: None if mean is None else round(mean, DIGITS.get(name, 2))
            for name, mean in figures.usage.items()
        },
    }


def failures(results: Sequence[SystemResult]) -> Counter[str]:
    """Count the error messages of failed items over all systems."""
    records = (record for result in results for record in result.records)
    return Counter(" ".join(record.failure.split()) for record in records if record.failure is not None)


def total_usage(results: Sequence[SystemResult]) -> Usage:
    """Return the usage of all systems on all items."""
    total = Usage()
    for result in results:
        for record in result.records:
            total += record.usage
    return total


def failed_items(results: Sequence[SystemResult]) -> int:
    """Return the number of items on which at least one system failed."""
    items = zip(*(result.records for result in results), strict=True)
    return sum(any(record.failure is not None for record in item) for item in items)


def share(proportion: Proportion) -> Row:
    """Return a share with Wilson's 95% interval."""
    low, high = proportion.interval()
    return {"value": round(proportion.value, 4), "low": round(low, 4), "high": round(high, 4)}


def cells(row: Row) -> dict[str, str]:
    """Return the main figures of a row by column; costs are empty for a system without a model."""
    accuracy = row["accuracy"]
    has_model = row["requests"] > 0
    return {
        "system": row["system"],
        "accuracy (95% interval)": f"{accuracy['value']:.2f} ({accuracy['low']:.2f}-{accuracy['high']:.2f})",
        "exact match": f"{row['exact_match']['value']:.2f}",
        "before reranking": f"{row['before_reranking']['value']:.2f}" if has_model else "",
        "by vote": f"{row['by_vote']['value']:.2f}" if has_model else "",
        "top 5": f"{row['top_k']['5']['value']:.2f}",
        "top 10": f"{row['top_k']['10']['value']:.2f}",
        "failed": str(row["failed"] or ""),
        "items/s": f"{row['items_per_second']:.2f}" if has_model else "",
        "requests": f"{row['requests']:.1f}" if has_model else "",
        "forward tokens": f"{row['forward_tokens']:.1f}" if has_model else "",
        "cost": dollars(row["cost"]) if has_model else "",
    }


def dollars(cost: float | None) -> str:
    """Format the cost of an item; empty if it is free."""
    if cost is None:
        return "unknown"
    return f"${cost:.6f}" if cost else ""


def table(rows: Sequence[Row]) -> list[list[str]]:
    """Return the column heads, followed by the main figures of each row."""
    lines = [cells(row) for row in rows]
    heads = [head for head in lines[0] if head not in OPTIONAL_COLUMNS or any(line[head] for line in lines)]
    return [heads, *([line[head] for head in heads] for line in lines)]


def markdown(rows: Sequence[Row]) -> str:
    """Return the main figures as a Markdown table."""
    return markdown_table(table(rows))


def markdown_table(lines: Sequence[Sequence[str]], names: int = 1) -> str:
    """Return a Markdown table of its heads and rows; all columns but the first `names` are numbers."""
    heads, *_ = escaped = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    rule = "|" + "---|" * names + "--:|" * (len(heads) - names)
    first, *rest = ["| " + " | ".join(line) + " |" for line in escaped]
    return "\n".join([first, rule, *rest]) + "\n"


def plain(rows: Sequence[Row]) -> str:
    """Return the main figures as plain text of 80 columns: correctness, then the cost of systems with a model."""
    heads, *lines = table(rows)
    cost = [i for i, head in enumerate(heads) if head in COST_COLUMNS]
    quality = [i for i in range(len(heads)) if i not in cost]
    with_model = [line for row, line in zip(rows, lines, strict=True) if row["requests"] > 0]
    tables = [plain_table([[line[i] for i in quality] for line in (heads, *lines)])]
    if with_model:
        tables.append(plain_table([[line[i] for i in (0, *cost)] for line in (heads, *with_model)]))
    return "\n\n".join(tables)


def check_report(folder: Path) -> None:
    """Raise `ResultsError` if something else has the names of the files of a report in a folder."""
    for name in (FIGURES, SUMMARY):
        try:
            check_replaceable(folder / name)
        except OSError as error:
            raise not_written(folder / name, error) from None


def write_report(folder: Path, figures: str, summary: str, *, names: tuple[str, str] = (FIGURES, SUMMARY)) -> None:
    """Write all figures as JSON and the main ones as Markdown; raise `ResultsError` if that fails.

    Each file is replaced as a whole: a process that is killed leaves the old one or the new one.
    """
    for name, text in zip(names, (figures, summary), strict=True):
        try:
            write_atomically(folder / name, without_surrogates(text).encode("utf-8"))
        except OSError as error:
            raise not_written(folder / name, error) from None


def not_written(path: Path, error: OSError) -> ResultsError:
    """Return the error for a file of a report that cannot be written."""
    return ResultsError(f"cannot be written: {os_reason(error)}", path, hint=ELSEWHERE)
