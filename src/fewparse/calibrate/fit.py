"""Fit a calibration with scikit-learn: two logistic regressions, and thresholds from cross-validated estimates."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fewparse.confidence.calibration import (
    CLIP,
    Calibration,
    Column,
    Logistic,
    Made,
    Origin,
    RiskPoint,
)
from fewparse.confidence.features import DESCRIPTIONS, Features
from fewparse.errors import CalibrationError

MIN_EXAMPLES, MIN_OF_EACH, MIN_OUT_OF_SCOPE = 50, 5, 10
"""How many examples are needed, how many of them right and wrong, and how many utterances out of scope."""
OUT_OF_SCOPE_SHARE = 0.05
"""The share of utterances that are assumed to be out of scope, whatever their number in the data."""
PARTS, SELECTION_PARTS = 10, 5
STRENGTHS = (0.01, 0.03, 0.1, 0.3, 1.0)
"""The inverse strengths of regularisation to choose from."""
BOUND = 0.9
"""The probability with which the risk among executed programs is below its upper bound."""
POINTS = 60
Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
INSTALL = "pip install 'fewparse[calibrate]'"


@dataclass(frozen=True)
class Case:
    """A parse to fit on: its features, whether its program is right, and whether the utterance is in scope."""

    features: Features
    right: bool
    in_scope: bool = True


def check_cases(cases: Sequence[Case]) -> None:
    """Raise `CalibrationError` if there are too few parses to fit on."""
    inside = [case for case in cases if case.in_scope]
    right = sum(case.right for case in inside)
    if len(inside) < MIN_EXAMPLES:
        raise CalibrationError(
            f"{len(inside)} parsed examples are too few to calibrate; at least {MIN_EXAMPLES} are needed",
            "Write more examples.",
        )
    if min(right, len(inside) - right) < MIN_OF_EACH:
        raise CalibrationError(
            f"{right} of {len(inside)} examples were parsed correctly; to calibrate, at least {MIN_OF_EACH} must "
            f"be right and {MIN_OF_EACH} wrong",
            "Write more examples, harder ones or easier ones.",
        )


def fit(cases: Sequence[Case], made_for: Made, method: str, data_sha256: str, max_declined: float) -> Calibration:
    """Return the calibration of these parses; raise `CalibrationError` if there are too few.

    `max_declined` is the share of in-scope utterances that may be declined.
    """
    check_cases(cases)
    try:
        import sklearn  # noqa: F401 -- before the work, not after it
        from threadpoolctl import threadpool_limits
    except ImportError as error:
        raise CalibrationError(f"calibration needs the extra `calibrate` ({error})", INSTALL) from None
    columns = columns_of(cases)
    inside = np.array([case.in_scope for case in cases])
    right = np.array([case.right for case in cases])
    weights = case_weights(inside)
    has_scope = int((~inside).sum()) >= MIN_OUT_OF_SCOPE
    with threadpool_limits(1):  # small problems: more threads only wait for each other
        fitted = fit_both(np.hstack(standardised(cases, columns)), inside, right, weights, has_scope)
    used = np.ones(len(cases), bool) if has_scope else inside
    return Calibration(
        made_for=made_for,
        origin=Origin(
            method=method,
            examples=int(inside.sum()),
            right=int(right[inside].sum()),
            out_of_scope=int((~inside).sum()) if has_scope else 0,
            data_sha256=data_sha256,
            fewparse=version("fewparse"),
        ),
        columns=columns,
        right=fitted.right,
        scope=fitted.scope,
        risks=risk_points(fitted.confidence[used], right[used], weights[used]),
        decline_below=round(decline_threshold(fitted.in_scope[inside], max_declined), 6) if has_scope else 0.0,
    )


class Fitted(NamedTuple):
    """Both regressions, and cross-validated estimates: confidence, and probability of being in scope."""

    right: Logistic
    scope: Logistic | None
    confidence: Array
    in_scope: Array


def fit_both(design: Array, inside: Flags, right: Flags, weights: Array, has_scope: bool) -> Fitted:
    """Fit whether a program is right on the in-scope cases, and whether an utterance is in scope on all."""
    correct = Regression(design[inside], right[inside], weights[inside])
    scope = Regression(design, inside, weights) if has_scope else None
    parts = split(inside.astype(int) + right, PARTS)
    confidence, in_scope = np.zeros(len(inside)), np.ones(len(inside))
    for part in range(PARTS):
        test = parts == part
        confidence[test] = correct.fitted((~test)[inside]).predict_proba(design[test])[:, 1]
        if scope is not None:
            in_scope[test] = scope.fitted(~test).predict_proba(design[test])[:, 1]
    everything = np.ones(len(inside), bool)
    return Fitted(
        plain(correct.fitted(everything[inside])),
        None if scope is None else plain(scope.fitted(everything)),
        confidence * in_scope,
        in_scope,
    )


def columns_of(cases: Sequence[Case]) -> tuple[Column, ...]:
    """Return the features that some parse has and that differ between parses, with their statistics."""
    columns = []
    for name in DESCRIPTIONS:
        found = np.array([case.features[name] for case in cases if name in case.features])
        if len(found) and float(found.std()) > 1e-9:
            mean, scale = round(float(found.mean()), 6), max(1e-6, round(float(found.std()), 6))
            columns.append(Column(name=name, mean=mean, scale=scale, may_be_missing=len(found) < len(cases)))
    return tuple(columns)


def standardised(cases: Sequence[Case], columns: Sequence[Column]) -> tuple[Array, Array]:
    """Return the standardised values, 0 where one is missing, and the indicators of missing ones."""
    values, missing = np.zeros((len(cases), len(columns))), np.zeros((len(cases), len(columns)))
    for i, case in enumerate(cases):
        for j, column in enumerate(columns):
            value = case.features.get(column.name)
            if value is None:
                missing[i, j] = 1
            else:
                values[i, j] = np.clip((value - column.mean) / column.scale, -CLIP, CLIP)
    return values, missing


def case_weights(inside: Flags) -> Array:
    """Return weights with which out-of-scope utterances have their assumed share."""
    outside = max(1, int((~inside).sum()))
    share = OUT_OF_SCOPE_SHARE / (1 - OUT_OF_SCOPE_SHARE)
    return np.where(inside, 1.0, share * inside.sum() / outside)


def split(strata: NDArray[np.int_], parts: int) -> NDArray[np.int_]:
    """Return the part of each case, with all strata spread evenly; always the same for the same cases."""
    order = np.random.default_rng(0).permutation(len(strata))
    result = np.zeros(len(strata), int)
    for stratum in np.unique(strata):
        members = order[strata[order] == stratum]
        result[members] = np.arange(len(members)) % parts
    return result


class Regression:
    """A logistic regression whose regularisation has the best cross-validated log-likelihood."""

    def __init__(self, design: Array, labels: Flags, weights: Array) -> None:
        self._design, self._labels, self._weights = design, labels, weights
        self._parts = split(labels.astype(int), SELECTION_PARTS)
        self._strength = max(STRENGTHS, key=self._likelihood)

    def fitted(self, rows: Flags, strength: float | None = None) -> Any:
        """Return a model of scikit-learn, fitted on some rows."""
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(C=strength or self._strength, max_iter=5000)
        return model.fit(self._design[rows], self._labels[rows], sample_weight=self._weights[rows])

    def _likelihood(self, strength: float) -> float:
        total = 0.0
        for part in range(SELECTION_PARTS):
            test = self._parts == part
            probability = self.fitted(~test, strength).predict_proba(self._design[test])[:, 1]
            of_label = np.clip(np.where(self._labels[test], probability, 1 - probability), 1e-9, 1)
            total += float((self._weights[test] * np.log(of_label)).sum())
        return total


def plain(model: Any) -> Logistic:
    """Return a fitted regression as numbers."""
    weights = [round(float(weight), 6) for weight in model.coef_[0]]
    half = len(weights) // 2
    intercept = round(float(model.intercept_[0]), 6)
    return Logistic(intercept=intercept, weights=tuple(weights[:half]), missing=tuple(weights[half:]))


def risk_points(confidence: Array, right: Flags, weights: Array) -> tuple[RiskPoint, ...]:
    """Return the thresholds worth choosing, risks rising: each executes more than those of a lower risk."""
    found: list[RiskPoint] = []
    for threshold in np.unique(confidence):  # rising, so that coverage falls
        chosen = confidence >= threshold
        n = float(weights[chosen].sum())
        risk = upper_bound(float(weights[chosen & ~right].sum()) / n, n)
        if not found or risk < found[-1].risk:
            coverage = n / float(weights.sum())
            lower = math.floor(float(threshold) * 1e6) / 1e6
            found.append(RiskPoint(confidence=lower, risk=round(risk, 6), coverage=round(coverage, 4)))
    step = max(1, math.ceil(len(found) / POINTS))
    return tuple(found[::-1][::step])


def upper_bound(share: float, n: float) -> float:
    """Return the one-sided upper bound of a share of n cases by Wilson's interval."""
    z = NormalDist().inv_cdf(BOUND)
    middle = share + z * z / (2 * n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return min(1.0, (middle + half) / (1 + z * z / n))


def decline_threshold(in_scope: Array, max_declined: float) -> float:
    """Return the probability of being in scope below which at most this share of in-scope utterances is."""
    return min(0.5, float(np.quantile(in_scope, max_declined, method="lower")))
