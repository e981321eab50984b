"""`fewparse new` and `fewparse execute`: domain folders."""

from pathlib import Path
from typing import Annotated

import typer

from fewparse.cli import options
from fewparse.cli.console import FAILED, input_lines
from fewparse.domains.load import find_domain
from fewparse.domains.scaffold import make_domain
from fewparse.errors import FewparseError, UsageError
from fewparse.example import answer_text


def execute(
    domain: options.Domain,
) -> None:
    """Execute the programs on standard input: one denotation per line, `error: ...` for one that fails."""
    loaded = find_domain(domain)
    if loaded.executor is None:
        raise UsageError(
            f"the domain {loaded.name} has no executor",
            'Name one in its domain.toml: executor = "executor.py:execute"',
        )
    failed = False
    for _, line in input_lines():
        try:
            if isinstance(line, FewparseError):
                raise line
            typer.echo(" ".join(answer_text(loaded.execute(line)).splitlines()))
        except FewparseError as error:
            failed = True
            typer.echo("error: " + " ".join(error.message.splitlines()))
    if failed:
        raise typer.Exit(FAILED)


def new(
    name: Annotated[str, typer.Argument(help="Name of the new domain.")],
    folder: Annotated[
        Path | None, typer.Option("--in", help="Folder to create (default: a folder of that name here).")
    ] = None,
) -> None:
    """Create a domain folder to start from: a small language with examples, a grammar and an executor."""
    made = make_domain(name, folder or Path(name))
    typer.echo(f'Created {made}. Try it:\n  fewparse parse {made} "turn on the lamp in the kitchen"')
