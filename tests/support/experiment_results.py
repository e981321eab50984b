"""Results of experiments that were never run: cells with given records, for statistics on many items."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fewparse.evaluate.record_lines import Record
from fewparse.experiment.folder import CellEntry, Item, Manifest
from fewparse.experiment.grid import Cell, varying
from fewparse.experiment.results import CellResult, Results
from fewparse.lm.usage import Usage


def make_record(*correct: bool, requests: int = 4, seconds: float = 0.5, prompt_seconds: float = 1.5) -> Record:
    """Return the record of an item whose candidates are correct or not."""
    outputs = tuple(f"(p{i})" for i in range(len(correct)))
    scores = tuple(-float(i) for i in range(len(correct)))
    first = correct[:1] == (True,)
    usage = Usage(requests=requests, rounds=2, forward_tokens=7, prompt_tokens=100)
    return Record(
        outputs, outputs, correct, correct, scores, scores, first, any(correct), usage, seconds, prompt_seconds
    )


def make_cell(
    outcomes: Sequence[Record | bool | None],
    domain: str = "lamps",
    utterances: Sequence[str] = (),
    pool: int = 10,
    first_seen: Sequence[int | None] = (),
    **options: Any,
) -> CellResult:
    """Return a cell; True or False stands for an item with one candidate, None for an unfinished item."""
    cell = Cell({"domain": domain, "model": "embedded", **options})
    texts = utterances or [f"utterance {i}" for i in range(len(outcomes))]
    seen = first_seen or [None] * len(outcomes)
    items = tuple(
        Item(domain, i, f"{domain}-{i}", text, "", f"({text})", None, position)
        for i, (text, position) in enumerate(zip(texts, seen, strict=True))
    )
    settings = {"model": {"name": "embedded", "identity": "gguf:" + "ab" * 32}, "constraint": {}}
    entry = CellEntry(cell.id, cell.options, {**settings, "options": {"constrained": True}}, pool)
    records = tuple(make_record(each) if isinstance(each, bool) else each for each in outcomes)
    return CellResult(entry, cell.label(list(cell.options)), items, records)


def make_results(*cells: CellResult, notes: Mapping[str, Sequence[str]] | None = None) -> Results:
    """Return the results of cells, with their labels."""
    names = varying([Cell(cell.options) for cell in cells])
    labelled = tuple(
        CellResult(each.entry, Cell(each.options).label(names) or "embedded", each.items, each.records)
        for each in cells
    )
    entries = tuple(cell.entry for cell in cells)
    manifest = Manifest("made", "0.1.0", "test", None, False, entries, notes or {})
    return Results(Path("made"), manifest, labelled)
