"""Calibrations: numbers that turn the features of a parse into probabilities, with their provenance.

A domain's file `calibration.json` has one calibration for each model, adapter, grammar, decoder and target. The
confidence is P(in scope) * P(right | in scope), each by a logistic regression.
"""

import bisect
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fewparse.confidence.features import VERSION, Features
from fewparse.errors import CalibrationError, DomainError
from fewparse.example import TARGETS, Decision
from fewparse.files import exists, os_reason, read_text, write_atomically
from fewparse.limits import SETTINGS_BYTES
from fewparse.text import to_json

FILE = "calibration.json"
CLIP = 6.0
"""Standard deviations beyond which a feature counts no more: no single value decides alone."""


class Data(BaseModel):
    """A part of the file; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Made(Data):
    """What a calibration is for: it is used only where all of this is the same.

    `identity` is that of the model with its adapter (see `model_identity`). `grammar` is a hash of the constraint
    and its files, `decoder` holds the settings of search, prompt and reranking.
    """

    target: str = Field(pattern="|".join(TARGETS))
    model: str
    identity: str
    grammar: str
    decoder: dict[str, str | int | float | bool | None]
    features: int = VERSION

    def difference(self, other: "Made") -> str | None:
        """Return how another use differs, in words; None if it does not."""
        if self.identity != other.identity:
            return f"the model {self.model}" if self.model != other.model else "other weights or another adapter"
        if self.grammar != other.grammar:
            return "another grammar"
        for name, value in self.decoder.items():
            if other.decoder.get(name, value) != value:
                return f"{name} {value}"
        if more := sorted(set(other.decoder) - set(self.decoder)):
            return f"another {more[0]}"
        same = self == other.model_copy(update={"model": self.model})  # one file may have several names
        return None if same else "another version of fewparse"


class Column(Data):
    """A feature: its mean and standard deviation, and whether it may be missing."""

    name: str
    mean: float
    scale: float = Field(gt=0)
    may_be_missing: bool = False


class Logistic(Data):
    """A logistic regression on standardised features; `missing` are the weights of missing ones."""

    intercept: float
    weights: tuple[float, ...]
    missing: tuple[float, ...]

    def probability(self, values: Sequence[float | None]) -> float:
        """Return the probability for standardised values; None stands for a missing one."""
        total = self.intercept
        for value, weight, missing in zip(values, self.weights, self.missing, strict=True):
            total += missing if value is None else weight * value
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))


class RiskPoint(Data):
    """Executing at this confidence or more: the upper bound of the share of wrong programs, and of all parses."""

    confidence: float
    risk: float
    coverage: float


class Origin(Data):
    """What a calibration was fitted on: examples parsed by a model that had not learned them.

    `right` of `examples` were parsed correctly. `out_of_scope` counts the utterances that no program expresses.
    """

    method: str
    examples: int
    right: int
    out_of_scope: int
    data_sha256: str
    fewparse: str


class Estimate(NamedTuple):
    """The probability that a program is right, and that the utterance is in scope; None if that is not known."""

    confidence: float
    in_scope: float | None


class Calibration(Data):
    """A calibration with its provenance; `decline_below` is a threshold on the probability of being in scope."""

    made_for: Made
    origin: Origin
    columns: tuple[Column, ...]
    right: Logistic
    scope: Logistic | None
    risks: tuple[RiskPoint, ...]
    decline_below: float

    def estimate(self, features: Features) -> Estimate | None:
        """Return the estimate for a parse; None if it lacks a feature that the calibration needs."""
        values: list[float | None] = []
        for column in self.columns:
            value = features.get(column.name)
            if value is None and not column.may_be_missing:
                return None
            values.append(None if value is None else clipped((value - column.mean) / column.scale))
        in_scope = None if self.scope is None else self.scope.probability(values)
        return Estimate((1.0 if in_scope is None else in_scope) * self.right.probability(values), in_scope)

    def needs(self, names: Sequence[str]) -> bool:
        """Return whether a parse without one of these features has no confidence."""
        return any(column.name in names and not column.may_be_missing for column in self.columns)

    def decide(self, estimate: Estimate, max_risk: float) -> Decision:
        """Return what to do with a parse if at most this share of the executed programs may be wrong."""
        if max_risk < 1 and estimate.in_scope is not None and estimate.in_scope < self.decline_below:
            return "decline"
        return "execute" if estimate.confidence >= self.threshold(max_risk) else "confirm"

    def threshold(self, max_risk: float) -> float:
        """Return the confidence from which on programs are executed; infinite if no confidence keeps the risk."""
        if max_risk >= 1:
            return 0.0
        at = bisect.bisect_right(self.risks, max_risk, key=lambda point: point.risk)
        return self.risks[at - 1].confidence if at else math.inf


def clipped(value: float) -> float:
    """Return a standardised value, limited."""
    return max(-CLIP, min(CLIP, value))


class CalibrationFile(Data):
    """The whole file."""

    calibrations: tuple[Calibration, ...] = ()


def read_calibrations(path: Path) -> tuple[Calibration, ...]:
    """Return the calibrations of a file, none if it does not exist; a mistake is a `CalibrationError`."""
    if not exists(path):
        return ()
    try:
        return CalibrationFile.model_validate_json(read_text(path, DomainError, SETTINGS_BYTES)).calibrations
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "all of it"
        raise CalibrationError(
            f"{path} is not a file of calibrations ({where}: {first['msg']})",
            "Remove it, then calibrate the domain: fewparse calibrate DOMAIN",
        ) from None


def write_calibration(path: Path, calibration: Calibration) -> None:
    """Add a calibration to a file, in the place of one for the same use; raise `CalibrationError`."""
    others = [each for each in read_calibrations(path) if each.made_for.difference(calibration.made_for)]
    content: dict[str, Any] = CalibrationFile(calibrations=(*others, calibration)).model_dump(mode="json")
    try:
        write_atomically(path, f"{to_json(content, indent=1)}\n".encode())
    except OSError as error:
        raise CalibrationError(f"{path} cannot be written: {os_reason(error)}") from None
