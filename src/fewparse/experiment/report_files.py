"""Write the report of an experiment: report.md, and the plots as SVG and PNG in the folder `plots`."""

from collections.abc import Sequence
from pathlib import Path

from fewparse.evaluate.report import SUMMARY, not_written
from fewparse.experiment.markdown import report_markdown
from fewparse.experiment.plots import Plot
from fewparse.experiment.results import Results
from fewparse.experiment.tables import Table
from fewparse.files import write_atomically
from fewparse.text import without_surrogates

PLOTS = "plots"


def write_report(results: Results, folder: Path, plots: Sequence[Plot] = (), extra: Sequence[Table] = ()) -> Path:
    """Write the report with plots and further tables to a folder; return the path of report.md.

    Each file is replaced as a whole. Raises `ResultsError` if one cannot be written.
    """
    files = {
        f"{PLOTS}/{plot.name}.{kind}": picture
        for plot in plots
        for kind, picture in (("svg", plot.svg), ("png", plot.png))
    }
    shown = [(plot.title, f"{PLOTS}/{plot.name}.svg") for plot in plots]
    files[SUMMARY] = without_surrogates(report_markdown(results, shown, extra)).encode()
    for name, content in files.items():
        write_file(folder / name, content)
    return folder / SUMMARY


def write_file(path: Path, content: bytes) -> None:
    """Replace a file as a whole; raise `ResultsError` if that fails."""
    try:
        write_atomically(path, content)
    except OSError as error:
        raise not_written(path, error) from None
