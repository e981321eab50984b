"""The values that the page of a report shows, as JSON objects: the overview, and the results of every item."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from fewparse.evaluate.record_lines import Record
from fewparse.experiment.folder import Item
from fewparse.experiment.markdown import NOTE, overview, state
from fewparse.experiment.plots import Plot
from fewparse.experiment.results import CellResult, Results
from fewparse.experiment.statistics import cells_without, summary
from fewparse.experiment.tables import (
    Table,
    averages_table,
    breakdown_tables,
    cells_table,
    comparison_tables,
    models_table,
    target_table,
)
from fewparse.text import to_json

Place = tuple[int, int]
"""Where a value is stored: the number of its file, and its position in that file."""
RIGHT, WRONG, FAILED, UNFINISHED = "1", "0", "f", "-"
NO_PLOTS = "There are no plots: they need several cells, and matplotlib (pip install 'fewparse[report]')."


def overview_data(
    results: Results, plots: Sequence[Plot], extra: Sequence[Table], places: Mapping[tuple[str, int], Place]
) -> dict[str, Any]:
    """Return everything that the page needs at once; `places` are those of the items by domain and index."""
    manifest = results.manifest
    configurations = cells_without(results, "domain")
    configuration_of = {cell.id: number for number, (_, group) in enumerate(configurations) for cell in group}
    position = {cell.id: at for at, cell in enumerate(results.cell_results)}
    return {
        "title": manifest.name or "Experiment",
        "description": without_markup(overview(results)),
        "state": [line.removeprefix("- ") for part in state(results) for line in without_markup(part).split("\n")],
        "note": NOTE,
        "cells_table": {**table_data(cells_table(results)), "bars": cell_bars(results)},
        "tables": [table_data(table) for table in (*extra, *further_tables(results))],
        "plots": [{"title": plot.title, "file": f"plots/{plot.name}.svg"} for plot in plots],
        "plots_hint": NO_PLOTS,
        "domains": results.domains,
        "configurations": [
            {"label": label, "cells": {cell.domain: position[cell.id] for cell in group}}
            for label, group in configurations
        ],
        "cells": [cell_data(cell, configuration_of[cell.id]) for cell in results.cell_results],
        "items": [
            item_data(item, at, places[item.domain, item.index])
            for items in items_by_domain(results).values()
            for at, item in enumerate(items)
        ],
        "notes": [[domain, list(notes)] for domain, notes in manifest.notes.items() if notes],
        "models": table_data(models_table(results)),
        "hashes": hashes(results),
    }


def without_markup(text: str) -> str:
    """Return a text of the Markdown report as plain text."""
    return text.replace("**", "").replace("`", "")


def further_tables(results: Results) -> list[Table]:
    """Return the averages, comparisons and breakdowns of the experiment."""
    tables = (
        averages_table(results),
        target_table(results),
        *comparison_tables(results),
        *breakdown_tables(results),
    )
    return [table for table in tables if table is not None]


def table_data(table: Table) -> dict[str, Any]:
    """Return a table as a JSON object."""
    return asdict(table) | {"note": without_markup(table.note)}


def cell_bars(results: Results) -> list[tuple[float, float, float]]:
    """Return the accuracy of every cell with the limits of its interval: low, value, high."""
    shares = [summary(cell).accuracy for cell in results.cell_results]
    return [(share.interval()[0], share.value, share.interval()[1]) for share in shares]


def cell_data(cell: CellResult, configuration: int) -> dict[str, Any]:
    """Return a cell: its options, the number of its configuration, and a mark for each of its items."""
    return {
        "id": cell.id,
        "label": cell.label,
        "domain": cell.domain,
        "configuration": configuration,
        "marks": "".join(map(mark, cell.records)),
        "settings": to_json(dict(cell.settings), indent=1),
    }


def mark(record: Record | None) -> str:
    """Return the result of an item as one character."""
    if record is None:
        return UNFINISHED
    if record.failure is not None:
        return FAILED
    return RIGHT if record.correct_within(1) else WRONG


def item_data(item: Item, at: int, place: Place) -> dict[str, Any]:
    """Return an item; `at` is its position in the marks of the cells."""
    names = ("domain", "index", "utterance", "context", "gold", "canonical", "first_seen")
    chunk, position = place
    return {name: getattr(item, name) for name in names} | {"at": at, "chunk": chunk, "position": position}


def items_by_domain(results: Results) -> dict[str, tuple[Item, ...]]:
    """Return the items of each domain."""
    return {cell.domain: cell.items for cell in results.cell_results}


def record_data(record: Record | None, store_trace: Callable[[Any], Place]) -> dict[str, Any] | None:
    """Return what the page shows of a record; `store_trace` stores its trace and says where."""
    if record is None:
        return None
    columns = (record.outputs, record.programs, record.correct, record.exact_match, record.scores)
    names = ("output", "program", "correct", "exact_match", "score", "model_score")
    candidates = zip(*columns, record.model_scores, strict=True)
    return {
        "candidates": [dict(zip(names, each, strict=True)) for each in candidates],
        "usage": {name: value for name, value in record.usage.as_dict().items() if value or value is None},
        "seconds": record.seconds,
        "prompt_seconds": record.prompt_seconds,
        "examples_dropped": record.examples_dropped,
        "failure": record.failure,
        "trace": None if record.trace is None else store_trace(record.trace),
    }


def hashes(results: Results) -> list[tuple[str, str, str]]:
    """Return the hashes of examples, files and grammars: of what, which file, SHA-256."""
    found: dict[tuple[str, str, str], None] = {}
    for cell in results.cell_results:
        settings = cell.settings
        if "examples_sha256" in settings:
            found[cell.domain, "training examples as used", settings["examples_sha256"]] = None
        for name, sha256 in settings.get("files", {}).items():
            found[cell.domain, name, sha256] = None
        for name, sha256 in settings.get("grammar", {}).items():
            found[f"grammar of {cell.label}", name, sha256] = None
    return list(found)
