"""The tables of a report on an experiment: their columns, and the text of every cell."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fewparse.evaluate.metrics import Proportion
from fewparse.evaluate.report import dollars
from fewparse.evaluate.summary import Summary
from fewparse.experiment.results import CellResult, Results
from fewparse.experiment.search_errors import TOLERANCE, SearchErrors
from fewparse.experiment.statistics import (
    Comparison,
    Interval,
    LengthBin,
    averages,
    by_gold_seen,
    by_length,
    canonical_minus_program,
    comparisons_with_best,
    holm,
    summary,
)

NO_FIGURE = ""


@dataclass(frozen=True)
class Table:
    """A table: its title, heads and rows. The first `names` columns are names, the others figures."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: int = 1
    note: str = ""

    def without_empty_columns(self) -> "Table":
        """Return the table without the columns of figures that are empty in all rows."""
        kept = [i for i, _ in enumerate(self.heads) if i < self.names or any(row[i] for row in self.rows)]
        rows = tuple(tuple(row[i] for i in kept) for row in self.rows)
        return Table(self.title, tuple(self.heads[i] for i in kept), rows, self.names, self.note)


FIGURES: dict[str, Callable[[Summary], str]] = {
    "accuracy (95% CI)": lambda s: with_interval(s.accuracy),
    "exact match": lambda s: share(s.exact_match),
    "before reranking": lambda s: share(s.before_reranking),
    "by vote": lambda s: share(s.by_vote),
    "top 5": lambda s: share(s.top_k[5]),
    "top 10": lambda s: share(s.top_k[10]),
    "oracle": lambda s: share(s.oracle),
    "items": lambda s: str(s.finished),
    "unfinished": lambda s: str(s.items - s.finished or NO_FIGURE),
    "failed": lambda s: str(s.failed or NO_FIGURE),
    "requests": lambda s: f"{s.requests:.1f}",
    "forward tokens": lambda s: f"{s.forward_tokens:.1f}",
    "prefill s": lambda s: f"{s.prompt_seconds:.2f}",
    "decoding s": lambda s: f"{s.decoding_seconds:.2f}",
    "cost": lambda s: dollars(s.cost),
}
BRIEF = (
    "accuracy (95% CI)",
    "exact match",
    "top 10",
    "unfinished",
    "failed",
    "requests",
    "decoding s",
    "cost",
)


def cells_table(results: Results) -> Table:
    """Return all figures of every cell, with a column for each option in which they differ."""
    names = results.varying or ("domain", "model")
    rows = []
    for cell in results.cell_results:
        figures = summary(cell)
        options = (option_text(cell.options.get(name)) for name in names)
        rows.append((*options, *(figure(figures) for figure in FIGURES.values())))
    heads = (*(name.replace("_", " ") for name in names), *FIGURES)
    return Table("Cells", heads, tuple(rows), len(names)).without_empty_columns()


def brief_cells_table(results: Results) -> Table:
    """Return the main figures of every cell by its label, for a terminal."""
    rows = []
    for cell in results.cell_results:
        figures = summary(cell)
        rows.append((cell.label, *(FIGURES[head](figures) for head in BRIEF)))
    return Table("Cells", ("cell", *BRIEF), tuple(rows)).without_empty_columns()


def averages_table(results: Results) -> Table | None:
    """Return the averages over domains; None if there is one domain."""
    found = averages(results)
    if not found:
        return None
    rows = tuple(
        (
            each.label,
            str(len(each.cells)),
            f"{each.macro:.2f} {interval_text(each.interval)}",
            with_interval(each.micro),
        )
        for each in found
    )
    heads = ("cells", "domains", "simple average (95% CI)", "average over items (95% CI)")
    note = (
        "The simple average is the mean of the accuracies of the domains. Its interval combines Wilson's limits "
        "of the domains (Zou and Donner, 2008); the domains are taken as fixed."
    )
    return Table("Averages over domains", heads, rows, note=note)


def comparison_tables(results: Results) -> list[Table]:
    """Return a table for each domain of several cells: the most accurate cell compared with the others."""
    tables = []
    for domain, found in comparisons_with_best(results).items():
        adjusted = holm([each.p_value for each in found])
        rows = tuple(
            (each.second.label, *comparison_columns(each), f"{p:.3f}")
            for each, p in zip(found, adjusted, strict=True)
        )
        of_domain = f", {domain}" if len(results.domains) > 1 else ""
        tables.append(
            Table(
                f"The most accurate cell compared with the others{of_domain}",
                ("compared with", *COMPARISON_HEADS, "p (Holm)"),
                rows,
                note=f"Most accurate: {found[0].first.label}. {COMPARISON_NOTE}",
            )
        )
    return tables


def target_table(results: Results) -> Table | None:
    """Return the differences between the targets; None if no cells differ only in the target."""
    found = canonical_minus_program(results)
    if not found:
        return None
    rows = tuple((results.label(each.first, without="target"), *comparison_columns(each)) for each in found)
    note = (
        "The accuracy with the target `canonical` minus that with `program`, for cells that are equal otherwise."
    )
    return Table("Canonical minus program (C - M)", ("cells", *COMPARISON_HEADS), rows, note=note)


COMPARISON_NOTE = (
    "It was selected on the same items, which favours it. Differences have Tango's 95% score interval for paired "
    "proportions; p is of McNemar's exact test, also adjusted for the number of comparisons by Holm's method."
)
COMPARISON_HEADS = ("items", "difference (95% CI)", "only this", "only other", "p")


def comparison_columns(comparison: Comparison) -> tuple[str, ...]:
    """Return the columns of a comparison of a cell with another."""
    low, high = comparison.interval
    return (
        str(comparison.items),
        f"{comparison.difference:+.2f} ({low:+.2f} to {high:+.2f})",
        str(len(comparison.only_first)),
        str(len(comparison.only_second)),
        f"{comparison.p_value:.3f}",
    )


def breakdown_tables(results: Results) -> list[Table]:
    """Return the accuracy by lengths and by whether the gold program is in the pool, for each domain."""
    tables = []
    for domain in results.domains:
        cells = [cell for cell in results.cell_results if cell.domain == domain]
        of_domain = f", {domain}" if len(results.domains) > 1 else ""
        lengths = [by_length(cell) for cell in cells]
        tables += [
            length_table(
                f"Accuracy by words of the utterance{of_domain}", cells, [b.utterance_words for b in lengths]
            ),
            length_table(
                f"Accuracy by characters of the program{of_domain}", cells, [b.gold_characters for b in lengths]
            ),
        ]
        seen = [(cell, by_gold_seen(cell)) for cell in cells]
        if any(each.seen.items for _, each in seen) and any(each.unseen.items for _, each in seen):
            rows = tuple((cell.label, share_of(each.seen), share_of(each.unseen)) for cell, each in seen)
            heads = ("cell", "in the pool", "not in the pool")
            tables.append(Table(f"Accuracy by whether the gold program is in the pool{of_domain}", heads, rows))
    return [table for table in tables if len(table.heads) > 2]


def length_table(title: str, cells: Sequence[CellResult], bins: Sequence[Sequence[LengthBin]]) -> Table:
    """Return the accuracy of cells of one domain in bins of a length."""
    heads = (f"{each.low}-{each.high}" if each.low < each.high else str(each.low) for each in bins[0])
    rows = (
        (cell.label, *(share_of(each.accuracy) for each in found)) for cell, found in zip(cells, bins, strict=True)
    )
    return Table(title, ("cell", *heads), tuple(rows))


def search_errors_table(found: Sequence[tuple[CellResult, SearchErrors]]) -> Table:
    """Return the search errors of cells with a finite set of outputs."""
    rows = tuple(
        (
            cell.label,
            str(errors.outputs),
            str(errors.rate.items),
            with_interval(errors.rate),
            with_interval(errors.rate_beyond_tolerance),
        )
        for cell, errors in found
    )
    heads = ("cell", "outputs", "items", "search errors (95% CI)", "beyond the tolerance (95% CI)")
    return Table("Search errors", heads, rows, note=SEARCH_ERROR_NOTE)


SEARCH_ERROR_NOTE = (
    "A search error is an item for which the model gives another output of the set a higher score (normalised for "
    "length, before reranking) than the best that the search returned. Numerical differences of the model may be "
    f"up to {TOLERANCE:g} nats per output; errors beyond this tolerance are counted separately."
)


def models_table(results: Results) -> Table:
    """Return the models and adapters, with the hashes of their files or the addresses of their servers."""
    rows: dict[tuple[str, ...], None] = {}
    for cell in results.cell_results:
        for key in ("model", "retriever_model"):
            if key in cell.settings:
                model = cell.settings[key]
                rows[(model["name"], model["identity"] or "unknown")] = None
        if "adapter" in cell.settings:
            rows[(f"adapter of {cell.domain}", cell.settings["adapter"])] = None
    return Table("Models", ("model", "SHA-256 of the file, or name and server"), tuple(rows), names=2)


def option_text(value: Any) -> str:
    """Return the value of an option; empty if the cell does not set it."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:g}"
    return str(value)


def share(proportion: Proportion) -> str:
    """Return a share; empty without items."""
    return f"{proportion.value:.2f}" if proportion.items else NO_FIGURE


def share_of(proportion: Proportion) -> str:
    """Return a share with its number of items; empty without items."""
    return f"{proportion.value:.2f} of {proportion.items}" if proportion.items else NO_FIGURE


def with_interval(proportion: Proportion) -> str:
    """Return a share with its interval; empty without items."""
    return f"{proportion.value:.2f} {interval_text(proportion.interval())}" if proportion.items else NO_FIGURE


def interval_text(interval: Interval) -> str:
    """Return an interval in brackets."""
    return f"({interval[0]:.2f}-{interval[1]:.2f})"
