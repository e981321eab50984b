"""Shared by the benchmarks of confidence: records, baselines, and figures of confidences on test items."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fewparse import Domain, Record
from fewparse.confidence.calibration import Calibration
from fewparse.evaluate.calibration import (
    area_under_risk,
    bootstrap,
    brier,
    calibration_error,
    figures,
    judge_records,
    rounded,
)
from fewparse.evaluate.calibration_plots import write_plots
from fewparse.evaluate.confirmation import confirmation, offers_right
from fewparse.evaluate.report import share
from fewparse.example import Target
from measure import RESULTS

RECORDS = RESULTS / "confidence-records.jsonl"
FIGURES = RESULTS / "confidence.json"
RISKS = (0.02, 0.05, 0.1, 0.2)
Pairs = Sequence[tuple[float, bool]]


def figures_on(
    domain: Domain,
    target: Target,
    calibration: Calibration,
    records: Sequence[Record],
    outside: Sequence[Record] = (),
    plot_risk: float | None = None,
) -> dict[str, Any]:
    """Return the figures of a calibration on test items, beside the baselines; write the plots of a risk."""
    found: dict[str, Any] = {"fitted_on": calibration.origin.model_dump()}
    for risk in RISKS:
        judged = judge_records(calibration, records, risk)
        found[f"at risk {risk}"] = figures(judged, judge_records(calibration, outside, risk, False), risk)
    if plot_risk is not None:
        folder = RESULTS / "confidence" / domain.name.replace("/", "-")
        folder.mkdir(parents=True, exist_ok=True)
        write_plots(folder, found[f"at risk {plot_risk}"])
    found["confidences"] = {
        name: confidence_figures(pairs) for name, pairs in pairs_of(calibration, records).items()
    }
    found["confirmation"] = {str(risk): confirmed(domain, target, calibration, records, risk) for risk in RISKS}
    return found


def pairs_of(calibration: Calibration, records: Sequence[Record]) -> dict[str, Pairs]:
    """Return the confidence of each record and whether it is right; the same for the baselines."""
    features = [record.features or {} for record in records]
    estimates = [calibration.estimate(each) for each in features]
    values = {
        "calibrated": [0.0 if estimate is None else estimate.confidence for estimate in estimates],
        "sequence probability": [math.exp(each.get("logprob", -math.inf)) for each in features],
        "minimum token probability": [math.exp(each.get("least_token", -math.inf)) for each in features],
    }
    right = [record.correct_within(1) for record in records]
    return {name: list(zip(of_it, right, strict=True)) for name, of_it in values.items()}


def confidence_figures(pairs: Pairs) -> dict[str, Any]:
    """Return the calibration error with its interval, and other figures, of one kind of confidence."""
    return {
        "ece": rounded(calibration_error(pairs)),
        "ece_interval": [rounded(end) for end in bootstrap(pairs)],
        "expected_if_calibrated": rounded(expected_error([confidence for confidence, _ in pairs])),
        "brier": rounded(brier(pairs)),
        "area_under_risk": rounded(area_under_risk(pairs)),
    }


def expected_error(confidences: Sequence[float], samples: int = 500) -> float:
    """Return the mean calibration error that perfect confidences of these values would have on so few items."""
    random = np.random.default_rng(0)
    drawn = random.random((samples, len(confidences))) < np.array(confidences)
    return float(
        np.mean([calibration_error(list(zip(confidences, map(bool, row), strict=True))) for row in drawn])
    )


def confirmed(
    domain: Domain, target: Target, calibration: Calibration, records: Sequence[Record], risk: float
) -> dict[str, Any]:
    """Return what is executed if users answer the questions rightly, beside the threshold of the same coverage."""
    judged = judge_records(calibration, records, risk)
    offered = [offers_right(domain, target, record) for record in records]
    found = confirmation(judged, offered)
    return {
        "questions": found.questions,
        "coverage": rounded(found.coverage),
        "risk": share(found.wrong),
        "risk_of_threshold": share(found.wrong_by_threshold),
    }


def mean_errors(domains: Sequence[Mapping[str, Pairs]], samples: int = 1000) -> dict[str, Any]:
    """Return the mean calibration error of several domains by kind of confidence, with bootstrap intervals."""
    random = np.random.default_rng(0)
    found = {}
    for kind in domains[0]:
        drawn = np.zeros(samples)
        for pairs in (each[kind] for each in domains):
            rows = random.integers(0, len(pairs), (samples, len(pairs)))
            drawn += [calibration_error([pairs[i] for i in row]) / len(domains) for row in rows]
        low, high = (rounded(float(end)) for end in np.quantile(drawn, (0.025, 0.975)))
        mean = sum(calibration_error(each[kind]) for each in domains) / len(domains)
        found[kind] = {"ece": rounded(mean), "ece_interval": [low, high]}
    return found
