"""`fewparse models`: the weights of the embedded default, and what a server does."""

import json
from typing import Annotated

import typer
from rich.table import Table

from fewparse.cli import options
from fewparse.cli.console import download_progress, out
from fewparse.cli.remote import remote_settings
from fewparse.errors import UsageError
from fewparse.lm import weights
from fewparse.lm.load import REMOTE

app = typer.Typer(help="The weights of the embedded model, and what a server does.", no_args_is_help=True)


@app.command()
def pull(
    force: Annotated[bool, typer.Option("--force", help="Fetch it again, even if it is there.")] = False,
) -> None:
    """Fetch the embedded model into the cache, if it is not there, and check it."""
    with download_progress() as progress:
        path = weights.pull(force=force, progress=progress)
    weights.verify()
    typer.echo(path)


@app.command()
def path() -> None:
    """Print where the embedded model is, or will be."""
    typer.echo(weights.weights_path())


@app.command()
def probe(
    model: Annotated[
        str, typer.Argument(help="openai:NAME | openai-chat:NAME; without a name, the only one it has.")
    ] = "openai:",
    base_url: options.BaseUrl = None,
    timeout: options.Timeout = None,
    deadline: options.Deadline = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Find out what a server really does, by a few small questions, and remember it."""
    kind, _, name = model.partition(":")
    remote = remote_settings(model, base_url, timeout=timeout, deadline=deadline)
    if remote is None:
        raise UsageError(f"{model!r} is no model behind a server", f"Those are {' and '.join(REMOTE)}:NAME.")
    from fewparse.lm.http.load import probe_model

    client, name, found = probe_model(kind, name, remote, refresh=True)
    if as_json:
        typer.echo(
            json.dumps({"server": client.url, "model": name} | found.as_dict(), ensure_ascii=False, indent=1)
        )
        return
    out.print(f"{kind}:{name} at {client.url}", style="bold", markup=False)
    table = Table("asked", "found", "so", box=None, pad_edge=False)
    for row in found.table():
        table.add_row(*row)
    out.print(table)
