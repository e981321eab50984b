"""Simulated confirmation, by hand: a user who is asked says yes to right programs only."""

import numpy as np
import pytest

from fewparse.evaluate.calibration import Judged
from fewparse.evaluate.confirmation import Confirmation, confirmation
from fewparse.evaluate.metrics import Proportion
from fewparse.example import Decision


def item(confidence: float, right: bool) -> Judged:
    decision: Decision = "execute" if confidence >= 0.9 else "confirm" if confidence >= 0.2 else "decline"
    return Judged(confidence, decision, right)


def test_confirmed_programs_add_coverage_and_no_risk() -> None:
    executed = [item(0.99, True)] * 6 + [item(0.95, False), item(0.92, True)]
    asked = [item(0.8, True), item(0.7, False), item(0.6, False), item(0.5, False)]
    offered = [False] * 8 + [True, False, True, False]  # of the third, the second choice is right
    found = confirmation([*executed, *asked, item(0.1, True)], [*offered, True])
    assert found == Confirmation(4, 13, Proportion(1, 10), Proportion(2, 10))
    assert found.coverage == pytest.approx(10 / 13)


def test_whether_an_executed_or_declined_program_would_be_confirmed_does_not_matter() -> None:
    items = [item(0.99, False), item(0.95, True), item(0.1, True)]
    assert confirmation(items, [True, False, True]) == confirmation(items, [False, True, False])
    assert confirmation(items, [True] * 3).wrong == Proportion(1, 2)


def test_a_threshold_executes_all_utterances_of_one_confidence_or_none_of_them() -> None:
    items = [item(0.95, True), item(0.5, True), item(0.5, False), item(0.5, False)]
    assert confirmation(items, [True, True, False, False]).wrong_by_threshold == Proportion(0, 1)
    assert confirmation(items, [True] * 4).wrong_by_threshold == Proportion(2, 4)
    assert confirmation([items[1]] * 2, [True, False]).wrong_by_threshold == Proportion(0, 0)


def test_if_confidences_are_right_questions_halve_the_risk_at_the_same_coverage() -> None:
    random = np.random.default_rng(2)
    items = [item(c, bool(random.random() < c)) for c in map(float, random.beta(5, 1, 4000))]
    found = confirmation(items, [each.right for each in items])
    executed = [each for each in items if each.decision == "execute"]
    assert found.wrong.items == len(executed) + sum(each.right for each in items if each.decision == "confirm")
    assert found.wrong.correct == sum(not each.right for each in executed)
    assert found.wrong_by_threshold.items == found.wrong.items
    assert found.wrong.value < found.wrong_by_threshold.value / 2
