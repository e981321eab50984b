"""`fewparse tune`: an adapter for the embedded model from a domain's examples."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from fewparse.cli import options
from fewparse.cli.console import download_progress, err, out
from fewparse.domains.load import load_domain
from fewparse.errors import TuningError, UsageError
from fewparse.lm.adapter import Adapter
from fewparse.lm.load import EMBEDDED, open_model
from fewparse.options import Options
from fewparse.tune.config import TuneConfig

if TYPE_CHECKING:
    from fewparse.tune.tuning import Progress as Stand

USUAL = TuneConfig()
INSTALL = "pip install 'fewparse[tune]' (where there is no GPU, first: pip install torch==2.13.0)"


def tune(
    domain: options.Domain,
    target: options.Target = None,
    pool: options.Pool = None,
    epochs: Annotated[int, typer.Option(help="The most epochs.")] = USUAL.epochs,
    held_out: Annotated[
        float,
        typer.Option(
            help="The part of the examples by which the number of epochs is found; 0: all are gone through."
        ),
    ] = USUAL.held_out,
    rank: Annotated[int, typer.Option(help="Of the low-rank layers: the adapter's size.")] = USUAL.rank,
    rate: Annotated[float, typer.Option(help="The learning rate.")] = USUAL.rate,
    batch: Annotated[int, typer.Option(help="Examples a step.")] = USUAL.batch,
    seed: Annotated[int, typer.Option(help="For the order of examples.", min=0)] = USUAL.seed,
    path: Annotated[
        Path | None,
        typer.Option("--out", help="Where to keep the adapter (default: beside the domain's examples)."),
    ] = None,
    model: Annotated[str, typer.Option(help="embedded | gguf:PATH")] = EMBEDDED,
    data: options.Data = None,
    as_json: Annotated[bool, typer.Option("--json", help="The adapter's provenance, as one JSON object.")] = False,
) -> None:
    """Teach the embedded model a domain from its examples; `parse` and `eval` then use what it has learned.

    The result is an adapter of a few megabytes beside the domain. An interrupted tuning goes on where it was.
    """
    loaded = load_domain(domain, data, pool)
    options = Options.resolve(loaded, target=target)
    config = TuneConfig(rank=rank, rate=rate, batch=batch, epochs=epochs, held_out=held_out, seed=seed)
    config.check()
    config.held_out_of(len(loaded.examples))
    loaded.check(options.target, options.prompt)
    place = path or loaded.adapter_path(options.target)
    if place.is_dir():
        raise UsageError(f"{place} is a folder", f"Name a file: --out {place / 'adapter.gguf'}")
    try:
        from fewparse.tune.tuning import Tuning
    except ImportError as error:
        raise TuningError(f"tuning needs torch and more ({error})", INSTALL) from None
    from fewparse.lm.embedded import EmbeddedModel

    with download_progress() as progress:
        opened = open_model(model, progress)
    if not isinstance(opened, EmbeddedModel):
        raise UsageError(f"{opened.name} cannot be tuned", "Tune `embedded`, or a model file: --model gguf:PATH")
    begin = time.perf_counter()
    with steps() as report:
        adapter = Tuning(loaded, options.target, opened, config, place, report).run()
    found = model == EMBEDDED and path is None
    how = f"{domain} --target {options.target}" + ("" if found else f" --model {model} --adapter {adapter.path}")
    show(adapter, how, time.perf_counter() - begin, as_json)


@contextmanager
def steps() -> Iterator[Callable[["Stand"], None]]:
    """A progress bar on standard error: the loss, how the held-out examples fare, and the time left."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("reading the model", total=None)

        def report(stand: "Stand") -> None:
            what = "refit on all" if stand.refitting else "fit"
            said = f"{what}, epoch {stand.epoch} of {stand.epochs}, loss {stand.loss:.2f}"
            if stand.trial is not None:
                said += f", held out {stand.trial} of {stand.held_out} right"
            progress.update(task, description=said, completed=stand.step, total=stand.steps)

        yield report


def show(adapter: Adapter, how: str, seconds: float, as_json: bool) -> None:
    """What came of it, and how to ask for it."""
    told = adapter.provenance
    assert told is not None, "an adapter of our own tells where it comes from"
    size = adapter.path.stat().st_size
    if as_json:
        said: dict[str, Any] = {"adapter": str(adapter.path), "bytes": size, "seconds": round(seconds, 1)}
        typer.echo(json.dumps(said | told.model_dump(), ensure_ascii=False))
        return
    out.print(
        f"{told.domain}, target {told.target}: {told.examples} examples, {told.epochs} epochs, "
        f"{seconds / 60:.1f} minutes",
        markup=False,
    )
    if told.held_out:
        out.print(
            f"  held out while the epochs were sought: {told.held_out_correct} of {told.held_out} right",
            markup=False,
        )
    out.print(f"  {adapter.path} ({size / 1e6:.1f} MB)", style="cyan", markup=False)
    out.print(f"  Try it: fewparse eval {how}", style="dim", markup=False)
