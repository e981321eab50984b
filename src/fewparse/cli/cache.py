"""`fewparse cache`: statistics of the response cache, and clearing it."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from typing import Annotated

import typer
from rich.filesize import decimal

from fewparse.cli.console import echo, err
from fewparse.errors import FewparseError
from fewparse.lm.response_cache import ResponseCache, response_cache_path
from fewparse.text import to_json

app = typer.Typer(help="Inspect or clear the cache of responses of remote models.", no_args_is_help=True)


@app.command()
def stats(
    as_json: Annotated[bool, typer.Option("--json", help="Print the statistics as one JSON object.")] = False,
) -> None:
    """Show the path of the response cache, the number of responses and their size."""
    with open_cache() as cache:
        found = cache.statistics()
    if as_json:
        numbers = {
            "path": str(cache.path),
            "entries": found.entries,
            "response_bytes": found.response_bytes,
            "file_bytes": found.file_bytes,
            "limit_bytes": found.limit,
            "oldest": found.oldest and found.oldest.isoformat(),
            "newest": found.newest and found.newest.isoformat(),
        }
        echo(to_json(numbers))
        return
    echo(f"{cache.path}: {decimal(found.file_bytes)}")
    echo(f"{found.entries:,} responses, {decimal(found.response_bytes)} of at most {decimal(found.limit)}")
    if found.oldest and found.newest:
        echo(f"oldest from {local_time(found.oldest)}, newest from {local_time(found.newest)}")


@app.command()
def clear() -> None:
    """Delete all responses from the cache."""
    with open_cache() as cache:
        size = cache.statistics().response_bytes
        entries = cache.clear()
    echo(f"{entries:,} responses deleted, {decimal(size)}")


@contextmanager
def open_cache() -> Iterator[ResponseCache]:
    """Open the user's cache; print its warnings on standard error, raise `FewparseError` if it cannot be used."""
    messages: list[str] = []
    with closing(ResponseCache(response_cache_path(), on_warning=messages.append)) as cache:
        yield cache
        if not cache.working:
            raise FewparseError(messages.pop())
        for message in messages:
            err.print(f"note: {message}", markup=False)


def local_time(moment: datetime) -> str:
    """Format a time in the local time zone."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M")
