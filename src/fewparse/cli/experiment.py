"""`fewparse experiment`: run a grid of models, domains and options, and report the results."""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from fewparse.cli import backend, options
from fewparse.cli.console import echo, opened_model, out, warn
from fewparse.cli.experiment_progress import experiment_progress, similarity_progress
from fewparse.cli.progress import duration
from fewparse.cli.remote import remote_settings
from fewparse.cli.report import PAGE, make_report
from fewparse.cli.trust import code_allowed
from fewparse.domains.schema import validated
from fewparse.errors import DomainError, UnknownName, UsageError
from fewparse.evaluate.records import Records
from fewparse.experiment.estimate import Estimate, estimate
from fewparse.experiment.folder import ALL_ITEMS, Shard
from fewparse.experiment.grid import AXES, ExperimentTable, varying
from fewparse.experiment.plan import MODELS, Plan, make_plan
from fewparse.experiment.results import Results, record_files
from fewparse.experiment.run import run_experiment
from fewparse.files import parse_toml, read_text, user_path
from fewparse.limits import SETTINGS_BYTES

GRID = "Grid (each option may be repeated)"
FLAGS = "the command line"
OUT = "experiments"


def experiment(
    file: Annotated[
        Path | None,
        typer.Argument(help="TOML file with the grid; options on the command line replace its values."),
    ] = None,
    domain: Annotated[list[str] | None, options.option(GRID, "Name or folder of a domain.")] = None,
    model: Annotated[list[str] | None, options.option(GRID, "Language model.")] = None,
    target: Annotated[list[str] | None, options.option(GRID, "Output of the model: program | canonical.")] = None,
    decoder: Annotated[list[str] | None, options.option(GRID, "Search algorithm.")] = None,
    width: Annotated[list[int] | None, options.option(GRID, "Beam size, or samples per hypothesis.")] = None,
    temperature: Annotated[list[float] | None, options.option(GRID, "Temperature of speculative samples.")] = None,
    constrained: Annotated[bool, options.option(GRID, "Well-formed outputs only.", "--constrained")] = False,
    unconstrained: Annotated[
        bool, options.option(GRID, "Any outputs; both with --constrained.", "--unconstrained")
    ] = False,
    examples: Annotated[list[int] | None, options.option(GRID, "Number of examples in the prompt.")] = None,
    retriever: Annotated[list[str] | None, options.option(GRID, "Retrieval method for examples.")] = None,
    order: Annotated[list[str] | None, options.option(GRID, "Order of the examples in the prompt.")] = None,
    seed: Annotated[list[int] | None, options.option(GRID, "Random seed.")] = None,
    other: Annotated[
        list[str] | None,
        options.option(
            GRID, f"Values of any option: NAME=VALUE,VALUE. Options: {', '.join(AXES)}.", "--set", metavar="TEXT"
        ),
    ] = None,
    split: Annotated[
        str | None, options.option(options.INPUT, "Items to parse, as for `fewparse eval` (default: test).")
    ] = None,
    limit: Annotated[
        int | None, options.option(options.INPUT, "Use only the first LIMIT items of each domain.", min=1)
    ] = None,
    shard: Annotated[
        str | None,
        options.option(options.INPUT, "Parse only part I of N of the items, in a file of its own.", metavar="I/N"),
    ] = None,
    data: options.Data = None,
    allow_code: options.AllowCode = False,
    base_url: options.BaseUrl = None,
    max_concurrency: options.MaxConcurrency = None,
    timeout: options.Timeout = None,
    deadline: options.Deadline = None,
    max_tokens_total: options.MaxTokensTotal = None,
    max_cost: options.MaxCost = None,
    cache: options.Cache = True,
    context_length: options.ContextLength = None,
    folder: Annotated[
        Path | None,
        options.option(
            options.OUTPUT, "Folder of the results (default: experiments/NAME); a run continues in it.", "--out"
        ),
    ] = None,
    on: backend.On = backend.LOCAL,
    workers: backend.Workers = None,
    cpus_per_worker: backend.CpusPerWorker = 1,
    gpus_per_worker: backend.GpusPerWorker = 0,
    ray_address: backend.RayAddress = None,
    extend: Annotated[
        bool,
        options.option(options.OUTPUT, "Join the cells and items of the folder and the new ones.", "--extend"),
    ] = False,
    trace: Annotated[
        bool, options.option(options.OUTPUT, "Record the events of every search.", "--trace")
    ] = False,
    report: Annotated[
        bool,
        options.option(
            options.OUTPUT,
            "Whether to report the results at the end, as `fewparse report`.",
            "--report/--no-report",
        ),
    ] = True,
    dry_run: Annotated[
        bool, options.option(options.OUTPUT, "Only say how much would be run, and roughly how long.", "--dry-run")
    ] = False,
) -> None:
    """Run a grid of models, domains and options; an interrupted run continues with the same command.

    The cells are all combinations of the values. Results are appended to the
    folder as they come, and reported at the end (see also `fewparse report`).
    """
    constraints = [True] * constrained + [False] * unconstrained
    axes: dict[str, Any] = {
        "domain": domain,
        "model": model,
        "target": target,
        "decoder": decoder,
        "width": width,
        "temperature": temperature,
        "constrained": constraints or None,
        "examples": examples,
        "retriever": retriever,
        "order": order,
        "seed": seed,
    } | parse_settings(other or [])
    top = {"split": split, "limit": limit, "trace": trace or None}
    remote = {
        "base_url": base_url,
        "max_concurrency": max_concurrency,
        "timeout": timeout,
        "deadline": deadline,
        "max_tokens_total": max_tokens_total,
        "max_cost": max_cost,
        "cache": None if cache else False,
        "context_length": context_length,
    }
    table = experiment_table(file, given(axes), given(top), given(remote))
    name = table.name or (file.stem if file else "experiment")
    run_table(
        table,
        user_path(folder) if folder else Path(OUT) / re.sub(r"[^\w.-]+", "-", name),
        Shard.parse(shard) if shard else ALL_ITEMS,
        data,
        allow_code,
        extend,
        dry_run,
        report,
        backend.chosen_backend(on, workers, cpus_per_worker, gpus_per_worker, ray_address),
    )


def given(values: dict[str, Any]) -> dict[str, Any]:
    """Return the options that are set."""
    return {name: value for name, value in values.items() if value is not None}


def parse_settings(texts: list[str]) -> dict[str, list[Any]]:
    """Parse NAME=VALUE,VALUE: numbers, true and false as in TOML, everything else as text."""
    found: dict[str, list[Any]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals:
            raise UsageError(f"--set {text!r} has no value", "Write --set NAME=VALUE, such as --set paper=true")
        if name not in AXES:
            raise UnknownName("option of a grid", name, AXES)
        found[name] = [parse_value(value.strip()) for value in values.split(",") if value.strip()]
    return found


def parse_value(text: str) -> Any:
    """Return a number or a truth value as in TOML; everything else is text."""
    try:
        value = tomllib.loads(f"x = {text}")["x"]
    except (tomllib.TOMLDecodeError, ValueError):
        return text
    return value if isinstance(value, bool | int | float | str) else text


def experiment_table(
    file: Path | None, axes: dict[str, Any], top: dict[str, Any], remote: dict[str, Any]
) -> ExperimentTable:
    """Return the configuration of a file, if there is one, with the values of the command line in their places."""
    path: Path = Path(FLAGS) if file is None else user_path(file)
    source = "" if file is None else read_text(path, DomainError, SETTINGS_BYTES)
    table = parse_toml(source, path)
    if file is None and "domain" not in axes:
        raise UsageError("no grid is given", "Name a file, or a domain: fewparse experiment --domain calendar")
    grids = table.get("grid", [{}])
    if isinstance(grids, dict):
        grids = [grids]
    if isinstance(grids, list):
        grids = [{**grid, **axes} if isinstance(grid, dict) else grid for grid in grids]
    connection = {"remote": {**table.get("remote", {}), **remote}} if remote else {}
    return validated(ExperimentTable, {**table, **top, "grid": grids, **connection}, source, path)


def run_table(
    table: ExperimentTable,
    folder: Path,
    shard: Shard = ALL_ITEMS,
    data: Path | None = None,
    allow_code: bool = False,
    extend: bool = False,
    dry_run: bool = False,
    report: bool = True,
    ray: backend.RayOptions | None = None,
) -> Results | None:
    """Plan an experiment and run what is missing in its folder, with a progress display; return the results.

    With `dry_run`, only an estimate is printed, and None returned. With `ray`, workers of Ray run it.
    """
    models = {str(cell.options[name]) for cell in table.cells() for name in MODELS if name in cell.options}
    remote = remote_settings(sorted(models), **table.remote.model_dump())
    plan = make_plan(table, data, lambda name: code_allowed(name, allow_code), remote)
    earlier = Records.read_only(record_files(folder)) if folder.is_dir() else {}
    estimates = estimate(plan, earlier, shard)
    if dry_run:
        show_estimates(plan, estimates)
        return None
    missing = sum(each.missing for each in estimates)
    total = sum(item.index in shard for cell in plan.cells for item in plan.items[cell.cell.domain])
    with experiment_progress(total, total - missing, cell_labels(plan)) as listener:
        if ray is not None:
            from fewparse.experiment.ray_backend import run_on_ray

            results = run_on_ray(
                plan, folder, shard, extend, listener, warn, similarity_progress, data=data, **asdict(ray)
            )
        else:
            results = run_experiment(
                plan,
                folder,
                lambda name: opened_model(name, remote, table.remote.max_concurrency),
                shard,
                extend,
                listener,
                warn,
                similarity_progress,
            )
    if report:
        make_report(results, folder, folder / PAGE)
    return results


def cell_labels(plan: Plan) -> dict[str, str]:
    """Return the labels of the cells by their ids: the options in which they differ."""
    cells = [planned.cell for planned in plan.cells]
    names = varying(cells)
    return {cell.id: cell.label(names) or cell.label(("domain", "model")) for cell in cells}


def show_estimates(plan: Plan, estimates: Sequence[Estimate]) -> None:
    """Print how much is left of each cell and of the whole."""
    labels = cell_labels(plan)
    table = Table("cell", "items", "requests", "time", "cost", box=None, pad_edge=False)
    for each in estimates:
        row = (f"{each.missing:,}", f"{each.requests:,.0f}", duration(each.seconds), dollars(each.cost))
        table.add_row(Text(labels[each.cell.cell.id]), *row)
    out.print(table)
    missing, requests, seconds = (
        sum(getattr(each, name) for each in estimates) for name in ("missing", "requests", "seconds")
    )
    costs = [each.cost for each in estimates]
    cost = None if None in costs else sum(each for each in costs if each is not None)
    measured = sum(each.measured for each in estimates)
    basis = f"{measured:,} results in the folder" if measured else "typical speeds; only the order of magnitude"
    size = f"{len(estimates)} cells, {missing:,} items to parse, about {requests:,.0f} requests"
    echo(f"\n{size}, {duration(seconds)}, cost {dollars(cost) or 'none'} (estimated from {basis})")


def dollars(cost: float | None) -> str:
    """Return a cost in dollars; empty if it is free."""
    if cost is None:
        return "unknown"
    return f"${cost:.2f}" if cost else ""
