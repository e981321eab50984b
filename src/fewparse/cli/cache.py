"""`fewparse cache`: the answers of remote models that are kept."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from typing import Annotated

import typer
from rich.filesize import decimal

from fewparse.cli.console import err
from fewparse.errors import FewparseError
from fewparse.lm.cache import ResponseCache, answers_path

app = typer.Typer(help="The answers of remote models that are kept.", no_args_is_help=True)


@app.command()
def stats(
    as_json: Annotated[bool, typer.Option("--json", help="The numbers as one JSON object.")] = False,
) -> None:
    """Tell where answers are kept, how many, and how much room they take."""
    with opened() as cache:
        found = cache.statistics()
    if as_json:
        numbers = {
            "path": str(cache.path),
            "entries": found.entries,
            "answer_bytes": found.answer_bytes,
            "file_bytes": found.file_bytes,
            "limit": found.limit,
            "oldest": found.oldest and found.oldest.isoformat(),
            "newest": found.newest and found.newest.isoformat(),
        }
        typer.echo(json.dumps(numbers, ensure_ascii=False))
        return
    typer.echo(f"{cache.path}: {decimal(found.file_bytes)}")
    typer.echo(f"{found.entries:,} answers, {decimal(found.answer_bytes)} of at most {decimal(found.limit)}")
    if found.oldest and found.newest:
        typer.echo(f"the oldest of {local(found.oldest)}, the newest of {local(found.newest)}")


@app.command()
def clear() -> None:
    """Forget all answers."""
    with opened() as cache:
        size = cache.statistics().answer_bytes
        entries = cache.clear()
    typer.echo(f"{entries:,} answers removed, {decimal(size)}")


@contextmanager
def opened() -> Iterator[ResponseCache]:
    """The user's cache. What it says goes to standard error; if it cannot be used, the command fails."""
    told: list[str] = []
    with closing(ResponseCache(answers_path(), tell=told.append)) as cache:
        yield cache
        if not cache.working:
            raise FewparseError(told.pop())
        for note in told:
            err.print(f"note: {note}", markup=False)


def local(moment: datetime) -> str:
    """A moment as the clock here shows it."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M")
