"""`fewparse data`: download, import and list benchmark datasets."""

from pathlib import Path
from typing import Annotated

import typer

from fewparse.cli import options
from fewparse.cli.console import download_progress, echo, err
from fewparse.datasets.dataset import mirror_variable
from fewparse.datasets.registry import DATASETS
from fewparse.datasets.storage import ImportResult, StoredDomain, data_folder, store_again

app = typer.Typer(help="Download, import and list benchmark datasets.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help=f"Name of the dataset: {options.listing(DATASETS)}.")]


@app.command()
def get(
    name: Name,
    data: options.Data = None,
    mirror: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="URL",
            help="Base URL of a mirror with the same paths as the published repository "
            f"(default: {', '.join(f'${mirror_variable(name)}' for name in DATASETS)}).",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Download files again that are already stored.")] = False,
) -> None:
    """Download a dataset, verify it and import it. An interrupted download is resumed."""
    dataset = DATASETS[name]
    with download_progress("the data") as report:
        result = dataset.download(
            data_folder(data), lambda done, total: report("download", done, total), mirror, force
        )
    show(result)


@app.command("import")
def import_(
    name: Name,
    source: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder with the files, which may be in subfolders.")
    ],
    data: options.Data = None,
) -> None:
    """Import a dataset from files on this machine."""
    show(DATASETS[name].import_from(source, data_folder(data)))


@app.command("list")
def list_(data: options.Data = None) -> None:
    """List the stored datasets, and how to download the others."""
    for name in DATASETS:
        stored = DATASETS[name].stored(data_folder(data))
        for domain in stored:
            echo(summary(domain))
        if not stored:
            echo(f"{name} is not stored. Download it: fewparse data get {name}")


@app.command()
def path() -> None:
    """Print the folder in which datasets are stored."""
    echo(data_folder())


def show(result: ImportResult) -> None:
    """Print one line per stored domain, and the notes to standard error."""
    for note in result.notes:
        err.print(f"note: {note}", markup=False)
    for domain in result.stored:
        echo(summary(domain))


def summary(stored: StoredDomain) -> str:
    """Return the name of a domain with its numbers of examples and its folder."""
    if stored.damage is not None:
        return f"{stored.domain}: damaged: {stored.damage}, in {stored.path}. {store_again(stored.domain)}"
    counts = (("train", stored.train), ("test", stored.test), *stored.others)
    listed = f"{stored.domain}: {', '.join(f'{count} {split}' for split, count in counts)}, in {stored.path}"
    listed += "".join(f"; {note}" for note in stored.data_notes)
    if stored.verified:
        return listed
    return f"{listed}; not verified, stored by an earlier version. {store_again(stored.domain)}"
