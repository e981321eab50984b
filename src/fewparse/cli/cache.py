"""`fewparse cache`: statistics of the caches, and clearing them."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from typing import Annotated

import typer
from rich.filesize import decimal

from fewparse.cli.console import echo, err
from fewparse.domains.sql.cache import sql_cache_folder, stored_files, total_size
from fewparse.errors import FewparseError
from fewparse.lm.response_cache import ResponseCache, response_cache_path
from fewparse.retrieve.similarity_store import open_similarities
from fewparse.text import to_json

app = typer.Typer(
    help="Inspect or clear the caches: responses of models, similarities of utterances, files of SQL domains.",
    no_args_is_help=True,
)
Open = Callable[[Callable[[str], None]], ResponseCache]

CACHES: dict[str, Open] = {
    "responses": lambda on_warning: ResponseCache(response_cache_path(), on_warning=on_warning),
    "similarities": open_similarities,
}
"""How each cache is opened, by the name of its entries."""


@app.command()
def stats(
    as_json: Annotated[bool, typer.Option("--json", help="Print the statistics as one JSON object.")] = False,
) -> None:
    """Show the path of each cache, the number of its entries and their size."""
    numbers: dict[str, dict[str, object]] = {}
    lines: list[str] = []
    for entries, open_cache in CACHES.items():
        with opened_cache(open_cache) as cache:
            found = cache.statistics()
        numbers[entries] = {
            "path": str(cache.path),
            "entries": found.entries,
            "entry_bytes": found.entry_bytes,
            "file_bytes": found.file_bytes,
            "limit_bytes": found.limit,
            "oldest": found.oldest and found.oldest.isoformat(),
            "newest": found.newest and found.newest.isoformat(),
        }
        lines.append(f"{cache.path}: {decimal(found.file_bytes)}")
        lines.append(
            f"{found.entries:,} {entries}, {decimal(found.entry_bytes)} of at most {decimal(found.limit)}"
        )
        if found.oldest and found.newest:
            lines.append(f"oldest from {local_time(found.oldest)}, newest from {local_time(found.newest)}")
    folder, files = sql_cache_folder(), stored_files()
    numbers["sql"] = {"path": str(folder), "entries": len(files), "file_bytes": total_size(files)}
    lines.append(f"{folder}: {decimal(total_size(files))}")
    lines.append(f"{len(files):,} files of SQL domains")
    echo(to_json(numbers) if as_json else "\n".join(lines))


@app.command()
def clear() -> None:
    """Delete everything from the caches."""
    for entries, open_cache in CACHES.items():
        with opened_cache(open_cache) as cache:
            size = cache.statistics().entry_bytes
            deleted = cache.clear()
        echo(f"{deleted:,} {entries} deleted, {decimal(size)}")
    files = stored_files()
    size = total_size(files)
    for path in files:
        path.unlink(missing_ok=True)
    echo(f"{len(files):,} files of SQL domains deleted, {decimal(size)}")


@contextmanager
def opened_cache(open_cache: Open) -> Iterator[ResponseCache]:
    """Open a cache; print its warnings on standard error, raise `FewparseError` if it cannot be used."""
    messages: list[str] = []
    with closing(open_cache(messages.append)) as cache:
        yield cache
        if not cache.working:
            raise FewparseError(messages.pop())
        for message in messages:
            err.print(f"note: {message}", markup=False)


def local_time(moment: datetime) -> str:
    """Format a time in the local time zone."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M")
