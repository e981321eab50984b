"""How good confidences and decisions are: calibration error, risk and coverage, out-of-scope detection."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from fewparse.confidence.calibration import Calibration
from fewparse.evaluate.metrics import count
from fewparse.evaluate.record_lines import Record
from fewparse.evaluate.report import share
from fewparse.example import DECISIONS, Decision

BINS = 10
DIGITS = 4


@dataclass(frozen=True)
class Judged:
    """A parse of an item: its confidence and decision, and whether it is right; out of scope, none is right.

    `scope_score` is higher for an utterance that is more likely in scope.
    """

    confidence: float
    decision: Decision
    right: bool
    in_scope: bool = True
    scope_score: float = 0.0


class Bin(NamedTuple):
    """Items of similar confidence: how many, their mean confidence, and how many of them are right."""

    items: int
    confidence: float
    right: int

    @property
    def accuracy(self) -> float:
        """The share of right items."""
        return self.right / self.items


def judge_records(
    calibration: Calibration, records: Sequence[Record], max_risk: float, in_scope: bool = True
) -> list[Judged]:
    """Return the records with their confidences; one without an output, or a needed feature, has none: it is 0."""
    found = []
    for record in records:
        estimate = None if record.features is None else calibration.estimate(record.features)
        if estimate is None:
            found.append(Judged(0.0, "decline", False, in_scope))
            continue
        scope = estimate.confidence if estimate.in_scope is None else estimate.in_scope
        decision = calibration.decide(estimate, max_risk)
        right = in_scope and record.correct_within(1)
        found.append(Judged(estimate.confidence, decision, right, in_scope, scope))
    return found


def bins_of(items: Sequence[tuple[float, bool]], number: int = BINS) -> list[Bin]:
    """Return bins of equal numbers of items, by rising confidence; sizes differ by one at most."""
    ordered = sorted(items, key=lambda item: item[0])
    edges = [round(i * len(ordered) / number) for i in range(number + 1)]
    parts = [ordered[a:b] for a, b in pairwise(edges) if a < b]
    return [Bin(len(part), sum(c for c, _ in part) / len(part), sum(right for _, right in part)) for part in parts]


def calibration_error(items: Sequence[tuple[float, bool]], number: int = BINS) -> float:
    """Return the expected calibration error: the mean distance of accuracy and confidence in equal bins."""
    return sum(b.items * abs(b.accuracy - b.confidence) for b in bins_of(items, number)) / max(1, len(items))


def brier(items: Sequence[tuple[float, bool]]) -> float:
    """Return the mean squared difference of confidence and correctness."""
    return sum((confidence - right) ** 2 for confidence, right in items) / max(1, len(items))


def risk_coverage(items: Sequence[tuple[float, bool]]) -> list[tuple[float, float]]:
    """Return coverage and risk if the most confident items are executed, for each distinct confidence.

    Items of the same confidence are executed together.
    """
    ordered = sorted(items, key=lambda item: -item[0])
    points, wrong = [], 0
    for i, (confidence, right) in enumerate(ordered, 1):
        wrong += not right
        if i == len(ordered) or ordered[i][0] != confidence:
            points.append((i / len(ordered), wrong / i))
    return points


def area_under_risk(items: Sequence[tuple[float, bool]]) -> float:
    """Return the area under the risk-coverage curve: the mean risk over all coverages."""
    area, before = 0.0, 0.0
    for coverage, risk in risk_coverage(items):
        area += (coverage - before) * risk
        before = coverage
    return area


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float | None:
    """Return the probability that a positive score is higher than a negative one; ties count half."""
    if not positive or not negative:
        return None
    wins = sum((p > n) + 0.5 * (p == n) for p in positive for n in negative)
    return wins / (len(positive) * len(negative))


def figures(items: Sequence[Judged], outside: Sequence[Judged], max_risk: float) -> dict[str, Any]:
    """Return all figures as a JSON object; out-of-scope utterances are reported apart."""
    pairs = [(item.confidence, item.right) for item in items]
    return {
        "items": len(items),
        "max_risk": max_risk,
        "ece": rounded(calibration_error(pairs)),
        "ece_interval": [rounded(end) for end in bootstrap(pairs)],
        "brier": rounded(brier(pairs)),
        "area_under_risk": rounded(area_under_risk(pairs)),
        "bins": [
            {"items": b.items, "confidence": rounded(b.confidence), "accuracy": rounded(b.accuracy)}
            for b in bins_of(pairs)
        ],
        "risk_coverage": [[rounded(coverage), rounded(risk)] for coverage, risk in risk_coverage(pairs)],
        "decisions": {decision: of_decision(items, decision) for decision in DECISIONS},
        "out_of_scope": detection(items, outside) if outside else None,
    }


def of_decision(items: Sequence[Judged], decision: Decision) -> dict[str, Any]:
    """Return the share of items with a decision, and how many of them are right."""
    chosen = [item.right for item in items if item.decision == decision]
    return {
        "items": len(chosen),
        "coverage": rounded(len(chosen) / max(1, len(items))),
        "accuracy": share(count(chosen)) if chosen else None,
    }


def detection(items: Sequence[Judged], outside: Sequence[Judged]) -> dict[str, Any]:
    """Return how well out-of-scope utterances are told from the others: declined ones are the detected ones."""
    detected = sum(item.decision == "decline" for item in outside)
    wrongly = sum(item.decision == "decline" for item in items)
    wanted = detected + wrongly + len(outside)
    area = auroc([item.scope_score for item in items], [item.scope_score for item in outside])
    return {
        "items": len(outside),
        "declined": detected,
        "confirmed": sum(item.decision == "confirm" for item in outside),
        "executed": sum(item.decision == "execute" for item in outside),
        "in_scope_declined": wrongly,
        "f1": rounded(2 * detected / wanted) if wanted else 0.0,
        "auroc": None if area is None else rounded(area),
    }


def bootstrap(pairs: Sequence[tuple[float, bool]], samples: int = 1000) -> tuple[float, float]:
    """Return the 95% interval of the calibration error by resampling the items; it is biased upwards."""
    import numpy as np

    random = np.random.default_rng(0)
    drawn = random.integers(0, len(pairs), (samples, len(pairs)))
    errors = sorted(calibration_error([pairs[i] for i in row]) for row in drawn)
    return errors[math.floor(0.025 * samples)], errors[math.ceil(0.975 * samples) - 1]


def rounded(value: float) -> float:
    """Return a figure with four digits."""
    return round(value, DIGITS)


def markdown(found: dict[str, Any]) -> str:
    """Return the main figures as a section of a report."""
    low, high = found["ece_interval"]
    lines = [
        f"Confidence on {found['items']} items: calibration error {found['ece']:.3f} ({low:.3f}-{high:.3f}, "
        f"{BINS} bins of equal mass), Brier score {found['brier']:.3f}, "
        f"area under the risk-coverage curve {found['area_under_risk']:.3f}.",
        "",
        f"Decisions at a risk of at most {found['max_risk']:g}:",
        "",
        "| decision | items | coverage | accuracy (95% interval) |",
        "|---|--:|--:|--:|",
    ]
    for decision, of_it in found["decisions"].items():
        value = of_it["accuracy"]
        shown = "" if value is None else f"{value['value']:.2f} ({value['low']:.2f}-{value['high']:.2f})"
        lines.append(f"| {decision} | {of_it['items']} | {of_it['coverage']:.2f} | {shown} |")
    if (outside := found["out_of_scope"]) is not None:
        lines += [
            "",
            f"Of {outside['items']} utterances out of scope, {outside['declined']} are declined, "
            f"{outside['confirmed']} asked about and {outside['executed']} executed; "
            f"{outside['in_scope_declined']} in-scope items are declined. "
            f"AUROC {outside['auroc']:.3f}, F1 {outside['f1']:.3f}.",
        ]
    return "\n".join(lines) + "\n"
