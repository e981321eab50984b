"""`fewparse optimize`: choose the settings of a domain on its training examples."""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

from fewparse.cli import options
from fewparse.cli.console import echo, err, named_model, opened_model, warn
from fewparse.cli.progress import ProgressLines, duration
from fewparse.cli.remote import remote_settings
from fewparse.cli.trust import code_allowed
from fewparse.confidence.assess import calibration_path
from fewparse.domains.domain import Domain
from fewparse.evaluate.records import Records
from fewparse.evaluate.run import Listener, Progress
from fewparse.files import cache_folder, exists, user_path
from fewparse.lm.load import EMBEDDED
from fewparse.optimize.axes import SETTINGS
from fewparse.optimize.budget import Budget
from fewparse.optimize.optimization import Optimized, Plan, optimize, planned_space
from fewparse.optimize.report import as_json as result_as_json
from fewparse.optimize.report import as_text, planned
from fewparse.optimize.settings_file import Change, NotWritten, read_settings, write_settings
from fewparse.options import ParserOptions, prepare
from fewparse.text import to_json

BUDGET = "Search"
Minutes = Annotated[float, options.option(BUDGET, "Time for the search in minutes.", min=0.01, max=10_000)]
Folds = Annotated[
    int | None,
    options.option(
        BUDGET,
        "Parse each of FOLDS parts of the examples without them (default: 4 for a tuned model, by adapters tuned "
        "on the others; 10 for an induced grammar; else each example is left out alone).",
        min=2,
        max=100,
    ),
]


def optimize_command(
    domain: options.Domain,
    minutes: Minutes = 30.0,
    folds: Folds = None,
    seed: Annotated[int, options.option(BUDGET, "Random seed of items and combinations.", min=0)] = 0,
    target: options.Target = None,
    pool: options.Pool = None,
    data: options.Data = None,
    allow_code: options.AllowCode = False,
    decoder: options.Decoder = None,
    width: options.Width = None,
    rerank: options.Rerank = None,
    examples: options.Examples = None,
    retriever: options.Retriever = None,
    order: options.Order = None,
    retriever_model: options.RetrieverModel = None,
    model: options.Model = EMBEDDED,
    adapter: options.Adapter = None,
    base_url: options.BaseUrl = None,
    max_concurrency: options.MaxConcurrency = None,
    timeout: options.Timeout = None,
    deadline: options.Deadline = None,
    max_tokens_total: options.MaxTokensTotal = None,
    max_cost: options.MaxCost = None,
    cache: options.Cache = True,
    context_length: options.ContextLength = None,
    path: Annotated[
        Path | None,
        options.option(options.OUTPUT, "Write the changed settings to this file instead of domain.toml.", "--out"),
    ] = None,
    dry_run: Annotated[bool, options.option(options.OUTPUT, "Only say what would be tried.", "--dry-run")] = False,
    as_json: Annotated[
        bool, options.option(options.OUTPUT, "Print the result as one JSON object.", "--json")
    ] = False,
) -> None:
    """Choose the settings of a domain on its training examples, and write them into domain.toml.

    Target, decoder, width, number of examples, retriever, order, rerank
    weight and merge level are searched by successive halving; an option
    that is given is fixed. A domain with an adapter has the settings of the
    tuned model chosen; `--adapter none` chooses those of the prompted one.
    The test set is not used. The same command resumes an interrupted run.
    """
    chosen: ParserOptions = {
        "target": target,
        "decoder": decoder,
        "width": width,
        "rerank": rerank,
        "examples": examples,
        "retriever": retriever,
        "order": order,
        "retriever_model": retriever_model,
        "adapter": adapter,
    }
    fixed = {name: value for name, value in chosen.items() if name in SETTINGS and value is not None}
    allowed = code_allowed(domain, allow_code)
    loaded, resolved = prepare(domain, model, data=data, pool=pool, allow_code=allowed, **chosen)
    loaded.require_code()
    source = read_settings(loaded)
    space = planned_space(loaded, resolved, fixed)
    if dry_run:
        echo("\n".join(planned(loaded, space, minutes)))
        return
    remote = remote_settings(
        [model, retriever_model],
        base_url,
        max_concurrency,
        timeout,
        deadline,
        max_tokens_total,
        max_cost,
        cache,
        context_length,
    )
    records = Records(records_path(loaded, tuned=resolved.adapter is not None))
    with (
        records.locked(),
        opened_model(model, remote, max_concurrency) as opened,
        named_model(retriever_model, remote) as ranking,
    ):
        for repair in records.repairs:
            warn(repair)
        budget = Budget(60 * minutes)
        with search_progress(budget) as (report, listener):
            result = optimize(
                Plan(
                    loaded,
                    opened,
                    resolved,
                    fixed,
                    budget,
                    cache_folder() / "calibration",
                    records,
                    folds,
                    seed,
                    ranking,
                    report,
                    listener,
                )
            )
    show(loaded, result, source, user_path(path) if path else None, as_json)


def records_path(domain: Domain, tuned: bool) -> Path:
    """Return the file of the parses of a domain folder, of the prompted or of the tuned model."""
    place = hashlib.sha256(os.path.realpath(domain.data).encode(errors="replace")).hexdigest()[:8]
    name = f"{domain.name.replace('/', '-')}-{place}-{'tuned' if tuned else 'prompted'}.jsonl"
    return cache_folder() / "optimization" / name


@contextmanager
def search_progress(budget: Budget) -> Iterator[tuple[Callable[[str], None], Listener]]:
    """Show on standard error what is done and how much of the time is spent; yield how both change.

    Without a terminal, these are lines. An interrupt is followed by how to resume.
    """
    columns = (BarColumn(20), TextColumn("{task.description}", markup=False))
    with Bar(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task("", total=budget.seconds)
        step, parses, lines = "", 0, ProgressLines()

        def state() -> str:
            return f"{step}: {parses} parses, {duration(budget.spent)} of {duration(budget.seconds)}"

        def report(text: str) -> None:
            nonlocal step
            if text != step and not err.is_terminal:
                err.print(text, markup=False)
            step = text
            bar.update(task, completed=budget.spent, description=state())

        def listen(progress: Progress) -> None:
            nonlocal parses
            parses += 1
            bar.update(task, completed=budget.spent, description=state())
            lines.show(state())

        try:
            yield report, listen
        except KeyboardInterrupt:
            bar.stop()
            err.print(f"interrupted after {parses} parses; the same command resumes the search", markup=False)
            raise


def show(domain: Domain, result: Optimized, source: bytes, path: Path | None, as_json: bool) -> None:
    """Write the changes, and print the report."""
    written, reason = None, None
    if result.changes:
        try:
            written = write_settings(domain, source, result.changes, path)
        except NotWritten as error:
            reason = str(error)
    if as_json:
        found: dict[str, Any] = result_as_json(result)
        echo(to_json(found | {"written": None if written is None else str(written), "not_written": reason}))
        return
    echo("\n".join(as_text(result)))
    if result.changes:
        where = f"Written to {written}:" if written else f"Not written, because {reason}. Write into domain.toml:"
        echo("\n".join(["", where, *lines_of(result.changes)]))
        if exists(calibration_path(domain)):
            warn(f"its calibration was made for other settings: fewparse calibrate {domain.argument}")


def lines_of(changes: Sequence[Change]) -> Iterator[str]:
    """Yield changes as lines of a domain.toml, with the old values."""
    shown = ""
    for change in changes:
        if change.table != shown:
            shown = change.table
            yield f"  [{shown}]"
        old = "as before, for the tuned model" if change.old == change.new else f"was {change.old}"
        yield f"  {change.line}  # {old}"
