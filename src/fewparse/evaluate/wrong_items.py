"""The items that a system gets wrong: gold and predicted program, rank of the right one, and the reason."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from fewparse.evaluate.record_lines import Record
from fewparse.example import Example

Reason = Literal["not reachable", "ranked lower", "execution error", "not among candidates", "other"]
REASONS: tuple[Reason, ...] = get_args(Reason)
MEANINGS: dict[Reason, str] = {
    "not reachable": "the constraint does not accept the gold output",
    "ranked lower": "a right program is among the candidates, but not the best one",
    "execution error": "the best program, or the gold one, cannot be executed",
    "not among candidates": "the search has not found a right program",
    "other": "there is no program at all",
}


@dataclass(frozen=True)
class JudgedItem:
    """An item, what was predicted for it, and the rank of the first right candidate, counted from 1, if any.

    `reason` is None if the item is right; `detail` is the error message of an item that failed.
    """

    utterance: str
    gold: str
    predicted: str | None
    rank: int | None
    reason: Reason | None
    detail: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the item as a JSON object."""
        return asdict(self)


def judged_items(
    items: Sequence[Example],
    records: Sequence[Record],
    accepted: Sequence[bool] | None,
    fails: Callable[[str], bool],
) -> list[JudgedItem]:
    """Return what a system predicted for each item.

    `accepted` says for each item whether the constraint accepts its gold output, if there is a constraint; `fails`
    is whether a program cannot be executed.
    """
    reachable = [True] * len(items) if accepted is None else accepted
    return [judged_item(*each, fails) for each in zip(items, records, reachable, strict=True)]


def judged_item(item: Example, record: Record, reachable: bool, fails: Callable[[str], bool]) -> JudgedItem:
    """Return what a system predicted for an item."""
    predicted = record.programs[0] if record.programs else None
    rank = record.correct.index(True) + 1 if True in record.correct else None
    reason: Reason | None
    if rank == 1:
        reason = None
    elif record.failure is not None or not record.outputs:
        reason = "other"
    elif rank is not None:
        reason = "ranked lower"
    elif not reachable:
        reason = "not reachable"
    elif (predicted is not None and fails(predicted)) or fails(item.program):
        reason = "execution error"
    else:
        reason = "not among candidates"
    return JudgedItem(item.utterance, item.program, predicted, rank, reason, record.failure)


def reason_counts(items: Sequence[JudgedItem]) -> dict[Reason, int]:
    """Return how many items are wrong for each reason that occurs."""
    counts = Counter(item.reason for item in items)
    return {reason: counts[reason] for reason in REASONS if counts[reason]}


def summary(items: Sequence[JudgedItem]) -> str:
    """Return how many items are wrong, and why, on a line for each reason."""
    counts = reason_counts(items)
    if not counts:
        return f"All {len(items)} items are right."
    lines = [f"{sum(counts.values())} of {len(items)} items are wrong:"]
    lines += [f"  {count} {reason}: {MEANINGS[reason]}" for reason, count in counts.items()]
    return "\n".join(lines)


def report_items(
    items: Sequence[JudgedItem], right: bool = False, limit: int | None = None, hint: str | None = None
) -> str:
    """Return how many items are wrong and why, then the wrong ones (with `right`, all), at most `limit`.

    `hint` is a setting by which gold outputs that are not reachable would be.
    """
    chosen = items if right else [item for item in items if item.reason is not None]
    parts = [summary(items)]
    if hint is not None:
        parts.append(f"  {hint}")
    if chosen:
        parts += ["", *(line for item in chosen[:limit] for line in lines_of(item))]
    if limit is not None and len(chosen) > limit:
        parts += ["", f"... and {len(chosen) - limit} more: --show all, or --out for a report of all"]
    return "\n".join(parts)


def lines_of(item: JudgedItem) -> list[str]:
    """Return the lines of an item."""
    if item.reason is None:
        return [item.utterance, f"  right      {item.gold}"]
    lines = [item.utterance, f"  gold       {item.gold}", f"  predicted  {item.predicted or '-'}"]
    why = f"{item.reason}: the right one is candidate {item.rank}" if item.rank else item.reason
    detail = "" if item.detail is None else f": {' '.join(item.detail.split())}"
    return [*lines, f"  {why}{detail}"]
