"""Which items are wrong, and why."""

from typing import Any

import pytest

from fewparse.evaluate.record_lines import Record
from fewparse.evaluate.wrong_items import JudgedItem, judged_items, report_items
from fewparse.example import Example
from fewparse.lm.usage import Usage


def record(*candidates: tuple[str, bool]) -> Record:
    """The record of a system that predicts these programs, which are right or not."""
    programs, correct = tuple(p for p, _ in candidates), tuple(right for _, right in candidates)
    scores = tuple(-float(i) for i in range(len(programs)))
    return Record(programs, programs, correct, correct, scores, scores, False, False, Usage(), 0.1, 0.1)


def judged(found: Record, accepted: bool | None = True, fails: str = "") -> JudgedItem:
    item = Example("lamp on", "(on lamp)")
    (only,) = judged_items([item], [found], None if accepted is None else [accepted], lambda p: p == fails)
    return only


CASES: dict[str, tuple[JudgedItem, Any, Any]] = {
    "right": (judged(record(("(on lamp)", True), ("(off lamp)", False))), None, 1),
    "right though the gold output is not accepted": (judged(record(("(lamp on)", True)), False), None, 1),
    "second": (judged(record(("(off lamp)", False), ("(on lamp)", True))), "ranked lower", 2),
    "not accepted": (judged(record(("(off lamp)", False)), False), "not reachable", None),
    "the best one fails": (judged(record(("(off lamp)", False)), fails="(off lamp)"), "execution error", None),
    "the gold one fails": (judged(record(("(off lamp)", False)), fails="(on lamp)"), "execution error", None),
    "not found": (judged(record(("(off lamp)", False))), "not among candidates", None),
    "not found without a constraint": (judged(record(("x", False)), None), "not among candidates", None),
    "nothing finished": (judged(record()), "other", None),
    "failed": (judged(Record.failed("the prompt\nis too long")), "other", None),
}


@pytest.mark.parametrize("name", CASES)
def test_an_item_has_the_reason_why_it_is_wrong_and_the_rank_of_the_right_program(name: str) -> None:
    item, reason, rank = CASES[name]
    assert (item.reason, item.rank) == (reason, rank)


def test_wrong_items_are_listed_below_the_counts_of_their_reasons() -> None:
    shown = report_items([item for item, _, _ in CASES.values()], hint="a wider grammar")
    counts, _, items = shown.partition("\n\n")
    assert counts.splitlines()[0] == "8 of 10 items are wrong:"
    assert [line.split(":")[0] for line in counts.splitlines()[1:]] == [
        *("  1 not reachable", "  1 ranked lower", "  2 execution error", "  2 not among candidates", "  2 other"),
        "  a wider grammar",
    ]
    assert items.splitlines()[:4] == [
        "lamp on",
        "  gold       (on lamp)",
        "  predicted  (off lamp)",
        "  ranked lower: the right one is candidate 2",
    ]
    assert items.splitlines()[-1] == "  other: the prompt is too long"
    assert items.count("lamp on\n") == 8
    assert report_items([CASES["right"][0]], right=True).endswith("\n\nlamp on\n  right      (on lamp)")
