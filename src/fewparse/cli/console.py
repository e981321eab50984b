"""Shared by all commands: consoles, errors and warnings, lines of standard input, opening models."""

import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from fewparse.errors import FewparseError, UsageError
from fewparse.text import printable

if TYPE_CHECKING:
    from fewparse.lm.http.load import RemoteSettings
    from fewparse.lm.load import NamedModel
    from fewparse.lm.model import LanguageModel

FAILED, MISUSED, DEFECT, INTERRUPTED = 1, 2, 70, 130

MAX_LINE_BYTES = 1_000_000


class CleanConsole(Console):
    """A console that shows control characters in strings as escapes, so that foreign text cannot act on it."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print like `rich`, with strings made printable."""
        super().print(*(printable(o) if isinstance(o, str) else o for o in objects), **options)


out = CleanConsole(highlight=False, soft_wrap=True, emoji=False)  # with emoji, line :100: of a file becomes one
err = CleanConsole(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def echo(text: object, nl: bool = True, err: bool = False) -> None:
    """Print a plain text, with control characters shown as escapes."""
    typer.echo(printable(str(text)), nl=nl, err=err)


def show_error(error: FewparseError, where: str = "") -> int:
    """Print an error with its hint; return the exit code."""
    err.print(f"error: {where}", style="bold red", end="")
    err.print(error.message, markup=False)
    if error.hint:
        err.print(f"  {error.hint}", style="dim", markup=False)
    return MISUSED if isinstance(error, UsageError) else FAILED


def input_lines() -> Iterator[tuple[int, str | UsageError]]:
    """Yield the numbered lines of standard input; one that is too long or not UTF-8 is yielded as an error."""
    stdin = sys.stdin.buffer
    number = 0
    while raw := stdin.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(raw) > MAX_LINE_BYTES:
            while raw and not raw.endswith(b"\n"):
                raw = stdin.readline(MAX_LINE_BYTES)
            yield number, UsageError(f"the line has more than {MAX_LINE_BYTES:,} bytes")
            continue
        try:
            yield number, raw.rstrip(b"\r\n").decode("utf-8")
        except UnicodeDecodeError as error:
            yield number, UsageError(f"not UTF-8 text (byte {error.start + 1} of the line)")


@contextmanager
def opened_model(
    name: str, remote: "RemoteSettings | None" = None, max_concurrency: int | None = None
) -> Iterator["LanguageModel"]:
    """Open a model, with a progress bar if it is downloaded, and close it at the end."""
    from fewparse.lm.load import open_model

    with download_progress() as progress:
        model = open_model(name, progress, remote, max_concurrency=max_concurrency or 1)
    with closing(model):
        yield model


@contextmanager
def named_model(name: str | None, remote: "RemoteSettings | None" = None) -> Iterator["NamedModel | None"]:
    """Return a model that is opened when it is used first, and close it at the end; None without a name."""
    from fewparse.lm.load import NamedModel

    if name is None:
        yield None
        return
    with closing(NamedModel(name, remote=remote)) as model:
        yield model


@contextmanager
def download_progress(what: str = "the model") -> Iterator[Callable[[str, int, int | None], None]]:
    """Show progress on standard error once a download starts; its total is None if it is unknown."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    from fewparse.cli.progress import ProgressLines

    lines = ProgressLines()
    labels = {"download": f"Downloading {what}", "unpack": f"Unpacking {what}"}
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    progress = Progress(*columns, console=err, transient=True, disable=not err.is_terminal)
    tasks: dict[str, TaskID] = {}

    def report(stage: str, done: int, total: int | None) -> None:
        progress.start()
        if stage not in tasks:
            tasks[stage] = progress.add_task(labels[stage], total=total)
        progress.update(tasks[stage], completed=done if total is None else min(done, total))
        of_total = "" if total is None else f" of {total / 1e6:.0f}"
        lines.show(f"{labels[stage]}: {done / 1e6:.0f}{of_total} MB")

    try:
        yield report
    finally:
        if tasks:
            progress.stop()


def warn(message: str) -> None:
    """Print a warning on standard error."""
    err.print("warning: ", style="yellow", end="")
    err.print(message, markup=False)
