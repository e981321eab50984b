"""Tables of results: all figures as JSON rows, the main ones as Markdown and plain text; the files of a report."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fewparse.errors import ResultsError
from fewparse.evaluate.metrics import Proportion, count, pair
from fewparse.evaluate.record_lines import Record
from fewparse.evaluate.run import SystemResult
from fewparse.files import check_replaceable, os_reason, write_atomically
from fewparse.lm.usage import Usage
from fewparse.text import without_surrogates

FIGURES, SUMMARY = "report.json", "report.md"
ELSEWHERE = "Write the results to another folder (--out); the records of this one stay."
TOP_K = (1, 2, 5, 10)
Row = dict[str, Any]
OPTIONAL_COLUMNS = ("failed", "cost")
"""Columns that are omitted if they are empty in all rows."""
DIGITS = {"seconds": 4, "cost": 8}


def rows(results: Sequence[SystemResult], reference: str) -> list[Row]:
    """Return one row per system with all figures, and a comparison with the reference system item by item."""
    compared = next(result for result in results if result.name == reference)
    return [row(result, compared) for result in results]


def row(result: SystemResult, reference: SystemResult) -> Row:
    """Return the figures of one system; costs are means over the items that did not fail."""
    records = result.records
    items = len(records)
    answered = [record for record in records if record.failure is None]
    correct = [record.correct_within(1) for record in records]
    paired = pair(correct, [record.correct_within(1) for record in reference.records[:items]])
    decoding = sum(record.seconds for record in answered)
    prefill = sum(record.prompt_seconds for record in answered)
    return {
        "system": result.name,
        "items": items,
        "failed": items - len(answered),
        "accuracy": share(count(correct)),
        "exact_match": share(count([any(record.exact_match[:1]) for record in records])),
        "before_reranking": share(count([record.correct_before_reranking for record in records])),
        "by_vote": share(count([record.correct_by_vote for record in records])),
        "top_k": {str(k): share(count([record.correct_within(k) for record in records])) for k in TOP_K},
        "comparison": {
            "reference": reference.name,
            "only_this_correct": paired.only_first,
            "only_reference_correct": paired.only_second,
            "p_value": round(paired.p_value, 4),
        },
        "items_per_second": round(items_per_second(answered), 3),
        "decoding_seconds": round(decoding / max(1, len(answered)), 4),
        "prompt_seconds": round(prefill / max(1, len(answered)), 4),
        "examples_dropped": round(sum(record.examples_dropped for record in answered) / max(1, len(answered)), 2),
        **mean_usage([record.usage for record in answered]),
    }


def items_per_second(answered: Sequence[Record]) -> float:
    """Return the speed on items that did not fail, prompts included; 0 for a system that takes no time."""
    decoding = sum(record.seconds for record in answered)
    return len(answered) / (decoding + sum(record.prompt_seconds for record in answered)) if decoding else 0.0


def mean_usage(usages: Sequence[Usage]) -> Row:
    """Return the mean of every counter; the cost is None if the cost of any usage is unknown."""
    total = Usage() if usages else Usage(cost=None)
    for usage in usages:
        total += usage
    return {
        name: None if value is None else round(value / max(1, len(usages)), DIGITS.get(name, 2))
        for name, value in total.as_dict().items()
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
    heads, *figures = table(rows)
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "--:|" * (len(heads) - 1)]
    lines += ["| " + " | ".join(line) + " |" for line in figures]
    return "\n".join(lines) + "\n"


def plain(rows: Sequence[Row]) -> str:
    """Return the main figures as aligned plain text."""
    lines = table(rows)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    aligned = []
    for name, *figures in lines:
        columns = (figure.rjust(width) for figure, width in zip(figures, widths[1:], strict=True))
        aligned.append("  ".join([name.ljust(widths[0]), *columns]).rstrip())
    return "\n".join(aligned)


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
