"""Compare ways of fitting a confidence on stored parses of examples. Used by confidence.py.

The parses are those of files of records: of `fewparse calibrate` in the cache folder, or of these benchmarks. Of
the parses with the same settings, 150 (or three quarters) are drawn for a fit; log loss and calibration error are
measured on the others. A difference of log loss has the standard error over the settings.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from fewparse import Record
from fewparse.calibrate.calibration import cases_of
from fewparse.calibrate.fit import (
    MIN_EXAMPLES,
    MIN_OF_EACH,
    Array,
    Case,
    Flags,
    Regression,
    columns_of,
    standardised,
)
from fewparse.confidence.features import DESCRIPTIONS
from fewparse.evaluate.calibration import calibration_error, rounded
from fewparse.evaluate.record_lines import read_line

FITTED, REPEATS = 150, 8
ALL = tuple(DESCRIPTIONS)
FEW = ("logprob", "least_token", "score", "margin", "alignment", "fails")
Fitter = Callable[[Array, Flags, Array], Array]
"""Takes the design and labels to fit on, and the design of other parses; returns their probabilities."""


def chosen_strength(design: Array, labels: Flags, others: Array) -> Array:
    """Fit as `fewparse calibrate` does: a logistic regression, its regularisation by cross-validation."""
    model = Regression(design, labels, np.ones(len(labels))).fitted(np.ones(len(labels), bool))
    return np.asarray(model.predict_proba(others)[:, 1])


def strength(inverse: float) -> Fitter:
    """Return a logistic regression with this inverse strength of regularisation."""

    def fit(design: Array, labels: Flags, others: Array) -> Array:
        model = LogisticRegression(C=inverse, max_iter=5000).fit(design, labels)
        return np.asarray(model.predict_proba(others)[:, 1])

    return fit


def isotonic(design: Array, labels: Flags, others: Array) -> Array:
    """Fit a monotone function of the first feature, by pool adjacent violators."""
    model = IsotonicRegression(y_min=0.01, y_max=0.99, out_of_bounds="clip").fit(design[:, 0], labels)
    return np.asarray(model.predict(others[:, 0]))


METHODS: dict[str, tuple[tuple[str, ...], Fitter]] = {
    "current": (ALL, chosen_strength),
    "C 0.003": (ALL, strength(0.003)),
    "C 0.01": (ALL, strength(0.01)),
    "C 0.03": (ALL, strength(0.03)),
    "C 0.1": (ALL, strength(0.1)),
    "C 1": (ALL, strength(1.0)),
    "few features": (FEW, chosen_strength),
    "without text features": (
        tuple(name for name in ALL if name not in ("alignment", "worst_word", "similarity", "unseen")),
        chosen_strength,
    ),
    "Platt, score": (("score",), strength(1.0)),
    "Platt, log-probability": (("logprob",), strength(1.0)),
    "isotonic, score": (("score",), isotonic),
    "isotonic, log-probability": (("logprob",), isotonic),
    "share of right parses": ((), strength(1.0)),
}


def compare(paths: Sequence[Path]) -> dict[str, Any]:
    """Return the mean held-out log loss and calibration error of each method, beside the current one."""
    sets = [cases for path in paths for cases in parses_of(path)]
    losses: dict[str, list[float]] = defaultdict(list)
    errors: dict[str, list[float]] = defaultdict(list)
    for cases in sets:
        for name, (features, fitter) in METHODS.items():
            found = [held_out(cases, features, fitter, seed) for seed in range(REPEATS)]
            losses[name].append(mean(loss for loss, _ in found))
            errors[name].append(mean(error for _, error in found))
    rows = {}
    for name in METHODS if sets else ():
        differences = [a - b for a, b in zip(losses[name], losses["current"], strict=True)]
        rows[name] = {
            "log_loss": rounded(mean(losses[name])),
            "ece": rounded(mean(errors[name])),
            "difference": rounded(mean(differences)),
            "standard_error": rounded(stdev(differences) / math.sqrt(len(sets))) if len(sets) > 1 else None,
        }
    return {"settings": len(sets), "parses": sum(map(len, sets)), "methods": rows}


def parses_of(path: Path) -> list[list[Case]]:
    """Return the parses of each setting of a file that are enough to fit on; those out of scope are left out."""
    by_settings: dict[str, list[Record]] = defaultdict(list)
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        (settings, _), record = read_line(line, number, path)
        if record.features is not None:
            by_settings[settings].append(record)
    found = [cases_of(records) for records in by_settings.values()]
    return [
        cases
        for cases in found
        if len(cases) >= 2 * MIN_EXAMPLES
        and min(sum(case.right for case in cases), sum(not case.right for case in cases)) >= 2 * MIN_OF_EACH
    ]


def held_out(cases: Sequence[Case], names: tuple[str, ...], fitter: Fitter, seed: int) -> tuple[float, float]:
    """Return the log loss and the calibration error on the parses that a random part was not fitted on."""
    kept = [
        Case({name: case.features[name] for name in names if name in case.features}, case.right) for case in cases
    ]
    order = np.random.default_rng(seed).permutation(len(kept))
    size = min(FITTED, 3 * len(kept) // 4)
    inside, outside = ([kept[int(i)] for i in part] for part in (order[:size], order[size:]))
    columns = columns_of(inside)
    labels, gold = (np.array([case.right for case in part]) for part in (inside, outside))
    if not columns or labels.all() or not labels.any():
        probability = np.full(len(outside), (labels.sum() + 1) / (len(labels) + 2))
    else:
        designs = [np.hstack(standardised(part, columns)) for part in (inside, outside)]
        probability = fitter(designs[0], labels, designs[1])
    of_gold = np.clip(np.where(gold, probability, 1 - probability), 1e-3, 1)
    pairs = list(zip(probability.tolist(), gold.tolist(), strict=True))
    return -float(np.log(of_gold).mean()), calibration_error(pairs)
