"""`fewparse models`: the catalogue of downloadable models, checks of model files, and what a server supports."""

from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from fewparse.cli import options
from fewparse.cli.console import FAILED, download_progress, echo, out
from fewparse.cli.remote import remote_settings
from fewparse.errors import UsageError
from fewparse.files import user_path
from fewparse.lm import catalogue, weights
from fewparse.text import printable, to_json

app = typer.Typer(
    help="List and download models; check model files; find out what a server supports.", no_args_is_help=True
)


Name = Annotated[
    str, typer.Argument(help=f"Name of the model: {' | '.join(weights.name for weights in catalogue.MODELS)}.")
]


@app.command("list")
def list_(
    as_json: Annotated[bool, typer.Option("--json", help="Print the catalogue as one JSON object.")] = False,
) -> None:
    """List the models that can be downloaded: packages, hash, licence, size, and whether they are stored."""
    models = {each.name: describe_weights(each) for each in catalogue.MODELS}
    if as_json:
        echo(to_json({"models": models}, indent=1))
        return
    for name, described in models.items():
        out.print(f"{name}{' (default)' if described.pop('default') else ''}", style="bold", markup=False)
        for key, value in described.items():
            echo(f"  {key}: {', '.join(value) if isinstance(value, list) else shown(value)}")


def describe_weights(found: catalogue.Weights) -> dict[str, Any]:
    """Return the entry of a model of the catalogue for a reader."""
    terms = {"terms": found.terms} if found.terms else {}
    return {
        "default": found == catalogue.DEFAULT,
        "description": found.description,
        "packages": [part.requirement for part in found.parts],
        "sha256": found.sha256,
        "licence": found.licence,
        **terms,
        "bytes": found.size,
        "stored": weights.is_stored(found),
        "path": str(weights.weights_path(found)),
    }


def shown(value: str | int | bool) -> str:
    """Return a value of an entry as text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else value


@app.command()
def pull(
    name: Name = catalogue.DEFAULT.name,
    force: Annotated[
        bool, typer.Option("--force", help="Download the model again, even if it is already stored.")
    ] = False,
    accept_licence: Annotated[
        bool, typer.Option("--accept-licence", help="Accept the terms of a model that has its own.")
    ] = False,
) -> None:
    """Download a model of the catalogue, unless it is already stored, verify it, and print its path."""
    found = catalogue.find_weights(name)
    with download_progress() as progress:
        path = weights.pull(found, force, progress, accept_licence)
    echo(path)


@app.command()
def path(name: Name = catalogue.DEFAULT.name) -> None:
    """Print the path of a model of the catalogue, whether or not it has been downloaded."""
    echo(weights.weights_path(catalogue.find_weights(name)))


@app.command()
def check(
    path: Annotated[str, typer.Argument(help="GGUF file of a model or of a LoRA adapter.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
) -> None:
    """Check a model or an adapter, a model also by a trial in another process, and print what was found."""
    from fewparse.lm.model_file import describe, report

    file = user_path(path)
    found = report(file)
    described: dict[str, Any] = {"path": str(file), "sha256": found.sha256} | describe(found.file)
    if as_json:
        echo(to_json(described | {"valid": not found.problems, "problems": found.problems}, indent=1))
    else:
        for name, value in described.items():
            out.print(f"{name}: {value}", markup=False)
        for problem in found.problems:
            out.print(f"wrong: {problem}", markup=False)
        out.print("no mistake was found" if not found.problems else "this file cannot be used", style="bold")
    if found.problems:
        raise typer.Exit(FAILED)


@app.command()
def probe(
    model: Annotated[
        str,
        typer.Argument(
            help="Remote model: openai:NAME | openai-chat:NAME; NAME may be omitted if the server has only one."
        ),
    ] = "openai:",
    base_url: options.BaseUrl = None,
    timeout: options.Timeout = None,
    deadline: options.Deadline = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
) -> None:
    """Find out by a few small requests what a server supports, and store the result."""
    from fewparse.lm.http.capability_table import lost, table
    from fewparse.lm.http.load import KINDS, probe_model

    kind, _, name = model.partition(":")
    remote = remote_settings([model], base_url, timeout=timeout, deadline=deadline)
    if remote is None or kind not in KINDS:
        names = " or ".join(f"{known}:NAME" for known in KINDS)
        raise UsageError(f"{model!r} is not a model behind a server", f"Use {names}.")
    client, name, found = probe_model(kind, name, remote, refresh=True)
    if as_json:
        echo(to_json({"server": client.url, "model": name, "lost": lost(found)} | found.as_dict(), indent=1))
        return
    out.print(f"{kind}:{name} at {client.url}", style="bold", markup=False)
    rows = Table("capability", "result", "consequence", box=None, pad_edge=False)
    for row in table(found):
        rows.add_row(*(Text(printable(cell)) for cell in row))  # a string would be read as markup
    out.print(rows)
    out.print(lost(found), markup=False)
