"""Figures of confidence and decisions, against scikit-learn and by hand."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from fewparse.evaluate.calibration import (
    Judged,
    area_under_risk,
    auroc,
    bins_of,
    brier,
    calibration_error,
    figures,
    judge_records,
    markdown,
    risk_coverage,
)
from fewparse.evaluate.calibration_plots import RELIABILITY, RISK_COVERAGE, write_plots
from fewparse.evaluate.record_lines import Record, read_line, to_line
from fewparse.lm.usage import Usage
from support.calibrations import calibration

RANDOM = np.random.default_rng(5)
CONFIDENCE = [float(value) for value in RANDOM.random(300)]
PAIRS = [(c, bool(RANDOM.random() < c)) for c in CONFIDENCE]


def test_the_brier_score_and_the_auroc_are_those_of_scikit_learn() -> None:
    from sklearn.metrics import brier_score_loss, roc_auc_score

    labels = [right for _, right in PAIRS]
    rounded = [round(confidence, 1) for confidence in CONFIDENCE]  # with ties
    assert brier(PAIRS) == pytest.approx(brier_score_loss(labels, CONFIDENCE))
    positive = [c for c, right in zip(rounded, labels, strict=True) if right]
    negative = [c for c, right in zip(rounded, labels, strict=True) if not right]
    assert auroc(positive, negative) == pytest.approx(roc_auc_score(labels, rounded))
    assert auroc([], [0.5]) is None


def test_bins_have_equal_numbers_of_items_by_rising_confidence() -> None:
    bins = bins_of(PAIRS[:103])
    assert sorted({b.items for b in bins}) == [10, 11]
    assert sum(b.items for b in bins) == 103
    assert [b.confidence for b in bins] == sorted(b.confidence for b in bins)
    assert bins_of(PAIRS[:3]) == bins_of(PAIRS[:3], 3)


def test_the_calibration_error_is_the_distance_in_the_bins() -> None:
    items = [(0.2, False)] * 4 + [(0.2, True)] + [(0.9, True)] * 4 + [(0.9, False)]
    assert calibration_error(items, 2) == pytest.approx(0.5 * 0 + 0.5 * 0.1)
    assert calibration_error([(1.0, False)] * 5) == 1
    assert calibration_error(PAIRS) < 0.1 < calibration_error([(1 - c, right) for c, right in PAIRS])


def test_the_risk_coverage_curve_executes_the_most_confident_first() -> None:
    items = [(0.9, True), (0.8, False), (0.8, True), (0.1, False)]
    assert risk_coverage(items) == [(0.25, 0), (0.75, pytest.approx(1 / 3)), (1, 0.5)]
    assert area_under_risk(items) == pytest.approx(0.5 / 3 + 0.25 * 0.5)


ITEMS = [Judged(0.95, "execute", True, True, 0.99)] * 8 + [
    Judged(0.95, "execute", False, True, 0.9),
    Judged(0.4, "confirm", True, True, 0.8),
    Judged(0.1, "decline", False, True, 0.3),
]
OUTSIDE = [Judged(0.05, "decline", False, False, 0.1)] * 4 + [Judged(0.5, "confirm", False, False, 0.85)]


def test_decisions_and_out_of_scope_utterances_are_counted_apart() -> None:
    found = figures(ITEMS, OUTSIDE, 0.05)
    assert {name: of_it["items"] for name, of_it in found["decisions"].items()} == {
        "execute": 9,
        "confirm": 1,
        "decline": 1,
    }
    assert found["decisions"]["execute"]["accuracy"]["value"] == pytest.approx(8 / 9, abs=1e-4)
    outside = found["out_of_scope"]
    assert (outside["declined"], outside["confirmed"], outside["executed"]) == (4, 1, 0)
    assert outside["f1"] == pytest.approx(2 * 4 / (4 + 1 + 5), abs=1e-4)
    assert outside["auroc"] == pytest.approx((44 + 9 - 0) / 55, abs=1e-4)
    assert figures(ITEMS, [], 0.05)["out_of_scope"] is None


def test_the_report_has_a_table_and_the_plots(tmp_path: Path) -> None:
    found = figures(ITEMS, OUTSIDE, 0.05)
    text = markdown(found)
    assert "| execute | 9 | 0.82 | 0.89 (" in text
    assert "Of 5 utterances out of scope, 4 are declined, 1 asked about and 0 executed" in text
    write_plots(tmp_path, found)
    for name in (RELIABILITY, RISK_COVERAGE):
        assert ElementTree.parse(tmp_path / name).getroot().tag.endswith("svg")


def record(features: dict[str, float] | None, right: bool = True) -> Record:
    values: dict[str, Any] = {"outputs": ("a",), "programs": ("a",), "correct": (right,), "exact_match": (right,)}
    scores: dict[str, Any] = {
        "scores": (0.0,),
        "model_scores": (0.0,),
        "correct_before_reranking": right,
        "correct_by_vote": right,
    }
    return Record(**values, **scores, usage=Usage(), seconds=0.1, prompt_seconds=0.0, features=features)


def test_a_record_keeps_its_features() -> None:
    kept = record({"score": -1.5})
    line = to_line("system", ("a", "b"), "utterance", "gold", kept)
    assert read_line(line, 1, Path("records.jsonl"))[1] == kept


def test_records_without_a_confidence_are_not_executed() -> None:
    judged = judge_records(calibration(), [record({"score": 0.0}), record({"other": 0.0}), record(None)], 0.05)
    assert [item.decision for item in judged] == ["execute", "decline", "decline"]
    outside = judge_records(calibration(), [record({"score": 0.0})], 0.05, in_scope=False)
    assert not outside[0].right
