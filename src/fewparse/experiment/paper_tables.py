"""The layout of tables 2 to 8 of the paper: their rows and columns, and the options that these set."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fewparse.datasets.registry import DATASETS
from fewparse.experiment.paper_figures import Dataset, EvaluationSet

ColumnMeasure = Literal["accuracy", "difference", "items_per_second"]
"""`difference` is the accuracy with canonical utterances minus the accuracy with programs."""

PAPER_DATASETS: tuple[Dataset, ...] = ("overnight", "smcalflow")
CALENDAR = "overnight/calendar"
OUTPUTS = {"canonical": "Canonical", "program": "Meaning"}
"""The paper's words for the targets."""


@dataclass(frozen=True)
class Column:
    """A column of figures: `headings` are those of its group and its own."""

    headings: tuple[str, str]
    dataset: Dataset
    options: Mapping[str, Any] = field(default_factory=dict)
    measure: ColumnMeasure = "accuracy"
    digits: int = 3


@dataclass(frozen=True)
class Row:
    """A setting: its labels, and the options that it sets."""

    labels: tuple[str, ...]
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Part:
    """A part of a table with columns of its own; the title is empty if it is the only one."""

    title: str
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper: its rows are printed for each model.

    `keys` are the headings of the labels of rows. With `by_model`, all rows of a model are adjacent; otherwise the
    rows of all models for one setting are. `paper_models` are those whose figures the paper reports.
    """

    name: str
    caption: str
    paper_models: tuple[str, ...]
    keys: tuple[str, ...]
    rows: tuple[Row, ...]
    parts: tuple[Part, ...]
    by_model: bool = True
    items: EvaluationSet = "subset"
    all_domains: bool = False

    @property
    def title(self) -> str:
        """Its number in the paper, such as `Table 5`."""
        return f"Table {self.name.removeprefix('table')}"

    def domains(self, dataset: Dataset) -> tuple[str, ...]:
        """Return the domains of a dataset; the accuracy of several is their mean."""
        if dataset == "overnight" and not self.all_domains:
            return (CALENDAR,)
        return DATASETS[dataset].domains


def beam(width: int, constrained: bool = True) -> dict[str, Any]:
    """Return the options of a beam search."""
    return {"decoder": "beam", "width": width, "constrained": constrained}


def speculative(width: int, temperature: float) -> dict[str, Any]:
    """Return the options of speculative constrained decoding."""
    return {"decoder": "speculative", "width": width, "temperature": temperature, "constrained": True}


CALENDAR_COLUMN = Column(("Accuracy", "Overnight Cal."), "overnight", digits=2)
MEAN_COLUMN = Column(("Accuracy", "Overnight Avg."), "overnight")
SMCALFLOW_COLUMN = Column(("Accuracy", "SMCalFlow"), "smcalflow")
TITLES: Mapping[Dataset, str] = {"overnight": "Overnight Calendar", "smcalflow": "SMCalFlow"}
CODEX = ("Davinci Codex",)
ALL_MODELS = ("Davinci", "Curie", "Davinci Codex", "Cushman Codex")


def for_each_dataset(*measures: tuple[str, ColumnMeasure]) -> tuple[Part, ...]:
    """Return one part per dataset, with the columns Canonical and Meaning for each measure."""
    parts = []
    for dataset in PAPER_DATASETS:
        columns = [
            Column((group, output), dataset, {"target": target}, measure, digits(dataset, measure))
            for group, measure in measures
            for target, output in OUTPUTS.items()
        ]
        parts.append(Part(TITLES[dataset], tuple(columns)))
    return tuple(parts)


def digits(dataset: Dataset, measure: ColumnMeasure) -> int:
    """Return the number of decimals in the paper."""
    return 2 if dataset == "overnight" and measure != "items_per_second" else 3


def with_difference(part: Part) -> Part:
    """Return a part with the column C - M."""
    dataset = part.columns[0].dataset
    column = Column(("Accuracy", "C - M"), dataset, {}, "difference", digits(dataset, "difference"))
    return Part(part.title, (*part.columns, column))


def decoding_rows(*targets: str) -> tuple[Row, ...]:
    """Return the rows of beam search: each target, constrained and not, with beams of 5 and 1."""
    return tuple(
        Row(
            (*([OUTPUTS[target]] if len(targets) > 1 else []), decoding, str(width)),
            {"target": target, **beam(width, constrained)},
        )
        for target in targets
        for decoding, constrained in (("Constrained", True), ("Unconstrained", False))
        for width in (5, 1)
    )


def width_rows(*temperatures: float) -> tuple[Row, ...]:
    """Return the rows of tables 5 and 8: widths and temperatures of speculative decoding, and beam search (BS)."""
    rows = [Row(("1", "0.0"), speculative(1, 0.0)), Row(("1", "BS"), beam(1))]
    for width in (5, 10):
        rows += [Row((str(width), str(t)), speculative(width, t)) for t in temperatures]
        if width == 5:
            rows.append(Row(("5", "BS"), beam(5)))
    return tuple(rows)


SPEED_PARTS = for_each_dataset(("Accuracy", "accuracy"), ("Items/second", "items_per_second"))
BOTH_DATASETS = (Part("", (CALENDAR_COLUMN, SMCALFLOW_COLUMN)),)
BEAM_OF_5 = (Row((), beam(5)),)
CANONICAL = {"target": "canonical"}

PAPER_TABLES: Mapping[str, PaperTable] = {
    table.name: table
    for table in (
        PaperTable(
            "table2",
            "Models, with constrained decoding of canonical utterances by beam search (beam 5)",
            ALL_MODELS,
            (),
            (Row((), CANONICAL | beam(5)),),
            BOTH_DATASETS,
        ),
        PaperTable(
            "table3",
            "Canonical utterances against meaning representations (constrained, beam 5)",
            ("Davinci", "Davinci Codex"),
            (),
            BEAM_OF_5,
            tuple(map(with_difference, for_each_dataset(("Accuracy", "accuracy")))),
        ),
        PaperTable(
            "table4",
            "Constrained and unconstrained decoding of meaning representations",
            CODEX,
            ("Decoding", "Beam"),
            decoding_rows("program"),
            BOTH_DATASETS,
            by_model=False,
        ),
        PaperTable(
            "table5",
            "Speculative constrained decoding and beam search (BS)",
            CODEX,
            ("Width", "Temp."),
            width_rows(0.5, 1.0),
            SPEED_PARTS,
            by_model=False,
        ),
        PaperTable(
            "table6",
            "The entire evaluation sets, with speculative constrained decoding (width 10, temperature 0.5)",
            ("Shin et al. 2021", "Codex"),
            ("Output",),
            tuple(Row((output,), {"target": target} | speculative(10, 0.5)) for target, output in OUTPUTS.items()),
            (Part("", (MEAN_COLUMN, SMCALFLOW_COLUMN)),),
            items="full",
            all_domains=True,
        ),
        PaperTable(
            "table7",
            "All results of beam search",
            ALL_MODELS,
            ("Output", "Decoding", "Beam"),
            decoding_rows("canonical", "program"),
            BOTH_DATASETS,
        ),
        PaperTable(
            "table8",
            "Speculative constrained decoding and beam search (BS), with more temperatures",
            CODEX,
            ("Width", "Temp."),
            width_rows(0.25, 0.5, 0.75, 1.0),
            SPEED_PARTS,
            by_model=False,
        ),
    )
}
