"""Tables of what came out: every figure for programs, the main ones for people."""

from collections.abc import Sequence
from typing import Any

from fewparse.evaluate.metrics import Proportion, count, pair
from fewparse.evaluate.run import Outcome

TOP = (1, 2, 5, 10)
Row = dict[str, Any]
HEADS = (
    "system",
    "accuracy (95% interval)",
    "exact program",
    "model alone",
    "by vote",
    "top 5",
    "top 10",
    "items/s",
    "requests",
    "forward tokens",
)


def rows(outcomes: Sequence[Outcome], reference: str) -> list[Row]:
    """One row a system, every figure that is known; each is compared with the reference item by item."""
    against = next(outcome for outcome in outcomes if outcome.name == reference)
    return [row(outcome, against) for outcome in outcomes]


def row(outcome: Outcome, reference: Outcome) -> Row:
    """The figures of one system; costs are those of an item."""
    records = outcome.records
    items = len(records)
    right = [record.right_within(1) for record in records]
    compared = pair(right, [record.right_within(1) for record in reference.records[:items]])
    decoding = sum(record.seconds for record in records)
    reading = sum(record.prompt_seconds for record in records)
    costs = {
        name: round(sum(getattr(record.usage, name) for record in records) / max(1, items), 2)
        for name in ("requests", "rounds", "prefill_tokens", "forward_tokens", "forward_passes")
    }
    return {
        "system": outcome.name,
        "items": items,
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
        "items_per_second": round(items / (decoding + reading), 3) if decoding else 0.0,
        "decoding_seconds": round(decoding / max(1, items), 4),
        "prompt_seconds": round(reading / max(1, items), 4),
        "examples_dropped": round(sum(record.examples_dropped for record in records) / max(1, items), 2),
        **costs,
    }


def share(proportion: Proportion) -> Row:
    """A share with Wilson's 95% interval."""
    low, high = proportion.interval()
    return {"value": round(proportion.value, 4), "low": round(low, 4), "high": round(high, 4)}


def cells(row: Row) -> list[str]:
    """The main figures of a row, under `HEADS`; a system without a model has no cost worth telling."""
    accuracy = row["accuracy"]
    modelled = row["requests"] > 0
    return [
        row["system"],
        f"{accuracy['value']:.2f} ({accuracy['low']:.2f}-{accuracy['high']:.2f})",
        f"{row['exact_program']['value']:.2f}",
        f"{row['model_alone']['value']:.2f}" if modelled else "",
        f"{row['by_vote']['value']:.2f}" if modelled else "",
        f"{row['top']['5']['value']:.2f}",
        f"{row['top']['10']['value']:.2f}",
        f"{row['items_per_second']:.2f}" if modelled else "",
        f"{row['requests']:.1f}" if modelled else "",
        f"{row['forward_tokens']:.1f}" if modelled else "",
    ]


def markdown(rows: Sequence[Row]) -> str:
    """The main figures as a Markdown table."""
    lines = ["| " + " | ".join(HEADS) + " |", "|---|" + "--:|" * (len(HEADS) - 1)]
    lines += ["| " + " | ".join(cells(row)) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def plain(rows: Sequence[Row]) -> str:
    """The main figures in columns."""
    table = [list(HEADS), *map(cells, rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = []
    for name, *figures in table:
        aligned = (figure.rjust(width) for figure, width in zip(figures, widths[1:], strict=True))
        lines.append("  ".join([name.ljust(widths[0]), *aligned]).rstrip())
    return "\n".join(lines)
