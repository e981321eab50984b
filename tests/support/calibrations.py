"""Calibrations with chosen numbers, for a parser or in general."""

from fewparse.confidence.assess import calibration_path, made_for
from fewparse.confidence.calibration import (
    Calibration,
    Column,
    Logistic,
    Made,
    Origin,
    RiskPoint,
    write_calibration,
)
from fewparse.parser import Parser

ORIGIN = Origin(method="chosen numbers", examples=100, right=80, out_of_scope=20, data_sha256="", fewparse="0.1.0")
RISKS = (
    RiskPoint(confidence=0.9, risk=0.02, coverage=0.5),
    RiskPoint(confidence=0.7, risk=0.05, coverage=0.8),
    RiskPoint(confidence=0.2, risk=0.3, coverage=1.0),
)
MADE = Made(target="program", model="toy", identity="toy", grammar="", decoder={"decoder": "beam", "width": 5})


def constant(value: float, columns: int = 1) -> Logistic:
    """Return a regression whose probability is 1 / (1 + exp(-value)) whatever the features are."""
    return Logistic(intercept=value, weights=(0.0,) * columns, missing=(0.0,) * columns)


def calibration(
    right: float = 3.0, scope: float | None = 5.0, made_for: Made = MADE, column: str = "score"
) -> Calibration:
    """Return a calibration with constant probabilities, given as log-odds."""
    return Calibration(
        made_for=made_for,
        origin=ORIGIN,
        columns=(Column(name=column, mean=0.0, scale=1.0),),
        right=constant(right),
        scope=None if scope is None else constant(scope),
        risks=RISKS,
        decline_below=0.5 if scope is not None else 0.0,
    )


def calibrate_parser(parser: Parser, right: float = 3.0, scope: float | None = 5.0, column: str = "score") -> None:
    """Store a calibration with constant probabilities for the settings of a parser in the domain's folder."""
    made = made_for(parser.domain, parser.model, parser.options)
    write_calibration(calibration_path(parser.domain), calibration(right, scope, made, column))
