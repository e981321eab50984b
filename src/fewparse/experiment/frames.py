"""Results of an experiment as data frames of pandas or polars, and as files that these write."""

import importlib
import os
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from fewparse.errors import UsageError
from fewparse.evaluate.record_lines import Record
from fewparse.evaluate.report import not_written
from fewparse.experiment.grid import AXES
from fewparse.experiment.results import CellResult, Results
from fewparse.experiment.statistics import summary
from fewparse.files import atomic_replacement

Library = Literal["pandas", "polars"]
Row = dict[str, Any]
LIBRARIES: tuple[Library, ...] = ("pandas", "polars")
PANDAS_TYPES = {bool: "boolean", int: "Int64", float: "Float64", str: "string"}
FILE_TYPES = (".csv", ".parquet")
INSTALL = "Install it: pip install {}"


def items_frame(results: Results, library: Library | None = None) -> Any:
    """Return a data frame with a row per cell and item; figures of items that are not finished are missing."""
    options = option_names(results)
    rows = [row for cell in results.cell_results for row in item_rows(cell, options)]
    return data_frame(rows, library)


def cells_frame(results: Results, library: Library | None = None) -> Any:
    """Return a data frame with a row per cell: its options, its figures and the limits of their intervals."""
    options = option_names(results)
    return data_frame([cell_row(cell, options) for cell in results.cell_results], library)


def option_names(results: Results) -> list[str]:
    """Return the options that a cell sets, in the order of the grid."""
    return [name for name in AXES if any(name in cell.options for cell in results.cell_results)]


def cell_columns(cell: CellResult, options: Sequence[str]) -> Row:
    """Return the columns that identify a cell; an option that it does not set is missing."""
    return {"cell": cell.id, "label": cell.label, **{name: cell.options.get(name) for name in options}}


def item_rows(cell: CellResult, options: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of the items of a cell."""
    for item, record in zip(cell.items, cell.records, strict=True):
        yield {
            **cell_columns(cell, options),
            "item": item.index,
            "item_id": item.id,
            "utterance": item.utterance,
            "context": item.context,
            "gold": item.gold,
            "gold_canonical": item.canonical,
            "gold_seen": cell.gold_seen(item),
            "finished": record is not None,
            **record_columns(record),
        }


def record_columns(record: Record | None) -> Row:
    """Return the figures of an item; all are missing if it has no record."""
    found = record or Record.failed("")
    ranks = [rank for rank, correct in enumerate(found.correct, 1) if correct]
    columns = {
        "failure": found.failure,
        "correct": found.correct_within(1),
        "exact_match": any(found.exact_match[:1]),
        "correct_before_reranking": found.correct_before_reranking,
        "correct_by_vote": found.correct_by_vote,
        "rank_of_correct": ranks[0] if ranks else None,
        "candidates": len(found.outputs),
        "output": found.outputs[0] if found.outputs else None,
        "program": found.programs[0] if found.programs else None,
        "score": found.scores[0] if found.scores else None,
        "model_score": found.model_scores[0] if found.model_scores else None,
        "decoding_seconds": found.seconds,
        "prompt_seconds": found.prompt_seconds,
        "examples_dropped": found.examples_dropped,
        **{f"usage_{name}": value for name, value in found.usage.as_dict().items()},
    }
    return columns if record is not None else dict.fromkeys(columns)


def cell_row(cell: CellResult, options: Sequence[str]) -> Row:
    """Return the row of a cell."""
    figures = summary(cell)
    shares = {
        "accuracy": figures.accuracy,
        "exact_match": figures.exact_match,
        "before_reranking": figures.before_reranking,
        "by_vote": figures.by_vote,
        **{f"top_{k}": proportion for k, proportion in figures.top_k.items()},
        "oracle": figures.oracle,
    }
    values: Row = {}
    for name, proportion in shares.items():
        known = proportion.items > 0
        low, high = proportion.interval()
        values |= {name: proportion.value if known else None, f"{name}_low": low, f"{name}_high": high}
    return {
        **cell_columns(cell, options),
        "items": figures.items,
        "finished": figures.finished,
        "failed": figures.failed,
        **values,
        "decoding_seconds": figures.decoding_seconds,
        "prompt_seconds": figures.prompt_seconds,
        "items_per_second": figures.items_per_second,
        "examples_dropped": figures.examples_dropped,
        **{f"usage_{name}": value for name, value in figures.usage.items()},
    }


def data_frame(rows: Sequence[Row], library: Library | None) -> Any:
    """Return rows as a data frame; raise `UsageError` if the library, or both without a choice, is missing."""
    module = importlib.import_module(installed_library(library))
    columns = {name: [row[name] for row in rows] for name in rows[0]} if rows else {}
    if module.__name__ == "pandas":
        return module.DataFrame(
            {name: module.Series(values, dtype=pandas_type(values)) for name, values in columns.items()}
        )
    return module.DataFrame(columns, strict=False, infer_schema_length=None)


def pandas_type(values: Sequence[Any]) -> str:
    """Return the type of a column that may have missing values."""
    types = {type(value) for value in values if value is not None}
    if types == {int, float}:
        return "Float64"
    return PANDAS_TYPES.get(types.pop(), "object") if len(types) == 1 else "object"


def installed_library(library: Library | None) -> Library:
    """Return the library, or the first that is installed; raise `UsageError` if there is none."""
    if library is not None and library not in LIBRARIES:
        raise UsageError(f"unknown library {library!r} of data frames", "Use pandas or polars.")
    for name in LIBRARIES if library is None else (library,):
        if find_spec(name) is not None:
            return name
    missing = "neither pandas nor polars is" if library is None else f"{library} is not"
    raise UsageError(f"{missing} installed, for data frames", INSTALL.format(library or LIBRARIES[0]))


FRAMES: dict[str, Callable[[Results, Library | None], Any]] = {"items": items_frame, "cells": cells_frame}


def export(results: Results, path: Path, library: Library | None = None) -> None:
    """Write a data frame to a file: `items` or `cells`, as its name says, in the format of its suffix.

    Raises `UsageError` for another name or suffix or a missing library, `ResultsError` if it cannot be written.
    """
    if path.stem not in FRAMES or path.suffix not in FILE_TYPES:
        names = ", ".join(f"{name}{suffix}" for name in FRAMES for suffix in FILE_TYPES)
        raise UsageError(f"cannot export to a file of the name {path.name!r}", f"Use one of {names}.")
    frame = FRAMES[path.stem](results, library)
    try:
        with atomic_replacement(path) as temporary:
            write_frame(frame, path.suffix, temporary)
    except ImportError:
        raise UsageError("pandas needs pyarrow for Parquet", INSTALL.format("pyarrow")) from None
    except OSError as error:
        raise not_written(path, error) from None


def write_frame(frame: Any, suffix: str, path: str | os.PathLike[str]) -> None:
    """Write a data frame by its own method."""
    if suffix == ".csv":
        frame.to_csv(path, index=False) if hasattr(frame, "to_csv") else frame.write_csv(path)
    elif hasattr(frame, "to_parquet"):
        frame.to_parquet(path, index=False)
    else:
        frame.write_parquet(path)
