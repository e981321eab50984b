"""Estimate the accuracy of configurations from few items each, by the effects of their settings.

A linear mixed model: the accuracy on an item is the sum of a mean, the difficulty of the item, the effect of each
setting, and a remainder of the configuration. All effects are random with fixed variances: the estimate is a ridge
regression. With few items, a configuration is judged by how others with the same settings do; with many, by its
own results. Configurations that were not tried have an estimate too.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fewparse.optimize.space import Configuration

NOISE = 0.10
"""The variance of the result on an item, besides what item and configuration explain."""
VARIANCES = {"mean": 1.0, "item": 0.12, "setting": 0.004, "configuration": 0.001}
"""The variances of the effects, in squared accuracy: a setting changes it by six points, a remainder by three."""


class Observation(NamedTuple):
    """The result of a configuration on an item."""

    configuration: Configuration
    item: int
    correct: bool


def estimate(
    observations: Sequence[Observation], configurations: Iterable[Configuration]
) -> dict[Configuration, float]:
    """Return the estimated accuracy of each configuration, on the items that were observed."""
    columns: dict[tuple[str, object], int] = {}

    def effects(configuration: Configuration) -> list[tuple[str, object]]:
        named: list[tuple[str, object]] = [("setting", feature) for feature in configuration.features]
        return [("mean", None), *named, ("configuration", configuration)]

    rows: list[list[int]] = []
    for configuration, item, _ in observations:
        keys = [*effects(configuration), ("item", item)]
        rows.append([columns.setdefault(key, len(columns)) for key in keys])
    design = np.zeros((len(rows), len(columns)))
    for row, used in zip(design, rows, strict=True):
        row[used] = 1
    penalty = np.array([NOISE / VARIANCES[kind] for kind, _ in columns])
    results = np.array([float(correct) for *_, correct in observations])
    solved = np.linalg.solve(design.T @ design + np.diag(penalty), design.T @ results)
    values: Mapping[tuple[str, object], float] = dict(zip(columns, map(float, solved), strict=True))
    return {each: sum(values.get(key, 0.0) for key in effects(each)) for each in configurations}
