"""`fewparse models`: the weights of the embedded default."""

from typing import Annotated

import typer

from fewparse.cli.console import download_progress
from fewparse.lm import weights

app = typer.Typer(help="The weights of the embedded model.", no_args_is_help=True)


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
