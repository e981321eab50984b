"""`fewparse eval`: how good a domain is with a model."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from fewparse.cli import options
from fewparse.cli.console import download_progress, err
from fewparse.cli.explain import spent
from fewparse.cli.remote import remote_settings
from fewparse.cli.warnings import prepared
from fewparse.domains.load import load_domain
from fewparse.evaluate.baselines import baselines
from fewparse.evaluate.gold_coverage import reachable
from fewparse.evaluate.metrics import Judge, count
from fewparse.evaluate.records import Records
from fewparse.evaluate.report import failed_items, failures, markdown, plain, rows, spent_by
from fewparse.evaluate.run import TEST, Outcome, Split, evaluate, every_decoder, held_out, prompted, refuse_learned
from fewparse.lm.load import EMBEDDED, open_model
from fewparse.options import Options


def evaluation(
    domain: options.Domain,
    limit: Annotated[int | None, typer.Option(help="Only the first so many items.", min=1)] = None,
    split: Annotated[
        Split,
        typer.Option(
            help="`test`: the held-out examples; `train`: training ones, each parsed without itself; "
            "or another file of the domain's data, without its .jsonl."
        ),
    ] = TEST,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="All decoders beside the domain's own, constrained and not."),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="A folder for records and report; a run that was stopped is carried on from it."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Every figure, as one JSON object.")] = False,
    decoder: options.Decoder = None,
    width: options.Width = None,
    temperature: options.Temperature = None,
    max_tokens: options.MaxTokens = None,
    unconstrained: options.Unconstrained = False,
    constraint: options.Constraint = None,
    grammar: options.Grammar = None,
    copy: options.Copy = None,
    examples: options.Examples = None,
    retriever: options.Retriever = None,
    order: options.Order = None,
    prompt: options.Prompt = None,
    target: options.Target = None,
    rerank: options.Rerank = None,
    vote: options.Vote = None,
    adapter: options.Adapter = None,
    pool: options.Pool = None,
    data: options.Data = None,
    model: options.Model = EMBEDDED,
    base_url: options.BaseUrl = None,
    max_concurrency: options.MaxConcurrency = None,
    timeout: options.Timeout = None,
    deadline: options.Deadline = None,
    max_tokens_total: options.MaxTokensTotal = None,
    max_cost: options.MaxCost = None,
    cache: options.Cache = True,
    context_length: options.ContextLength = None,
    server_grammar: options.ServerGrammar = False,
    seed: options.Seed = None,
) -> None:
    """Parse a domain's held-out examples: accuracy, cost and speed, beside what needs no model.

    Right is a program with the answer of the gold one, or where a domain cannot execute, its normal form or text.

    A program that fails to execute or has no normal form is wrong.
    """
    loaded = load_domain(domain, data, pool, constraint, grammar, copy)
    shared: dict[str, Any] = {
        "examples": examples,
        "retriever": retriever,
        "order": order,
        "prompt": prompt,
        "target": target,
        "rerank": rerank,
        "vote": vote,
        "max_tokens": max_tokens,
        "adapter": adapter,
        "seed": seed,
    }
    own: dict[str, Any] = {
        "decoder": decoder,
        "width": width,
        "temperature": temperature,
        "constrained": not unconstrained,
        "server_grammar": server_grammar,
    }
    options = Options.resolve(loaded, model, **{**shared, **own})
    loaded.check(options.target, options.prompt)
    spoken = prepared(loaded, options.target)
    settings = {options.describe(): own} | (every_decoder() if compare else {})
    items = held_out(loaded, split)[:limit]
    refuse_learned(loaded, split, options.target, options.adapter)
    reach = reachable(loaded, options, items)
    judged_by = Judge(loaded).criterion
    records = Records(out / "records.jsonl" if out else None)
    remote = remote_settings(
        model, base_url, max_concurrency, timeout, deadline, max_tokens_total, max_cost, cache, context_length
    )
    with download_progress() as progress:
        opened = open_model(model, progress, remote)
    simple = list(baselines(spoken, options.target, opened, options.search.seed))
    asked = prompted(spoken, opened, {name: {**shared, **chosen} for name, chosen in settings.items()})
    with item_progress(len(items) * (len(simple) + len(asked))) as after:
        outcomes = evaluate(loaded, [*simple, *asked], items, split, records, after)
    table = rows(outcomes, asked[0].name)
    title = (
        f"{loaded.name}: {len(items)} {split} items, target {options.target}, "
        f"{len(spoken.examples)} examples taught, {options.examples} in the prompt by {options.retriever} "
        f"({options.order}), {opened.name}, judged by {judged_by}"
    )
    if reach is not None:
        title += f"; the constraint admits {reach.right} of {reach.items} gold outputs"
    if shortened := sum(record.examples_dropped > 0 for record in outcomes[-1].records):
        title += f"; fewer examples on {shortened} items, where not all fit into the model's context"
    if failed := failed_items(outcomes):
        title += f"; {failed} items failed"
    admitted = None if reach is None else reach.right
    usage = spent_by(outcomes)
    found: dict[str, object] = {"title": title, "judged_by": judged_by, "gold_outputs_admitted": admitted}
    found |= {"rows": table, "usage": usage.as_dict()}
    report = json.dumps(found, ensure_ascii=False, indent=1)
    if out:
        (out / "report.json").write_text(report + "\n", encoding="utf-8")
        (out / "report.md").write_text(f"{title}\n\n{markdown(table)}", encoding="utf-8")
    typer.echo(report if as_json else f"{title}\n\n{plain(table)}")
    if not (opened.local or as_json):
        typer.echo(f"\n{spent(usage)}")
    for reason, times in failures(outcomes).most_common():
        err.print(f"failed {times} times: {reason}", markup=False)


@contextmanager
def item_progress(total: int) -> Iterator[Callable[[list[Outcome]], None]]:
    """A progress bar on standard error, with the accuracy so far of the system that comes last."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("parsing", total=total)

        def after(outcomes: list[Outcome]) -> None:
            right = count([record.right_within(1) for record in outcomes[-1].records])
            progress.update(task, advance=1, description=f"accuracy {right.value:.2f}")

        yield after
