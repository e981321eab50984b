"""The report of an experiment as a page for the browser: a folder that opens without a server or a network.

index.html, *.css, *.js     the page: the files of `static/`
data/overview.js            the figures, and all items with the mark of every cell
data/items-N.js             the candidates of all cells for some items, loaded when one of them is opened
data/traces-N.js            the traces of some searches, loaded when one of them is opened
plots/*.svg                 the plots, if matplotlib is installed
report-files.json           marks the folder as a report and lists its files
"""

import json
import os
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from fewparse.errors import ResultsError
from fewparse.experiment.page_data import items_by_domain, overview_data, record_data
from fewparse.experiment.plots import Plot
from fewparse.experiment.results import Results
from fewparse.experiment.tables import Table
from fewparse.files import exists, os_reason, read_bytes
from fewparse.locks import Locked, file_lock
from fewparse.replacement import files_below, new_content, sibling, write_synced
from fewparse.text import to_json

MARKER = "report-files.json"
STATIC = files("fewparse.experiment") / "static"
CHUNK_CHARACTERS = 500_000
ELSEWHERE = "Write the report to another folder: --html DIR"


class Chunks:
    """Writes values to numbered files of about the same size, each of which adds a list to the page's data."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self._number = self._characters = 0
        self._texts: list[str] = []

    def add(self, value: Any) -> tuple[int, int]:
        """Add a value; return the number of its file and its position in it."""
        if self._characters > CHUNK_CHARACTERS:
            self.flush()
        text = to_json(value)
        self._texts.append(text)
        self._characters += len(text)
        return self._number, len(self._texts) - 1

    def flush(self) -> None:
        """Write the last values."""
        if self._texts:
            write_data(self._folder, f"{self._name}-{self._number}", "[\n" + ",\n".join(self._texts) + "\n]")
            self._number, self._characters, self._texts = self._number + 1, 0, []


def write_data(folder: Path, name: str, text: str) -> None:
    """Write a file of data: a script that adds a value, given as JSON, to the page's data."""
    write_synced(folder / "data" / f"{name}.js", f'fewparseData["{name}"] = {text};\n'.encode())


def write_html(results: Results, folder: Path, plots: Sequence[Plot] = (), extra: Sequence[Table] = ()) -> Path:
    """Write the page of a report, with plots and further tables, and return its path.

    A report that is in the folder already is replaced as a whole: a process that is killed leaves the old one or
    the new one. Raises `ResultsError` if the folder has other content, is in use or cannot be written.
    """
    try:
        outdated = report_files(folder)
        Path(os.path.realpath(folder)).parent.mkdir(parents=True, exist_ok=True)
        with file_lock(sibling(folder, "lock")), new_content(folder, outdated) as new:
            write_files(results, new, plots, extra)
            names = sorted(path.relative_to(new).as_posix() for path in files_below(new))
            write_synced(new / MARKER, (to_json([*names, MARKER], indent=1) + "\n").encode())
    except Locked as error:
        message = f"another process writes this report: {error.message}"
        raise ResultsError(message, folder, hint="Wait for its end.") from None
    except OSError as error:
        message = f"the report cannot be written: {os_reason(error)}"
        raise ResultsError(message, folder, hint=f"Free some disk space, or: {ELSEWHERE}") from None
    return folder / "index.html"


def report_files(folder: Path) -> list[str]:
    """Return the files of the report in a folder; raise `ResultsError` if it has other content but no report."""
    if not exists(folder) or (os.path.isdir(folder) and not os.listdir(folder)):
        return []
    if not os.path.isdir(folder) or not exists(folder / MARKER):
        raise ResultsError("exists and is not the folder of a report", folder, hint=ELSEWHERE)
    try:
        names = json.loads(read_bytes(folder / MARKER, ResultsError))
    except (ValueError, RecursionError):
        names = None
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise ResultsError("does not list the files of a report", folder / MARKER, hint=ELSEWHERE)
    return names


def write_files(results: Results, new: Path, plots: Sequence[Plot], extra: Sequence[Table]) -> None:
    """Write the files of a report to a new folder."""
    for file in STATIC.iterdir():
        write_synced(new / file.name, file.read_bytes())
    for plot in plots:
        write_synced(new / "plots" / f"{plot.name}.svg", plot.svg)
    items, traces = Chunks(new, "items"), Chunks(new, "traces")
    places = {}
    for domain, group in items_by_domain(results).items():
        cells = [cell for cell in results.cell_results if cell.domain == domain]
        for at, item in enumerate(group):
            places[domain, item.index] = items.add([record_data(cell.records[at], traces.add) for cell in cells])
    items.flush()
    traces.flush()
    write_data(new, "overview", to_json(overview_data(results, plots, extra, places)))
