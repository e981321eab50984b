"""A table of the paper with given models: the experiments that fill it, one per dataset, and its figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fewparse.experiment.grid import Cell, ExperimentTable, GridTable, RemoteTable
from fewparse.experiment.paper_figures import Dataset, EvaluationSet, paper_figures
from fewparse.experiment.paper_tables import PAPER_DATASETS, Column, PaperTable, Part, Row
from fewparse.experiment.results import CellResult, Results
from fewparse.experiment.statistics import average, compare, summary
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

        def cells(target: str | None = None, first: int | None = None) -> list[CellResult] | None:
            options = {**row.options, **column.options} | ({} if target is None else {"target": target})
            limits = [limit for limit in (self.item_limit(column.dataset), first) if limit is not None]
            wanted = [self.cell(domain, model, options) for domain in self.table.domains(column.dataset)]
            return finished_cells(results.get(column.dataset), wanted, min(limits, default=None))

        if column.measure == "difference":
            canonical, program = cells("canonical"), cells("program")
            return difference(canonical[0], program[0], column.digits) if canonical and program else None
        if column.measure == "items_per_second":
            timed = cells(first=TIMED_ITEMS)
            return speed(timed[0], column.digits) if timed else None
        found = cells()
        return accuracy(found, column.digits) if found else None


def finished_cells(results: Results | None, cells: Sequence[Cell], limit: int | None) -> list[CellResult] | None:
    """Return the results of each cell on the first items; None if one is missing."""
    if results is None or not includes(results.manifest.limit, limit):
        return None
    by_id = {result.id: result.first(limit) for result in results.cell_results}
    found = [by_id[cell.id] for cell in cells if cell.id in by_id]
    complete = len(found) == len(cells) and all(cell.records and None not in cell.records for cell in found)
    return found if complete else None


def includes(available: int | None, limit: int | None) -> bool:
    """Return whether a number of items includes the first ones up to a limit; None means all items."""
    return available is None or (limit is not None and limit <= available)


def accuracy(cells: Sequence[CellResult], digits: int) -> Figure:
    """Return the mean of the accuracies of cells of several domains, or the accuracy of a single one."""
    summaries = list(map(summary, cells))
    items, failed = (sum(getattr(each, name) for each in summaries) for name in ("items", "failed"))
    if len(cells) == 1:
        share = summaries[0].accuracy
        return Figure(f"{share.value:.{digits}f}", share.value, items, failed, share.interval())
    mean = average(cells)
    return Figure(f"{mean.macro:.{digits}f}", mean.macro, items, failed, mean.interval)


def difference(first: CellResult, second: CellResult, digits: int) -> Figure:
    """Return the difference of the accuracies of two cells on the same items."""
    compared = compare(first, second)
    value, failed = compared.difference, summary(first).failed + summary(second).failed
    return Figure(f"{value:z.{digits}f}", value, compared.items, failed, compared.interval)


def speed(cell: CellResult, digits: int) -> Figure | None:
    """Return the items per second of the items that did not fail; None if all failed."""
    figures = summary(cell)
    value = figures.items_per_second
    return Figure(f"{value:.{digits}f}", value, figures.items, figures.failed) if value else None
