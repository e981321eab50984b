"""The results of an experiment, read from its folder: the records of each cell on each item."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewparse.errors import UnknownName
from fewparse.evaluate.record_lines import Record
from fewparse.evaluate.records import Records, fingerprint
from fewparse.experiment.folder import RECORDS, CellEntry, Item, Manifest, read_items, read_manifest
from fewparse.experiment.grid import Cell, varying

if TYPE_CHECKING:
    from fewparse.experiment.frames import Library


@dataclass(frozen=True)
class CellResult:
    """The records of one cell, one per item of its domain in order; None for an item that is not finished.

    `label` says in which options the cell differs from the others of the experiment. An item that failed has a
    record with its `failure`.
    """

    entry: CellEntry
    label: str
    items: tuple[Item, ...]
    records: tuple[Record | None, ...]

    @property
    def id(self) -> str:
        """The id of the cell."""
        return self.entry.id

    @property
    def options(self) -> Mapping[str, Any]:
        """The options that the grid sets."""
        return self.entry.options

    @property
    def settings(self) -> Mapping[str, Any]:
        """Everything that the results depend on; `settings["options"]` are the resolved options."""
        return self.entry.settings

    @property
    def domain(self) -> str:
        """The name or folder of the domain."""
        return str(self.options["domain"])

    def first(self, limit: int | None) -> "CellResult":
        """Return the results on the first items only; None means all."""
        return replace(self, items=self.items[:limit], records=self.records[:limit])

    def finished(self) -> Iterator[tuple[Item, Record]]:
        """Yield the items that have a record."""
        for item, record in zip(self.items, self.records, strict=True):
            if record is not None:
                yield item, record

    def gold_seen(self, item: Item) -> bool:
        """Return whether a training example of the cell's pool has the same gold program."""
        return item.first_seen is not None and item.first_seen <= self.entry.pool


@dataclass(frozen=True)
class Results:
    """The results of an experiment."""

    folder: Path
    manifest: Manifest
    cell_results: tuple[CellResult, ...]

    def cell(self, name: str) -> CellResult:
        """Return a cell by its id or its label; raise `UnknownName` if there is none."""
        for result in self.cell_results:
            if name in (result.id, result.label):
                return result
        raise UnknownName("cell", name, [repr(result.label) for result in self.cell_results])

    @cached_property
    def varying(self) -> tuple[str, ...]:
        """The options in which the cells differ."""
        return varying([Cell(result.options) for result in self.cell_results])

    @property
    def domains(self) -> tuple[str, ...]:
        """The domains of the cells."""
        return tuple(dict.fromkeys(result.domain for result in self.cell_results))

    def items(self, library: "Library | None" = None) -> Any:
        """Return a data frame with a row per cell and item.

        `library` is `pandas` or `polars`, by default the one that is installed; raises `UsageError` if it is not.
        """
        from fewparse.experiment.frames import items_frame

        return items_frame(self, library)

    def cells(self, library: "Library | None" = None) -> Any:
        """Return a data frame with a row per cell: its options and figures; `library` as for `items`."""
        from fewparse.experiment.frames import cells_frame

        return cells_frame(self, library)

    def label(self, cell: CellResult, without: str) -> str:
        """Return the label of a cell without one of the options in which the cells differ."""
        names = [name for name in self.varying if name != without]
        return Cell(cell.options).label(names) or cell.options["model"]


def read_results(folder: Path) -> Results:
    """Read the folder of an experiment, finished or not; raise `ResultsError` if it is damaged.

    The files are not changed: an incomplete last line of records, as of a killed run, is ignored.
    """
    manifest, items = read_manifest(folder), read_items(folder)
    records = Records.read_only(record_files(folder))
    cells = [Cell(entry.options) for entry in manifest.cells]
    names = varying(cells)
    results = []
    for cell, entry in zip(cells, manifest.cells, strict=True):
        key = fingerprint(entry.settings)
        of_domain = tuple(items.get(cell.domain, ()))
        found = tuple(records.get((key, item.id)) for item in of_domain)
        results.append(CellResult(entry, cell.label(names) or cell.label(("domain", "model")), of_domain, found))
    return Results(folder, manifest, tuple(results))


def record_files(folder: Path) -> Sequence[Path]:
    """Return the files of records in a folder: of the whole experiment, and of its shards."""
    return sorted(folder.glob(f"{Path(RECORDS).stem}*{Path(RECORDS).suffix}"))
