"""Print a table of the paper with our figures and those of the paper: plain text, Markdown and JSON."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePath
from typing import Any

from fewparse.experiment.paper_figures import Dataset
from fewparse.experiment.paper_tables import Part, Row
from fewparse.experiment.reproduction import PARTIAL, TIMED_ITEMS, Figure, Reproduction
from fewparse.experiment.results import CellResult, Results

UNFINISHED = "-"
GAP = "  "


@dataclass(frozen=True)
class Line:
    """A row of figures of one model; `paper` if the paper reports them."""

    model: str
    paper: bool
    row: Row
    figures: tuple[Figure | None, ...]

    @property
    def label(self) -> str:
        """The model in the table."""
        return f"{self.model} (paper)" if self.paper else self.model


@dataclass(frozen=True)
class Report:
    """A table with its figures: the lines of each part, and notes on how ours were obtained."""

    reproduction: Reproduction
    parts: tuple[tuple[Part, tuple[Line, ...]], ...]
    notes: tuple[str, ...]


def make_report(reproduction: Reproduction, results: Mapping[Dataset, Results], date: str) -> Report:
    """Return the report of a table from the results of each dataset, finished or not."""
    parts = tuple((part, tuple(lines(reproduction, results, part))) for part in reproduction.parts)
    figures = [figure for _, part_lines in parts for line in part_lines for figure in line.figures]
    remarks = list(notes(reproduction, results))
    if any(figure and figure.text.endswith(PARTIAL) for figure in figures):
        remarks.append(f"{PARTIAL} on parts of the evaluation sets")
    if None in figures:
        remarks.append(f"{UNFINISHED} not finished")
    versions = sorted({f"fewparse {result.manifest.version}" for result in results.values()})
    return Report(reproduction, parts, (*remarks, ", ".join([*versions, date])))


def lines(reproduction: Reproduction, results: Mapping[Dataset, Results], part: Part) -> Iterator[Line]:
    """Yield the lines of a part: those of the paper first, then ours, for all settings or for each."""
    table, labels = reproduction.table, model_labels(reproduction.models)

    def line(model: str, paper: bool, row: Row) -> Line:
        if paper:
            figures = [reproduction.paper_figure(model, row, column) for column in part.columns]
        else:
            figures = [reproduction.figure(results, model, row, column) for column in part.columns]
        return Line(model if paper else labels[model], paper, row, tuple(figures))

    models = [*((name, True) for name in table.paper_models), *((name, False) for name in reproduction.models)]
    if table.by_model:
        yield from (line(*model, row) for model in models for row in table.rows)
    else:
        yield from (line(*model, row) for row in table.rows for model in models)


def model_labels(models: Sequence[str]) -> dict[str, str]:
    """Return short names of models: without the folders of files, if the names are then still different."""
    short = {name: PurePath(name).name for name in models}
    return short if len(set(short.values())) == len(short) else {name: name for name in models}


def notes(reproduction: Reproduction, results: Mapping[Dataset, Results]) -> Iterator[str]:
    """Yield how our figures were obtained: items, training examples, settings, remarks on the data, failures."""
    table = reproduction.table
    cells = used_cells(reproduction, results)
    yield f"Items: {by_domain(cells, lambda cell: len(cell.records))}"
    if reproduction.limit is not None:
        yield f"Only the first {reproduction.limit} items of each domain are used (--limit)"
    if reproduction.items != table.items:
        yield f"The paper used the {'entire' if table.items == 'full' else 'smaller'} evaluation sets"
    if any(column.measure == "items_per_second" for part in reproduction.parts for column in part.columns):
        yield f"Items/second: on the first {TIMED_ITEMS} items, with the time for their prompts"
        if any(record and record.usage.cached_requests for cell in cells for record in cell.records):
            yield "Some responses came from the cache (--no-cache): items/second are too high"
    yield f"Training examples: {by_domain(cells, lambda cell: cell.entry.pool)}"
    mode = "those of the paper" if reproduction.paper else "those of the domains, without adapters"
    retrievers = dict.fromkeys(str(cell.settings["options"]["retriever"]) for cell in cells)
    model = reproduction.retriever_model
    retrieval = f"; examples retrieved by {' or '.join(retrievers)}" if retrievers else ""
    yield f"Settings: {mode}{retrieval}{f' with {PurePath(model).name}' if model else ''}"
    used = {cell.domain for cell in cells}
    for result in results.values():
        for domain, remarks in result.manifest.notes.items():
            yield from (f"{domain}: {remark}" for remark in remarks if domain in used)
    records = [record for cell in cells for record in cell.records if record is not None]
    if failed := sum(record.failure is not None for record in records):
        yield f"Failed, and counted as wrong: {failed} of {len(records)} results"


def used_cells(reproduction: Reproduction, results: Mapping[Dataset, Results]) -> list[CellResult]:
    """Return the cells of the table, with the records of its items only; a folder may have more of both."""
    found = []
    for dataset, experiment in reproduction.experiments().items():
        ids = {cell.id for cell in experiment.cells()}
        of_dataset = results[dataset].cell_results if dataset in results else ()
        found += [cell.first(experiment.limit) for cell in of_dataset if cell.id in ids]
    return found


def by_domain(cells: Sequence[CellResult], number: Callable[[CellResult], int]) -> str:
    """Return a number of each domain in words; several if its cells differ."""
    numbers: dict[str, dict[str, None]] = {}
    for cell in cells:
        numbers.setdefault(cell.domain, {})[str(number(cell))] = None
    return ", ".join(f"{domain} {' or '.join(values)}" for domain, values in numbers.items()) or "none"


def headings(report: Report) -> list[str]:
    """Return the headings of the labels of lines."""
    table = report.reproduction.table
    return ["Model", *table.keys] if table.by_model else [*table.keys, "Model"]


def labels(report: Report, line: Line) -> list[str]:
    """Return the labels of a line."""
    return [line.label, *line.row.labels] if report.reproduction.table.by_model else [*line.row.labels, line.label]


def plain(report: Report) -> str:
    """Return the table as aligned plain text, with the notes below."""
    table = report.reproduction.table
    texts = [f"{table.title}: {table.caption}"]
    for part, part_lines in report.parts:
        rows = [headings(report) + [column.headings[1] for column in part.columns]]
        for line in part_lines:
            rows.append(labels(report, line) + [figure.text if figure else UNFINISHED for figure in line.figures])
        body = aligned(rows, part, len(headings(report)))
        texts.append("\n".join([part.title, *body] if part.title else body))
    texts.append("\n".join(report.notes))
    return "\n\n".join(texts)


def aligned(rows: Sequence[Sequence[str]], part: Part, left: int) -> list[str]:
    """Return rows as lines, the first `left` columns aligned to the left, below the headings of groups."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    group_line = " " * len(GAP.join(" " * width for width in widths[:left]))
    position = left
    for group, columns in groupby(column.headings[0] for column in part.columns):
        end = position + len(list(columns))
        group_line += GAP + group.center(len(GAP.join(" " * width for width in widths[position:end])))
        position = end
    lines = [group_line]
    for row in rows:
        cells = [
            cell.ljust(width) if number < left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(GAP.join(cells))
    return [line.rstrip() for line in lines]


def markdown(report: Report) -> str:
    """Return the table as Markdown, with 95% intervals and the notes below."""
    table = report.reproduction.table
    texts = [f"**{table.title}.** {table.caption}."]
    for part, part_lines in report.parts:
        heads = headings(report) + [": ".join(column.headings) for column in part.columns]
        rows = [heads, ["---"] * len(headings(report)) + ["--:"] * len(part.columns)]
        rows += [labels(report, line) + list(map(with_interval, line.figures)) for line in part_lines]
        body = ["| " + " | ".join(map(escaped, row)) + " |" for row in rows]
        texts.append("\n".join([part.title, "", *body] if part.title else body))
    texts.append("\n".join(f"- {escaped(note)}" for note in report.notes))
    return "\n\n".join(texts) + "\n"


def escaped(text: str) -> str:
    """Return a text for Markdown, with the characters escaped that could be taken for its notation."""
    return re.sub(r"([*_|<`\\]|^-$|^-(?= ))", r"\\\1", text)


def with_interval(figure: Figure | None) -> str:
    """Return a figure with its interval, if it has one."""
    if figure is None or figure.interval is None:
        return figure.text if figure else UNFINISHED
    low, high = figure.interval
    return f"{figure.text} ({low:z.2f} to {high:z.2f})"


def as_json(report: Report) -> dict[str, Any]:
    """Return the table as a JSON object; a figure that is not finished is null."""
    table = report.reproduction.table
    rows = [
        {
            "model": line.model,
            "paper": line.paper,
            "figures": [
                {
                    "dataset": column.dataset,
                    "measure": column.measure,
                    "options": {**line.row.options, **column.options},
                    **figure_fields(figure),
                }
                for column, figure in zip(part.columns, line.figures, strict=True)
            ],
        }
        for part, part_lines in report.parts
        for line in part_lines
    ]
    return {"table": table.name, "caption": table.caption, "rows": rows, "notes": list(report.notes)}


def figure_fields(figure: Figure | None) -> dict[str, Any]:
    """Return the fields of a figure in JSON."""
    if figure is None:
        return {"value": None}
    fields: dict[str, Any] = {"value": round(figure.value, 4)}
    if figure.items is not None:
        fields |= {"items": figure.items, "failed": figure.failed}
    if figure.interval is not None:
        fields |= {"low": round(figure.interval[0], 4), "high": round(figure.interval[1], 4)}
    return fields
