"""`fewparse tune`: tune the embedded model on a domain's examples and write an adapter."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from fewparse.cli import options
from fewparse.cli.calibrate import calibrated
from fewparse.cli.calibrate import show as show_calibration
from fewparse.cli.console import echo, err, opened_model, out
from fewparse.cli.trust import code_allowed
from fewparse.errors import TuningError, UsageError
from fewparse.example import TARGETS, Target
from fewparse.files import user_path
from fewparse.lm.adapter import Adapter
from fewparse.lm.load import EMBEDDED, is_default_model
from fewparse.options import NO_ADAPTER, prepare
from fewparse.text import to_json
from fewparse.tune.config import LAYERS, TuneConfig

if TYPE_CHECKING:
    from fewparse.tune.tuning import Progress as TuningProgress

EXAMPLES, TRAINING, LORA = "Examples", "Training", "LoRA"
DEFAULT = TuneConfig()
INSTALL = "pip install 'fewparse[tune]' (without a GPU, first: pip install torch==2.13.0)"


def tune(
    domain: options.Domain,
    target: Annotated[
        Target | None,
        options.option(EXAMPLES, f"Output of the model: {' | '.join(TARGETS)}.", parser=str, metavar="TEXT"),
    ] = None,
    pool: Annotated[
        int | None, options.option(EXAMPLES, "Use only the first POOL training examples.", min=1)
    ] = None,
    data: Annotated[
        Path | None,
        options.option(EXAMPLES, "Folder of datasets (default: $FEWPARSE_DATA or the user's data directory)."),
    ] = None,
    allow_code: Annotated[
        bool,
        options.option(
            EXAMPLES, "Run the code of a domain folder that is not trusted (see `fewparse trust`).", "--allow-code"
        ),
    ] = False,
    epochs: Annotated[int, options.option(TRAINING, "Maximum number of epochs.")] = DEFAULT.epochs,
    held_out: Annotated[
        float,
        options.option(
            TRAINING,
            "Share of examples held out to choose the number of epochs; 0 to train for exactly --epochs.",
        ),
    ] = DEFAULT.held_out,
    patience: Annotated[
        int, options.option(TRAINING, "Number of epochs without improvement before early stopping.")
    ] = DEFAULT.patience,
    learning_rate: Annotated[float, options.option(TRAINING, "Peak learning rate.")] = DEFAULT.learning_rate,
    warmup: Annotated[
        float, options.option(TRAINING, "Share of steps in which the learning rate rises.")
    ] = DEFAULT.warmup,
    weight_decay: Annotated[float, options.option(TRAINING, "Weight decay of AdamW.")] = DEFAULT.weight_decay,
    batch_size: Annotated[int, options.option(TRAINING, "Number of examples per step.")] = DEFAULT.batch_size,
    augmented: Annotated[
        float, options.option(TRAINING, "Share of examples that are augmented, from the second epoch on.")
    ] = DEFAULT.augmented,
    seed: Annotated[
        int,
        options.option(
            TRAINING, "Random seed for initial weights, held-out examples, order and augmentation.", min=0
        ),
    ] = DEFAULT.seed,
    rank: Annotated[
        int, options.option(LORA, "Rank of the LoRA layers, which determines the size of the adapter.")
    ] = DEFAULT.rank,
    scale: Annotated[
        float, options.option(LORA, "Factor on the output of the LoRA layers (alpha / rank).")
    ] = DEFAULT.scale,
    layers: Annotated[
        str, options.option(LORA, "Linear layers of each block that get LoRA layers, separated by commas.")
    ] = ",".join(LAYERS),
    model: Annotated[str, options.option(options.MODEL, "Model to tune: embedded[:NAME] | gguf:PATH.")] = EMBEDDED,
    calibrate: Annotated[
        bool,
        options.option(
            TRAINING,
            "Also calibrate the confidence of the tuned model, which takes about as long again.",
            "--calibrate",
        ),
    ] = False,
    path: Annotated[
        Path | None,
        options.option(
            options.OUTPUT, "Path of the adapter file (default: next to the domain's examples).", "--out"
        ),
    ] = None,
    as_json: Annotated[
        bool, options.option(options.OUTPUT, "Print the adapter's provenance as one JSON object.", "--json")
    ] = False,
) -> None:
    """Tune the embedded model on a domain's examples; `parse` and `eval` then use the resulting adapter.

    The adapter is a file of a few megabytes next to the examples. The same command resumes an interrupted run.
    """
    config = TuneConfig(
        rank=rank,
        scale=scale,
        learning_rate=learning_rate,
        batch_size=batch_size,
        epochs=epochs,
        patience=patience,
        held_out=held_out,
        seed=seed,
        warmup=warmup,
        weight_decay=weight_decay,
        augmented=augmented,
        layers=tuple(layers.split(",")),
    )
    config.check()
    allowed = code_allowed(domain, allow_code)
    loaded, resolved = prepare(
        domain, model, data=data, pool=pool, target=target, adapter=NO_ADAPTER, allow_code=allowed
    )
    if config.held_out_count(len(loaded.examples)) or calibrate:
        loaded.require_code()
    adapter_path = user_path(path) if path else loaded.adapter_path(resolved.target)
    if os.path.isdir(adapter_path):
        raise UsageError(f"{adapter_path} is a folder", f"Name a file: --out {adapter_path / 'adapter.gguf'}")
    try:
        from fewparse.tune.tuning import Tuning
    except ImportError as error:
        raise TuningError(f"tuning needs the packages of the extra `tune` ({error})", INSTALL) from None
    from fewparse.lm.embedded import EmbeddedModel

    start = time.perf_counter()
    with opened_model(model) as opened, progress_bar() as report:
        if not isinstance(opened, EmbeddedModel):
            raise UsageError(f"{opened.name} cannot be tuned", "Tune `embedded`, or a file: --model gguf:PATH")
        adapter = Tuning(loaded, resolved.target, opened, config, adapter_path, report).run()
    seconds = time.perf_counter() - start
    is_default = is_default_model(model) and path is None
    arguments = f"{domain} --target {resolved.target}"
    if not is_default:
        arguments += f" --model {model} --adapter {adapter.path}"
    show(adapter, arguments, seconds, as_json)
    if not (calibrate or as_json):
        out.print(f"  Calibrate its confidence: fewparse calibrate {arguments}", style="dim", markup=False)
    if not calibrate:
        return
    with opened_model(model) as opened:
        found = calibrated(loaded, resolved.target, opened, {"adapter": adapter.path}, data=data)
    if not as_json:
        show_calibration(loaded, found)


@contextmanager
def progress_bar() -> Iterator[Callable[["TuningProgress"], None]]:
    """Show a progress bar on standard error: loss, accuracy on the held-out examples, and remaining time."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("loading the model", total=None)

        def report(state: "TuningProgress") -> None:
            phase = "refit on all" if state.refitting else "fit"
            text = f"{phase}, epoch {state.epoch} of {state.epochs}, loss {state.loss:.2f}"
            if state.held_out_correct is not None:
                text += f", held-out examples {state.held_out_correct} of {state.held_out} correct"
            progress.update(task, description=text, completed=state.step, total=state.steps)

        yield report


def show(adapter: Adapter, arguments: str, seconds: float, as_json: bool) -> None:
    """Print a summary of the adapter, and the command that evaluates it."""
    provenance = adapter.provenance
    assert provenance is not None, "adapters made by fewparse have a provenance"
    size = adapter.path.stat().st_size
    if as_json:
        summary: dict[str, Any] = {"adapter": str(adapter.path), "bytes": size, "seconds": round(seconds, 1)}
        echo(to_json(summary | provenance.model_dump()))
        return
    out.print(
        f"{provenance.domain}, target {provenance.target}: {provenance.examples} examples, "
        f"{provenance.epochs} epochs, {seconds / 60:.1f} minutes",
        markup=False,
    )
    if provenance.held_out:
        out.print(
            f"  held-out examples: {provenance.held_out_correct} of {provenance.held_out} correct",
            markup=False,
        )
    out.print(f"  {adapter.path} ({size / 1e6:.1f} MB)", style="cyan", markup=False)
    out.print(f"  Try it: fewparse eval {arguments}", style="dim", markup=False)
