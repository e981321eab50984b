"""Shared by all commands: consoles, errors and warnings, lines of standard input, opening models."""

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from fewparse.domains.domain import Domain
from fewparse.errors import FewparseError, UsageError, listed
from fewparse.example import Target
from fewparse.grammar.rules import undefined
from fewparse.lm.load import open_model
from fewparse.lm.model import LanguageModel
from fewparse.lm.weights import Progress as Report

if TYPE_CHECKING:
    from fewparse.lm.http.load import RemoteSettings

FAILED, MISUSED, INTERRUPTED = 1, 2, 130

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def show_error(error: FewparseError, where: str = "") -> int:
    """Print an error with its hint; return the exit code."""
    err.print(f"error: {where}", style="bold red", end="")
    err.print(error.message, markup=False)
    if error.hint:
        err.print(f"  {error.hint}", style="dim", markup=False)
    return MISUSED if isinstance(error, UsageError) else FAILED


def input_lines() -> Iterator[tuple[int, str | UsageError]]:
    """Yield the numbered lines of standard input; a line that is not UTF-8 is yielded as an error."""
    for number, raw in enumerate(sys.stdin.buffer, 1):
        try:
            yield number, raw.rstrip(b"\r\n").decode("utf-8")
        except UnicodeDecodeError as error:
            yield number, UsageError(f"not UTF-8 text (byte {error.start + 1} of the line)")


@contextmanager
def opened_model(name: str, remote: "RemoteSettings | None" = None) -> Iterator[LanguageModel]:
    """Open a model, with a progress bar if it is downloaded, and close it at the end."""
    with download_progress() as progress:
        model = open_model(name, progress, remote)
    with closing(model):
        yield model


@contextmanager
def download_progress(what: str = "the model") -> Iterator[Report]:
    """Show a progress bar on standard error once a download starts."""
    labels = {"download": f"Downloading {what}", "unpack": f"Unpacking {what}"}
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    progress = Progress(*columns, console=err, transient=True, disable=not err.is_terminal)
    tasks: dict[str, TaskID] = {}

    def report(stage: str, done: int, total: int) -> None:
        progress.start()
        if stage not in tasks:
            tasks[stage] = progress.add_task(labels[stage], total=total)
        progress.update(tasks[stage], completed=min(done, total))

    try:
        yield report
    finally:
        if tasks:
            progress.stop()


def warn_of_gaps(domain: Domain, target: Target) -> None:
    """Warn of grammar names without productions, and of examples that the grammar does not derive."""
    if domain.language is not None and (names := sorted(undefined(domain.side(target)))):
        warn(f"the grammar uses names without productions: {listed(names)}")
    if domain.underivable:
        share = f"{domain.underivable} of {len(domain.examples) + domain.underivable} examples"
        warn(f"not used, because the grammar does not derive them: {share}")


def warn(message: str) -> None:
    """Print a warning on standard error."""
    err.print("warning: ", style="yellow", end="")
    err.print(message, markup=False)
