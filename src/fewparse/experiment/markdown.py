"""The report of an experiment as Markdown: its data and models, all tables, and references to the plots."""

from collections import Counter
from collections.abc import Sequence

from fewparse.evaluate.report import markdown_table
from fewparse.experiment.results import Results
from fewparse.experiment.tables import (
    Table,
    averages_table,
    breakdown_tables,
    cells_table,
    comparison_tables,
    models_table,
    target_table,
)

NOTE = (
    "An item is correct if its program has the same answer as the gold program (in a domain without an executor, "
    "the same normal form or text). Intervals of shares are Wilson's. Requests, tokens, seconds and cost are "
    "means per item; the prefill of a prompt that several cells share is measured once and reported for each. An "
    "empty option has the setting of the domain, or no effect."
)


def report_markdown(results: Results, plots: Sequence[tuple[str, str]] = (), extra: Sequence[Table] = ()) -> str:
    """Return the report; `plots` are titles and relative paths of pictures, `extra` further tables."""
    manifest = results.manifest
    parts = [f"# {manifest.name or 'Experiment'}", overview(results), *state(results)]
    for domain, notes in manifest.notes.items():
        parts += [f"{domain}: {note}" for note in notes]
    parts += [section(cells_table(results)), NOTE]
    further = (averages_table(results), *comparison_tables(results), target_table(results), *extra)
    parts += [section(table) for table in further if table is not None]
    if plots:
        parts += ["## Plots", *(f"![{title}]({path})" for title, path in plots)]
    parts += [section(table) for table in breakdown_tables(results)]
    parts.append(section(models_table(results)))
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def section(table: Table) -> str:
    """Return a table below its title, followed by its note."""
    text = markdown_table([table.heads, *table.rows], table.names)
    return f"## {table.title}\n\n{text}" + (f"\n{table.note}\n" if table.note else "")


def overview(results: Results) -> str:
    """Return what was run, in one sentence."""
    manifest = results.manifest
    items = {cell.domain: len(cell.items) for cell in results.cell_results}
    domains = ", ".join(f"{domain} ({count} items)" for domain, count in items.items())
    cells = f"{len(results.cell_results)} cells"
    return f"{cells} on the split `{manifest.split}` of {domains}; fewparse {manifest.version}."


def state(results: Results) -> list[str]:
    """Return how many items are not finished or failed, with the reasons; empty if all is well."""
    unfinished = sum(record is None for cell in results.cell_results for record in cell.records)
    total = sum(len(cell.records) for cell in results.cell_results)
    lines = []
    if unfinished:
        lines.append(
            f"**Not finished:** {unfinished} of {total} results are missing; figures are of the finished items."
        )
    if reasons := failures(results):
        lines.append(f"**Failed:** {reasons.total()} of {total} results; they count as wrong.")
        lines.append("\n".join(f"- {times} times: {reason}" for reason, times in reasons.most_common()))
    return lines


def failures(results: Results) -> Counter[str]:
    """Count the error messages of failed items over all cells."""
    records = (record for cell in results.cell_results for _, record in cell.finished())
    return Counter(" ".join(record.failure.split()) for record in records if record.failure is not None)
