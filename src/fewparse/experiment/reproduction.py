"""A table of the paper with given models: the experiments that fill it, one per dataset, and its figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import Any

from fewparse.evaluate.metrics import count, pair
from fewparse.evaluate.record_lines import Record
from fewparse.evaluate.summary import summarise
from fewparse.experiment.grid import Cell, ExperimentTable, GridTable, RemoteTable
from fewparse.experiment.paper_figures import Dataset, EvaluationSet, paper_figures
from fewparse.experiment.paper_tables import PAPER_DATASETS, Column, PaperTable, Part, Row
from fewparse.experiment.results import Results
from fewparse.experiment.statistics import mean_interval, paired_interval
from fewparse.options import NO_ADAPTER

SUBSET_ITEMS: Mapping[Dataset, int] = {"overnight": 100, "smcalflow": 200}
FULL_SPLITS: Mapping[Dataset, str] = {"overnight": "test", "smcalflow": "full"}
TIMED_ITEMS = 10
"""Items per second are measured on the first items, as in appendix A of the paper."""
PARTIAL = "*"
"""The paper's mark of a figure on a part of the evaluation set."""


@dataclass(frozen=True)
class Figure:
    """A figure of a table; `text` has as many digits as the paper.

    Ours has the number of its items, how many of them failed, and, unless it is a speed, a 95% interval.
    """

    text: str
    value: float
    items: int | None = None
    failed: int = 0
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Reproduction:
    """Which table of the paper is repeated, with which models, items and settings.

    With `paper`, the settings are those of the paper, otherwise those of the domains without their adapters.
    """

    table: PaperTable
    models: Sequence[str]
    datasets: Sequence[Dataset] = PAPER_DATASETS
    items: EvaluationSet = "subset"
    limit: int | None = None
    paper: bool = True
    retriever: str | None = None
    retriever_model: str | None = None
    remote: RemoteTable = field(default_factory=RemoteTable)

    @property
    def parts(self) -> list[Part]:
        """The parts of the table, with the columns of the chosen datasets."""
        parts = [
            Part(part.title, tuple(column for column in part.columns if column.dataset in self.datasets))
            for part in self.table.parts
        ]
        return [part for part in parts if part.columns]

    def item_limit(self, dataset: Dataset) -> int | None:
        """Return how many items of each domain are used; None means all."""
        limits = [self.limit, SUBSET_ITEMS[dataset] if self.items == "subset" else None]
        return min((limit for limit in limits if limit is not None), default=None)

    def folder_name(self, dataset: Dataset) -> str:
        """Return the folder of the results of a dataset, which all tables with the same items share."""
        return dataset if self.items == "subset" else f"{dataset}-full"

    def experiments(self) -> dict[Dataset, ExperimentTable]:
        """Return the experiment of each dataset that the table has."""
        grids: dict[Dataset, list[GridTable]] = {}
        for part in self.parts:
            for column in part.columns:
                if column.measure != "difference":
                    domains = self.table.domains(column.dataset)
                    grids.setdefault(column.dataset, []).extend(
                        self.grid(domains, self.models, {**row.options, **column.options})
                        for row in self.table.rows
                    )
        return {
            dataset: ExperimentTable(
                name=f"paper-{self.folder_name(dataset)}",
                split=FULL_SPLITS[dataset] if self.items == "full" else "test",
                limit=self.item_limit(dataset),
                grid=tuple(of_dataset),
                remote=self.remote,
            )
            for dataset, of_dataset in grids.items()
        }

    def grid(self, domains: Sequence[str], models: Sequence[str], options: Mapping[str, Any]) -> GridTable:
        """Return the grid of one setting."""
        shared: dict[str, Any] = {"paper": True} if self.paper else {"adapter": NO_ADAPTER}
        retrieval = {"retriever": self.retriever, "retriever_model": self.retriever_model}
        shared |= {name: value for name, value in retrieval.items() if value is not None}
        return GridTable(domain=tuple(domains), model=tuple(models), **shared, **options)

    def cell(self, domain: str, model: str, options: Mapping[str, Any]) -> Cell:
        """Return the cell of one setting."""
        (cell,) = self.grid([domain], [model], options).cells()
        return cell

    def paper_figure(self, model: str, row: Row, column: Column) -> Figure | None:
        """Return a figure that the paper reports; None if it reports none."""
        if column.measure == "difference":
            canonical, program = (
                paper_figures().find(
                    self.table.items, model, column.dataset, "accuracy", {**row.options, "target": target}
                )
                for target in ("canonical", "program")
            )
            found = canonical and program and (canonical[0] - program[0], canonical[1] or program[1])
        else:
            options = {**row.options, **column.options}
            found = paper_figures().find(self.table.items, model, column.dataset, column.measure, options)
        if not found:
            return None
        value, partial = found
        return Figure(f"{value}{PARTIAL if partial else ''}", float(value))

    def figure(self, results: Mapping[Dataset, Results], model: str, row: Row, column: Column) -> Figure | None:
        """Return a figure of our results; None if some of its items are not finished."""

        def records(target: str | None = None, first: int | None = None) -> list[list[Record]] | None:
            options = {**row.options, **column.options} | ({} if target is None else {"target": target})
            limits = [limit for limit in (self.item_limit(column.dataset), first) if limit is not None]
            cells = [self.cell(domain, model, options) for domain in self.table.domains(column.dataset)]
            return finished_records(results.get(column.dataset), cells, min(limits, default=None))

        if column.measure == "difference":
            canonical, program = records("canonical"), records("program")
            return difference(flat(canonical), flat(program), column.digits) if canonical and program else None
        if column.measure == "items_per_second":
            timed = records(first=TIMED_ITEMS)
            return speed(flat(timed), column.digits) if timed else None
        found = records()
        return accuracy(found, column.digits) if found else None


def finished_records(
    results: Results | None, cells: Sequence[Cell], limit: int | None
) -> list[list[Record]] | None:
    """Return the records of each cell on the first items; None if one is missing."""
    if results is None or not includes(results.manifest.limit, limit):
        return None
    by_id = {result.id: result.first(limit) for result in results.cell_results}
    found: list[list[Record]] = []
    for cell in cells:
        records = [] if cell.id not in by_id else [record for _, record in by_id[cell.id].finished()]
        if not records or len(records) < len(by_id[cell.id].records):
            return None
        found.append(records)
    return found


def includes(available: int | None, limit: int | None) -> bool:
    """Return whether a number of items includes the first ones up to a limit; None means all items."""
    return available is None or (limit is not None and limit <= available)


def flat(groups: Sequence[Sequence[Record]]) -> list[Record]:
    """Return the records of all domains."""
    return [record for group in groups for record in group]


def correct(records: Sequence[Record]) -> list[bool]:
    """Return whether the best candidate of each record is correct."""
    return [record.correct_within(1) for record in records]


def failures(records: Sequence[Record]) -> int:
    """Return the number of items that failed, which count as wrong."""
    return sum(record.failure is not None for record in records)


def accuracy(groups: Sequence[Sequence[Record]], digits: int) -> Figure:
    """Return the mean of the accuracies of domains, with the interval of statistics.py."""
    shares = [count(correct(group)) for group in groups]
    value = mean(share.value for share in shares)
    interval = shares[0].interval() if len(shares) == 1 else mean_interval(shares)
    records = flat(groups)
    return Figure(f"{value:.{digits}f}", value, len(records), failures(records), interval)


def difference(first: Sequence[Record], second: Sequence[Record], digits: int) -> Figure:
    """Return the difference of two accuracies on the same items, with the interval of statistics.py."""
    paired, items = pair(correct(first), correct(second)), len(first)
    value = (paired.only_first - paired.only_second) / items
    interval = paired_interval(paired.only_first, paired.only_second, items)
    return Figure(f"{value:z.{digits}f}", value, items, failures([*first, *second]), interval)


def speed(records: Sequence[Record], digits: int) -> Figure | None:
    """Return the items per second of the items that did not fail; None if all failed."""
    found = summarise(records)
    value = found.items_per_second
    return Figure(f"{value:.{digits}f}", value, found.finished - found.failed, found.failed) if value else None
