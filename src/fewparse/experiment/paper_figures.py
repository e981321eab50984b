"""The figures that the paper reports, read from `paper_figures.toml`."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any, Literal

Dataset = Literal["overnight", "smcalflow"]
EvaluationSet = Literal["subset", "full"]
Measure = Literal["accuracy", "items_per_second"]


@dataclass(frozen=True)
class PaperResult:
    """The figures of one model with one setting, by dataset, with the digits of the paper.

    A setting that is None is not reported. `partial` results are of a part of the evaluation sets.
    """

    model: str
    target: str
    decoder: str | None = None
    constrained: bool | None = None
    width: int | None = None
    temperature: Decimal | None = None
    partial: bool = False
    accuracy: Mapping[Dataset, Decimal] = field(default_factory=dict)
    items_per_second: Mapping[Dataset, Decimal] = field(default_factory=dict)

    def has(self, options: Mapping[str, Any]) -> bool:
        """Return whether the result was obtained with these options, as far as they are reported."""
        return all(getattr(self, name) in (None, value) for name, value in options.items())

    def figures(self, measure: Measure) -> Mapping[Dataset, Decimal]:
        """Return the figures of a measure by dataset."""
        return self.accuracy if measure == "accuracy" else self.items_per_second


@dataclass(frozen=True)
class PaperFigures:
    """All figures of tables 2 to 8, by evaluation set, and the utterances of the examples in table 1."""

    examples: Mapping[Dataset, str]
    results: Mapping[EvaluationSet, tuple[PaperResult, ...]]

    def find(
        self, items: EvaluationSet, model: str, dataset: Dataset, measure: Measure, options: Mapping[str, Any]
    ) -> "tuple[Decimal, bool] | None":
        """Return a figure, and whether it is of a part of the evaluation set; None if the paper has none."""
        for result in self.results[items]:
            if result.model == model and result.has(options) and dataset in result.figures(measure):
                return result.figures(measure)[dataset], result.partial
        return None


@cache
def paper_figures() -> PaperFigures:
    """Return the figures of the paper."""
    source = files("fewparse.experiment").joinpath("paper_figures.toml").read_text(encoding="utf-8")
    table = tomllib.loads(source, parse_float=Decimal)
    results = {items: tuple(PaperResult(**row) for row in rows) for items, rows in table["figures"].items()}
    return PaperFigures(table["examples"], results)
