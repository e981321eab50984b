"""Tables of what came out: every figure for programs, the main ones for people."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from fewparse.evaluate.metrics import Proportion, count, pair
from fewparse.evaluate.run import Outcome
from fewparse.lm.usage import Usage

TOP = (1, 2, 5, 10)
Row = dict[str, Any]
ONLY_IF_ANY = ("failed", "cost")
"""Columns that a table has only where they say something."""
DIGITS = {"seconds": 4, "cost": 8}


def rows(outcomes: Sequence[Outcome], reference: str) -> list[Row]:
    """One row a system, every figure that is known; each is compared with the reference item by item."""
    against = next(outcome for outcome in outcomes if outcome.name == reference)
    return [row(outcome, against) for outcome in outcomes]


def row(outcome: Outcome, reference: Outcome) -> Row:
    """The figures of one system; costs are those of an item that did not fail."""
    records = outcome.records
    items = len(records)
    answered = [record for record in records if record.failure is None]
    right = [record.right_within(1) for record in records]
    compared = pair(right, [record.right_within(1) for record in reference.records[:items]])
    decoding = sum(record.seconds for record in answered)
    reading = sum(record.prompt_seconds for record in answered)
    return {
        "system": outcome.name,
        "items": items,
        "failed": items - len(answered),
        "accuracy": share(count(right)),
        "exact_program": share(count([any(record.exact[:1]) for record in records])),
        "model_alone": share(count([record.model_right for record in records])),
        "by_vote": share(count([record.vote_right for record in records])),
        "top": {str(k): share(count([record.right_within(k) for record in records])) for k in TOP},
        "against": {
            "system": reference.name,
            "only_this_right": compared.only_first,
            "only_that_right": compared.only_second,
            "p": round(compared.p_value, 4),
        },
        "items_per_second": round(len(answered) / (decoding + reading), 3) if decoding else 0.0,
        "decoding_seconds": round(decoding / max(1, len(answered)), 4),
        "prompt_seconds": round(reading / max(1, len(answered)), 4),
        "examples_dropped": round(sum(record.examples_dropped for record in answered) / max(1, len(answered)), 2),
        **costs([record.usage for record in answered]),
    }


def costs(usages: Sequence[Usage]) -> Row:
    """The mean of every counter; a cost that is not known of each is not known."""
    total = Usage() if usages else Usage(cost=None)
    for usage in usages:
        total += usage
    return {
        name: None if value is None else round(value / max(1, len(usages)), DIGITS.get(name, 2))
        for name, value in total.as_dict().items()
    }


def failures(outcomes: Sequence[Outcome]) -> Counter[str]:
    """Why items failed, and how often under all systems."""
    records = (record for outcome in outcomes for record in outcome.records)
    return Counter(" ".join(record.failure.split()) for record in records if record.failure is not None)


def spent_by(outcomes: Sequence[Outcome]) -> Usage:
    """What all systems took on all items."""
    total = Usage()
    for outcome in outcomes:
        for record in outcome.records:
            total += record.usage
    return total


def failed_items(outcomes: Sequence[Outcome]) -> int:
    """How many items failed under some system."""
    items = zip(*(outcome.records for outcome in outcomes), strict=True)
    return sum(any(record.failure is not None for record in item) for item in items)


def share(proportion: Proportion) -> Row:
    """A share with Wilson's 95% interval."""
    low, high = proportion.interval()
    return {"value": round(proportion.value, 4), "low": round(low, 4), "high": round(high, 4)}


def cells(row: Row) -> dict[str, str]:
    """The main figures of a row by their heads; a system without a model has no cost worth telling."""
    accuracy = row["accuracy"]
    modelled = row["requests"] > 0
    return {
        "system": row["system"],
        "accuracy (95% interval)": f"{accuracy['value']:.2f} ({accuracy['low']:.2f}-{accuracy['high']:.2f})",
        "exact program": f"{row['exact_program']['value']:.2f}",
        "model alone": f"{row['model_alone']['value']:.2f}" if modelled else "",
        "by vote": f"{row['by_vote']['value']:.2f}" if modelled else "",
        "top 5": f"{row['top']['5']['value']:.2f}",
        "top 10": f"{row['top']['10']['value']:.2f}",
        "failed": str(row["failed"] or ""),
        "items/s": f"{row['items_per_second']:.2f}" if modelled else "",
        "requests": f"{row['requests']:.1f}" if modelled else "",
        "forward tokens": f"{row['forward_tokens']:.1f}" if modelled else "",
        "cost": dollars(row["cost"]) if modelled else "",
    }


def dollars(cost: float | None) -> str:
    """What an item costs; nothing to say where nobody is paid."""
    if cost is None:
        return "unknown"
    return f"${cost:.6f}" if cost else ""


def table(rows: Sequence[Row]) -> list[list[str]]:
    """The heads, and under them the main figures."""
    told = [cells(row) for row in rows]
    heads = [head for head in told[0] if head not in ONLY_IF_ANY or any(figures[head] for figures in told)]
    return [heads, *([figures[head] for head in heads] for figures in told)]


def markdown(rows: Sequence[Row]) -> str:
    """The main figures as a Markdown table."""
    heads, *figures = table(rows)
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "--:|" * (len(heads) - 1)]
    lines += ["| " + " | ".join(line) + " |" for line in figures]
    return "\n".join(lines) + "\n"


def plain(rows: Sequence[Row]) -> str:
    """The main figures in columns."""
    found = table(rows)
    widths = [max(map(len, column)) for column in zip(*found, strict=True)]
    lines = []
    for name, *figures in found:
        aligned = (figure.rjust(width) for figure, width in zip(figures, widths[1:], strict=True))
        lines.append("  ".join([name.ljust(widths[0]), *aligned]).rstrip())
    return "\n".join(lines)
