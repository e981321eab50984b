"""Calibrations: applying, thresholds, files, and for which use they were made."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from fewparse.calibrate.fit import MIN_EXAMPLES, Case, fit, upper_bound
from fewparse.confidence.calibration import Calibration, Estimate, read_calibrations, write_calibration
from fewparse.errors import CalibrationError
from support.calibrations import MADE, calibration

RANDOM = np.random.default_rng(3)


def sample(number: int, outside: int = 0) -> list[Case]:
    """Return parses whose log-odds of being right are 2 + 1.5 x; out-of-scope ones have a large y."""
    cases = []
    for _ in range(number):
        x, y = RANDOM.normal(size=2)
        right = bool(RANDOM.random() < 1 / (1 + math.exp(-(2 + 1.5 * x))))
        features = {"logprob": float(x), "unseen": float(y)}
        cases.append(Case(features if RANDOM.random() < 0.9 else features | {"cut": float(x)}, right))
    for _ in range(outside):
        x, y = RANDOM.normal(size=2)
        cases.append(Case({"logprob": float(x), "unseen": 6 + float(y)}, right=False, in_scope=False))
    return cases


@pytest.fixture(scope="module")
def fitted() -> Calibration:
    return fit(sample(1000, 60), MADE, "made up", "", 0.02)


def test_a_fitted_confidence_is_a_probability_on_other_parses(fitted: Calibration) -> None:
    fresh = sample(4000)
    estimates = [fitted.estimate(case.features) for case in fresh]
    confidence = np.array([estimate.confidence for estimate in estimates if estimate is not None])
    right = np.array([case.right for case in fresh])
    for low, high in ((0.3, 0.6), (0.6, 0.8), (0.8, 0.95), (0.95, 1.0)):
        chosen = (confidence >= low) & (confidence < high)
        assert abs(confidence[chosen].mean() - right[chosen].mean()) < 0.06


def test_the_risk_of_executed_parses_stays_below_its_limit(fitted: Calibration) -> None:
    fresh = sample(4000)
    for risk in (0.03, 0.05, 0.1):
        executed = [
            case.right
            for case in fresh
            if (estimate := fitted.estimate(case.features)) and fitted.decide(estimate, risk) == "execute"
        ]
        assert len(executed) > 300
        assert 1 - sum(executed) / len(executed) < risk + 0.015


def test_out_of_scope_utterances_are_declined_and_few_others(fitted: Calibration) -> None:
    fresh = sample(1000, 200)
    decisions = [
        (case.in_scope, fitted.decide(estimate, 0.05))
        for case in fresh
        if (estimate := fitted.estimate(case.features))
    ]
    outside = [decision for inside, decision in decisions if not inside]
    inside = [decision for inside, decision in decisions if inside]
    assert outside.count("decline") > 0.95 * len(outside)
    assert inside.count("decline") < 0.05 * len(inside)


def test_the_numbers_are_those_of_scikit_learn() -> None:
    from sklearn.linear_model import LogisticRegression

    cases = [case for case in sample(400) if "cut" not in case.features]
    found = fit(cases, MADE, "made up", "", 0.02)
    values = np.array([[case.features[column.name] for column in found.columns] for case in cases])
    means, scales = ([getattr(column, name) for column in found.columns] for name in ("mean", "scale"))
    design = np.hstack([(values - means) / scales, np.zeros_like(values)])
    expected = [
        LogisticRegression(C=c, max_iter=5000).fit(design, [case.right for case in cases]).predict_proba(design)
        for c in (0.01, 0.03, 0.1, 0.3, 1.0)
    ]
    confidences = [estimate.confidence for case in cases if (estimate := found.estimate(case.features))]
    assert found.scope is None
    assert min(float(np.abs(np.array(confidences) - each[:, 1]).max()) for each in expected) < 1e-4


def test_too_few_or_too_uniform_parses_are_refused_with_their_number() -> None:
    with pytest.raises(CalibrationError, match=f"12 parsed examples are too few.*{MIN_EXAMPLES}"):
        fit(sample(12), MADE, "made up", "", 0.02)
    uniform = [Case({"score": float(i)}, right=i > 1) for i in range(60)]
    with pytest.raises(CalibrationError, match="58 of 60 examples were parsed correctly"):
        fit(uniform, MADE, "made up", "", 0.02)


def test_a_parse_without_a_feature_that_all_others_had_has_no_confidence(fitted: Calibration) -> None:
    assert fitted.estimate({"logprob": -1.0, "unseen": 0.0}) is not None
    assert fitted.estimate({"unseen": 0.0}) is None


def test_the_threshold_is_the_lowest_confidence_that_keeps_the_risk() -> None:
    found = calibration()
    assert [found.threshold(risk) for risk in (0.01, 0.02, 0.049, 0.05, 0.5, 1.0)] == [
        math.inf,
        0.9,
        0.9,
        0.7,
        0.2,
        0,
    ]


@pytest.mark.parametrize(
    ("estimate", "max_risk", "decision"),
    [
        (Estimate(0.95, 0.99), 0.05, "execute"),
        (Estimate(0.6, 0.99), 0.05, "confirm"),
        (Estimate(0.6, 0.99), 0.3, "execute"),
        (Estimate(0.3, 0.4), 0.05, "decline"),
        (Estimate(0.3, 0.4), 1.0, "execute"),
        (Estimate(0.99, 0.99), 0.0, "confirm"),
    ],
)
def test_a_decision_keeps_the_risk(estimate: Estimate, max_risk: float, decision: str) -> None:
    assert calibration().decide(estimate, max_risk) == decision


def test_the_upper_bound_holds_as_often_as_it_says() -> None:
    wrong = RANDOM.binomial(200, 0.05, size=4000)
    held = np.mean([upper_bound(each / 200, 200) >= 0.05 for each in wrong])
    assert 0.85 < held < 0.97


def test_a_file_keeps_one_calibration_for_each_use(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    other = MADE.model_copy(update={"target": "canonical"})
    for made, right in ((MADE, 1.0), (other, 2.0), (MADE, 3.0)):
        write_calibration(path, calibration(right, made_for=made))
    assert [(c.made_for.target, c.right.intercept) for c in read_calibrations(path)] == [
        ("canonical", 2.0),
        ("program", 3.0),
    ]
    assert read_calibrations(tmp_path / "nothing.json") == ()


@pytest.mark.parametrize("text", ["", "[]", '{"calibrations": [{}]}', '{"calibrations": NaN}', "{"])
def test_a_damaged_file_is_an_error_that_says_what_to_do(text: str, tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(text)
    with pytest.raises(CalibrationError, match=r"calibration.json is not a file of calibrations") as caught:
        read_calibrations(path)
    assert "fewparse calibrate" in (caught.value.hint or "")


def test_a_file_with_an_infinite_number_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    write_calibration(path, calibration())
    content = json.loads(path.read_text())
    content["calibrations"][0]["right"]["intercept"] = math.inf
    path.write_text(json.dumps(content))
    with pytest.raises(CalibrationError):
        read_calibrations(path)


@pytest.mark.parametrize(
    ("changed", "difference"),
    [
        ({}, None),
        ({"identity": "other", "model": "other"}, "the model toy"),
        ({"identity": "other"}, "other weights or another adapter"),
        ({"grammar": "other"}, "another grammar"),
        ({"decoder": {"decoder": "greedy", "width": 5}}, "decoder beam"),
        ({"features": 0}, "another version of fewparse"),
    ],
)
def test_another_use_is_told_apart(changed: dict[str, object], difference: str | None) -> None:
    assert MADE.difference(MADE.model_copy(update=changed)) == difference
