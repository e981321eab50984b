"""`fewparse report`: tables, plots and comparisons of the results of an experiment."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table as ScreenTable
from rich.text import Text

from fewparse.cli import options
from fewparse.cli.console import echo, opened_model, out, warn
from fewparse.cli.progress import counted
from fewparse.cli.trust import code_allowed
from fewparse.errors import UsageError
from fewparse.experiment.folder import Item
from fewparse.experiment.frames import export as write_frame
from fewparse.experiment.html import write_html
from fewparse.experiment.markdown import overview, state
from fewparse.experiment.plots import Plot, make_plots
from fewparse.experiment.report_files import write_report
from fewparse.experiment.results import CellResult, Results, read_results
from fewparse.experiment.search_errors import cell_parser, finite_cells, search_errors
from fewparse.experiment.statistics import compare
from fewparse.experiment.tables import (
    Table,
    averages_table,
    brief_cells_table,
    comparison_columns,
    comparison_tables,
    search_errors_table,
    target_table,
)
from fewparse.files import user_path
from fewparse.text import printable

SCREEN_COLUMNS = 100
PAGE = "report"


def report(
    folder: Annotated[Path, typer.Argument(help="Folder with the results of an experiment.")],
    compare: Annotated[
        tuple[str, str] | None,
        options.option(
            options.OUTPUT,
            "Only compare two cells of one domain, by label or id, and list the items that differ.",
            metavar="CELL CELL",
        ),
    ] = None,
    export: Annotated[
        list[Path] | None,
        options.option(
            options.OUTPUT, "Also write items.csv, items.parquet, cells.csv or cells.parquet; may be repeated."
        ),
    ] = None,
    search_errors: Annotated[
        bool,
        options.option(
            options.OUTPUT,
            "Also count search errors by an exact search; opens the model. For constraints with a finite set "
            "of outputs.",
            "--search-errors",
        ),
    ] = False,
    data: options.Data = None,
    allow_code: options.AllowCode = False,
    out: Annotated[
        Path | None, options.option(options.OUTPUT, "Folder for report.md and plots (default: FOLDER).")
    ] = None,
    html: Annotated[
        Path | None,
        options.option(options.OUTPUT, "Folder for the page for the browser (default: `report` in OUT)."),
    ] = None,
    no_html: Annotated[
        bool, options.option(options.OUTPUT, "Do not write the page for the browser.", "--no-html")
    ] = False,
) -> None:
    """Show the results of an experiment, finished or not, and write report.md, plots and a page for the browser.

    Tables: accuracy and cost of every cell, averages over domains, paired
    comparisons. The page also has all items with their candidates and search
    traces. Plots need matplotlib, exported files pandas or polars.
    """
    results = read_results(user_path(folder))
    if compare is not None:
        show_comparison(results, *compare)
        return
    extra = [searched(results, data, allow_code)] if search_errors else []
    target = user_path(out or folder)
    make_report(results, target, None if no_html else user_path(html or target / PAGE), extra)
    for path in export or ():
        write_frame(results, user_path(path))
        echo(f"written: {path}")


def make_report(results: Results, folder: Path, page: Path | None, extra: Sequence[Table] = ()) -> None:
    """Print the main tables; write report.md, the plots and, to the folder `page`, the page for the browser."""
    show_tables(results, extra)
    plots = available_plots(results)
    echo(f"\nwritten: {write_report(results, folder, plots, extra)}")
    if page is not None:
        echo(f"written: {write_html(results, page, plots, extra)}")


def show_tables(results: Results, extra: Sequence[Table]) -> None:
    """Print the main tables."""
    echo(f"{results.manifest.name or 'Experiment'}: {overview(results)}")
    for line in state(results):
        echo(line.replace("**", ""))
    tables = [
        brief_cells_table(results),
        averages_table(results),
        *comparison_tables(results),
        target_table(results),
    ]
    for table in (*tables, *extra):
        if table is not None:
            show_table(table)


def show_table(table: Table) -> None:
    """Print a table within the width of the screen; long names are broken."""
    shown = ScreenTable(box=None, pad_edge=False, title=Text(table.title), title_justify="left", show_edge=False)
    for i, head in enumerate(table.heads):
        shown.add_column(head, justify="left" if i < table.names else "right", overflow="fold")
    for row in table.rows:
        shown.add_row(*(Text(printable(cell)) for cell in row))
    echo("")
    out.print(shown, width=SCREEN_COLUMNS)


def show_comparison(results: Results, first: str, second: str) -> None:
    """Print the paired comparison of two cells and the items that differ."""
    found = compare(results.cell(first), results.cell(second))
    items, difference, only_first, only_second, p = comparison_columns(found)
    echo(f"first:  {found.first.label}\nsecond: {found.second.label}")
    echo(f"{items} items: difference {difference}, McNemar's exact test p = {p}")
    echo(f"both correct: {found.both}, neither: {found.neither}")
    for which, number, differing in (
        ("first", only_first, found.only_first),
        ("second", only_second, found.only_second),
    ):
        echo(f"\nonly the {which} is correct: {number}")
        for item in differing:
            echo(f"  {item.index:>4}  {item.utterance}")
            for cell in (found.first, found.second):
                echo(f"        {cell.label}: {answer(cell, item)}")


def answer(cell: CellResult, item: Item) -> str:
    """Return the program of a cell for an item, or why there is none."""
    record = cell.records[item.index]
    if record is None or record.failure is not None or not record.programs:
        return (record and record.failure) or "no program"
    return record.programs[0] or "no program"


def available_plots(results: Results) -> list[Plot]:
    """Return the plots; without matplotlib, warn and return none."""
    try:
        return make_plots(results)
    except UsageError as error:
        warn(f"{error.message}. {error.hint}")
        return []


def searched(results: Results, data: Path | None, allow_code: bool) -> Table:
    """Open each model, and return the search errors of the cells with a finite set of outputs."""
    found = []
    by_model = finite_cells(results)
    total = sum(len(list(cell.finished())) for cells in by_model.values() for cell in cells)
    done = 0
    with counted(total, "items by exact search") as report:

        def after() -> None:
            nonlocal done
            done += 1
            report(done, "")

        for name, cells in by_model.items():
            with opened_model(name) as model:
                for cell in cells:
                    parser = cell_parser(results, cell, model, data, code_allowed(cell.domain, allow_code))
                    split = results.manifest.split
                    found.append((cell, search_errors(parser, cell, split, progress=after)))
    return search_errors_table(found)
