"""`fewparse data`: benchmark datasets in the user's data folder."""

from pathlib import Path
from typing import Annotated

import typer

from fewparse.cli import options
from fewparse.cli.console import download_progress, err
from fewparse.datasets.folder import Kept, Outcome, data_folder
from fewparse.datasets.published import mirror_variable
from fewparse.datasets.registry import DATASETS, dataset

app = typer.Typer(help="Benchmark datasets: fetch them, import them, see what is there.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help=f"The dataset: {' | '.join(DATASETS)}.")]


@app.command()
def get(
    name: Name,
    data: options.Data = None,
    mirror: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="URL",
            help="A mirror: an address below which the files have the same paths as in their repository. "
            f"(Default: {', '.join(f'${mirror_variable(name)}' for name in DATASETS)}.)",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Fetch the files again, even if they are there.")] = False,
) -> None:
    """Fetch a dataset and check it. What an interrupted download has left is carried on."""
    known = dataset(name)
    with download_progress("the data") as report:
        outcome = known.get(data_folder(data), lambda done, total: report("download", done, total), mirror, force)
    tell(outcome)


@app.command("import")
def import_(
    name: Name,
    source: Annotated[
        Path, typer.Argument(metavar="DIR", help="A folder that holds the files, or has them below.")
    ],
    data: options.Data = None,
) -> None:
    """Take a dataset from files that are already on this machine."""
    tell(dataset(name).import_from(source, data_folder(data)))


@app.command("list")
def list_(data: options.Data = None) -> None:
    """Tell which datasets are there, and how to get the others."""
    for name, known in DATASETS.items():
        kept = known.kept(data_folder(data))
        for domain in kept:
            typer.echo(line(domain) if domain.domain == name else f"{name} {line(domain)}")
        if not kept:
            typer.echo(f"{name} is not there. Get it: fewparse data get {name}")


@app.command()
def path() -> None:
    """Print where datasets are kept, or will be."""
    typer.echo(data_folder())


def tell(outcome: Outcome) -> None:
    """One line a domain, and the notes on standard error."""
    for note in outcome.notes:
        err.print(f"note: {note}", markup=False)
    for domain in outcome.kept:
        typer.echo(line(domain))


def line(kept: Kept) -> str:
    """A domain with its numbers of examples and its place."""
    counts = (("train", kept.train), ("test", kept.test), *kept.others)
    return f"{kept.domain}: {', '.join(f'{count} {split}' for split, count in counts)}, in {kept.path}"
