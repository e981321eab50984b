"""`fewparse tune`: tune the embedded model on a domain's examples and write an adapter."""

import os
import textwrap
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
from fewparse.cli.progress import ProgressLines
from fewparse.cli.trust import code_allowed
from fewparse.domains.domain import Domain
from fewparse.errors import TuningError, UsageError
from fewparse.evaluate.metrics import Proportion
from fewparse.evaluate.plain_table import WIDTH
from fewparse.example import TARGETS, Target
from fewparse.files import user_path
from fewparse.lm.adapter import Adapter, Provenance
from fewparse.lm.load import EMBEDDED, is_default_model
from fewparse.options import NO_ADAPTER, prepare
from fewparse.text import to_json
from fewparse.tune.config import LAYERS, TuneConfig
from fewparse.tune.curve import LearningCurve

if TYPE_CHECKING:
    from fewparse.tune.tuning import Progress as TuningProgress

EXAMPLES, TRAINING, LORA = "Examples", "Training", "LoRA"
DEFAULT = TuneConfig()
ENOUGH = 0.8
"""A share of right held-out examples below which more examples are suggested."""
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
    with opened_model(model) as opened:
        if not isinstance(opened, EmbeddedModel):
            raise UsageError(f"{opened.name} cannot be tuned", "Tune `embedded`, or a file: --model gguf:PATH")
        explain(loaded, resolved.target, opened.name, config)
        with progress_bar() as report:
            tuning = Tuning(loaded, resolved.target, opened, config, adapter_path, report)
            adapter = tuning.run()
    seconds = time.perf_counter() - start
    is_default = is_default_model(model) and path is None
    arguments = f"{domain} --target {resolved.target}"
    if not is_default:
        arguments += f" --model {model} --adapter {adapter.path}"
    if as_json:
        show_json(adapter, tuning.curve, seconds)
    else:
        show(adapter, tuning.curve, arguments, seconds)
    if not (calibrate or as_json):
        out.print(f"  Calibrate its confidence: fewparse calibrate {arguments}", style="dim", markup=False)
    if not calibrate:
        return
    with opened_model(model) as opened:
        found = calibrated(loaded, resolved.target, opened, {"adapter": adapter.path}, data=data)
    if not as_json:
        show_calibration(loaded, found)


def explain(domain: Domain, target: Target, model: str, config: TuneConfig) -> None:
    """Say on standard error what is done and why, in a sentence for each step."""
    total = len(domain.examples)
    held_out = config.held_out_count(total)
    err.print(f"Tuning {model} on the {total} examples of {domain.name} (target {target}).", markup=False)
    steps = []
    if held_out:
        steps.append(
            f"Choose the number of epochs (passes over the examples), at most {config.epochs}: train on "
            f"{total - held_out} examples, and parse the other {held_out} after each epoch. The model has not "
            "seen these, so they show when it stops getting better. The first epochs get few of them right."
        )
    number = "the chosen number of" if held_out else f"{config.epochs}"
    steps.append(
        f"Train on all {total} examples for {number} epochs, and write an adapter: a small file that changes how "
        "the model parses this domain. The model itself stays as it is."
    )
    for i, step in enumerate(steps, 1):
        err.print(textwrap.fill(f"{i}. {step}", WIDTH, subsequent_indent="   "), style="dim", markup=False)


@contextmanager
def progress_bar() -> Iterator[Callable[["TuningProgress"], None]]:
    """Show on standard error what is being done: the step, epoch, loss, and remaining time."""
    columns = (TextColumn("{task.description}"), BarColumn(20), TimeRemainingColumn())
    lines = ProgressLines()
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("preparing", total=None)

        def report(state: "TuningProgress") -> None:
            text = described(state)
            progress.update(task, description=text, completed=state.step, total=state.steps)
            lines.show(f"{100 * state.step // state.steps}%: {text}")

        yield report


def described(state: "TuningProgress") -> str:
    """Return what is being done, in words."""
    if state.refitting:
        return f"training on all examples, epoch {state.epoch} of {state.epochs}, loss {state.loss:.2f}"
    text = f"choosing the number of epochs, epoch {state.epoch} of at most {state.epochs}, loss {state.loss:.2f}"
    if state.held_out_correct is not None:
        text += f", {state.held_out_correct} of {state.held_out} new examples right after epoch {state.epoch - 1}"
    return text


def show_json(adapter: Adapter, curve: LearningCurve, seconds: float) -> None:
    """Print the provenance of the adapter and its learning curve as a JSON object."""
    assert adapter.provenance is not None, "adapters made by fewparse have a provenance"
    summary: dict[str, Any] = {"adapter": str(adapter.path), "bytes": adapter.path.stat().st_size}
    summary |= {"seconds": round(seconds, 1), "curve": curve.as_dict()}
    echo(to_json(summary | adapter.provenance.model_dump()))


def show(adapter: Adapter, curve: LearningCurve, arguments: str, seconds: float) -> None:
    """Print a summary of the adapter, its learning curve and what it means, and what to do next."""
    provenance = adapter.provenance
    assert provenance is not None, "adapters made by fewparse have a provenance"
    size = adapter.path.stat().st_size
    out.print(
        f"{provenance.domain}, target {provenance.target}: tuned on {provenance.examples} examples, "
        f"{provenance.epochs} epochs, {seconds / 60:.1f} minutes",
        markup=False,
    )
    for line in curve.text():
        out.print(f"  {line}", markup=False)
    if provenance.held_out:
        out.print(textwrap.indent(textwrap.fill(meaning(provenance), WIDTH - 2), "  "), markup=False)
    out.print(f"  {adapter.path} ({size / 1e6:.1f} MB)", style="cyan", markup=False)
    out.print(f"  {adapter.path.with_suffix('.svg')} (the learning curve)", style="cyan", markup=False)
    out.print(f"  Try it: fewparse eval {arguments}", style="dim", markup=False)


def meaning(provenance: Provenance) -> str:
    """Return what the result on the held-out examples says about new utterances."""
    right = Proportion(provenance.held_out_correct, provenance.held_out)
    low, high = right.interval()
    text = (
        f"{right.correct} of {right.items} held-out examples were right after {provenance.epochs} epochs, before "
        f"the model had learned them too. So about {right.value:.0%} of new utterances come out right; "
        f"{right.items} examples only say that it is between {low:.0%} and {high:.0%} (95% interval). A test set "
        "says more."
    )
    return text if right.value >= ENOUGH else f"{text} More examples, of the kinds that are wrong, help most."
