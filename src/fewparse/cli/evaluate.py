"""`fewparse eval`: accuracy, cost and speed of a model on the held-out examples of a domain."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from fewparse.cli import options
from fewparse.cli.console import echo, err, named_model, opened_model, warn
from fewparse.cli.explain import usage_summary
from fewparse.cli.remote import remote_settings
from fewparse.cli.trust import code_allowed
from fewparse.cli.warnings import warn_of_gaps
from fewparse.confidence.assess import find_calibration
from fewparse.confidence.calibration import Calibration
from fewparse.domains.domain import Domain
from fewparse.domains.examples import OUT_OF_SCOPE_TEST
from fewparse.errors import UsageError
from fewparse.evaluate.baselines import baselines
from fewparse.evaluate.calibration import figures, judge_records
from fewparse.evaluate.calibration import markdown as calibration_section
from fewparse.evaluate.calibration_plots import RELIABILITY, RISK_COVERAGE, write_plots
from fewparse.evaluate.gold_coverage import gold_coverage
from fewparse.evaluate.metrics import Judge, count
from fewparse.evaluate.records import Records
from fewparse.evaluate.report import (
    check_report,
    failed_items,
    failures,
    markdown,
    plain,
    rows,
    total_usage,
    write_report,
)
from fewparse.evaluate.run import (
    TEST,
    Progress,
    Split,
    check_not_tuned_on,
    every_decoder,
    load_split,
    parser_systems,
    run_evaluation,
)
from fewparse.files import user_path
from fewparse.lm.load import EMBEDDED, with_adapter
from fewparse.lm.model import LanguageModel
from fewparse.options import Options, ParserOptions, prepare
from fewparse.text import to_json


def evaluation(
    domain: options.Domain,
    split: Annotated[
        Split,
        options.option(
            options.INPUT,
            "Items to parse: `test` (held-out examples), `train` (training examples, each parsed without itself "
            "in the prompt), or the name of another .jsonl file of the domain's data.",
        ),
    ] = TEST,
    limit: Annotated[int | None, options.option(options.INPUT, "Use only the first LIMIT items.", min=1)] = None,
    target: options.Target = None,
    pool: options.Pool = None,
    data: options.Data = None,
    paper: options.Paper = None,
    allow_code: options.AllowCode = False,
    decoder: options.Decoder = None,
    width: options.Width = None,
    temperature: options.Temperature = None,
    max_tokens: options.MaxTokens = None,
    rounds: options.Rounds = None,
    margin: options.Margin = None,
    alternatives: options.Alternatives = None,
    free_back_off: options.FreeBackOff = None,
    free_branching: options.FreeBranching = None,
    forced_spans: options.ForcedSpans = None,
    constrained: options.Constrained = True,
    constraint: options.Constraint = None,
    grammar: options.Grammar = None,
    copy: options.Copy = None,
    isolate_grammar: options.IsolateGrammar = False,
    server_grammar: options.ServerGrammar = None,
    rerank: options.Rerank = None,
    vote: options.Vote = None,
    seed: options.Seed = None,
    prompt: options.Prompt = None,
    description_lines: options.DescriptionLines = None,
    examples: options.Examples = None,
    retriever: options.Retriever = None,
    retriever_model: options.RetrieverModel = None,
    order: options.Order = None,
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
    compare: Annotated[
        bool,
        options.option(options.OUTPUT, "Also evaluate every decoder, constrained and unconstrained.", "--compare"),
    ] = False,
    calibration: Annotated[
        bool,
        options.option(
            options.OUTPUT,
            "Also evaluate confidence and decisions, also on out-of-scope utterances (see `fewparse calibrate`).",
            "--calibration",
        ),
    ] = False,
    max_risk: options.MaxRisk = None,
    out: Annotated[
        Path | None,
        options.option(options.OUTPUT, "Folder for records and report; an interrupted run continues from it."),
    ] = None,
    as_json: Annotated[
        bool, options.option(options.OUTPUT, "Print all figures as one JSON object.", "--json")
    ] = False,
) -> None:
    """Evaluate a domain on held-out examples: accuracy, cost and speed, compared with baselines without a model.

    A program is correct if it has the same answer as the gold program or, in
    a domain without an executor, the same normal form or text. A program that
    fails to execute or has no normal form is wrong. A folder with code must be
    trusted (`fewparse trust`).
    """
    shared: ParserOptions = {
        "target": target,
        "max_tokens": max_tokens,
        "rounds": rounds,
        "margin": margin,
        "alternatives": alternatives,
        "free_back_off": free_back_off,
        "free_branching": free_branching,
        "forced_spans": forced_spans,
        "rerank": rerank,
        "vote": vote,
        "seed": seed,
        "prompt": prompt,
        "description_lines": description_lines,
        "examples": examples,
        "retriever": retriever,
        "retriever_model": retriever_model,
        "order": order,
        "adapter": adapter,
        "max_risk": max_risk,
    }
    decoding: ParserOptions = {
        "decoder": decoder,
        "width": width,
        "temperature": temperature,
        "constrained": constrained,
        "server_grammar": server_grammar,
    }
    given: ParserOptions = {**shared, **decoding}
    allowed = code_allowed(domain, allow_code)
    loaded, resolved = prepare(
        domain,
        model,
        data=data,
        pool=pool,
        constraint=constraint,
        grammar=grammar,
        copy=copy,
        isolate_grammar=isolate_grammar,
        allow_code=allowed,
        paper=paper,
        **given,
    )
    loaded.require_code()
    warn_of_gaps(loaded, resolved)
    items = load_split(loaded, split)[:limit]
    check_not_tuned_on(loaded, split, resolved.target, resolved.adapter)
    coverage = gold_coverage(loaded, resolved, items)
    criterion = Judge(loaded).criterion
    folder = user_path(out) if out else None
    records = Records(folder / "records.jsonl" if folder else None)
    if folder:
        check_report(folder)
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
    with (
        records.locked(),
        opened_model(model, remote, max_concurrency) as opened,
        named_model(retriever_model, remote) as ranking,
    ):
        for repair in records.repairs:
            warn(repair)
        simple = list(baselines(loaded, resolved.target, opened, resolved.search.seed))
        used = resolved.for_model(opened, loaded)
        if note := used.note_on(opened, resolved.search.decoder):
            warn(note)
        settings = {used.describe(): decoding} | (every_decoder(opened) if compare else {})
        chosen: dict[str, ParserOptions] = {name: {**shared, **own} for name, own in settings.items()}
        calibrated = used_calibration(loaded, opened, used) if calibration else None
        systems = parser_systems(loaded, opened, chosen, ranking, features=calibration)
        with item_progress(len(items) * (len(simple) + len(systems)), systems[-1].name) as after:
            results = run_evaluation(loaded, [*simple, *systems], items, split, records, after)
        outside = loaded.out_of_scope(OUT_OF_SCOPE_TEST) if calibrated and split == TEST else ()
        if outside:
            with item_progress(len(outside), "") as after:
                rejected = run_evaluation(loaded, systems[:1], outside, "out of scope", records, after)[0].records
    table = rows(results, systems[0].name)
    retrieval = resolved.retriever + (f" of {ranking.name}" if ranking else "")
    title = (
        f"{loaded.name}: {len(items)} {split} items, target {resolved.target}, "
        f"{len(loaded.examples)} training examples, {resolved.examples} in the prompt by {retrieval} "
        f"({resolved.order}), {opened.name}, compared by {criterion}"
    )
    if resolved.search.paper:
        title += "; paper mode"
    title += "".join(f"; {note}" for note in loaded.data_notes)
    if coverage is not None:
        title += f"; the constraint accepts {coverage.correct} of {coverage.items} gold outputs"
    if shortened := sum(record.examples_dropped > 0 for record in results[-1].records):
        title += f"; fewer examples on {shortened} items, where not all fit into the model's context"
    if failed := failed_items(results):
        title += f"; {failed} items failed"
    accepted = None if coverage is None else coverage.correct
    usage = total_usage(results)
    found: dict[str, object] = {"title": title, "criterion": criterion, "gold_coverage": accepted}
    found |= {"rows": table, "usage": usage.as_dict()}
    section = ""
    if calibrated is not None:
        judged = judge_records(calibrated, results[len(simple)].records, resolved.max_risk)
        judged_outside = judge_records(calibrated, rejected, resolved.max_risk, False) if outside else []
        found["calibration"] = confidence = figures(judged, judged_outside, resolved.max_risk)
        section = f"\n{calibration_section(confidence)}"
        if folder:
            write_plots(folder, confidence)
    report = to_json(found, indent=1)
    if folder:
        pictures = f"\n![reliability]({RELIABILITY}) ![risk and coverage]({RISK_COVERAGE})\n" if section else ""
        write_report(folder, f"{report}\n", f"{title}\n\n{markdown(table)}{section}{pictures}")
    echo(report if as_json else f"{title}\n\n{plain(table)}\n{section}".rstrip("\n"))
    if not (opened.local or as_json):
        echo(f"\n{usage_summary(usage)}")
    for reason, times in failures(results).most_common():
        err.print(f"failed {times} times: {reason}", markup=False)


def used_calibration(domain: Domain, model: LanguageModel, resolved: Options) -> Calibration:
    """Return the calibration for these settings; raise `UsageError` if there is none."""
    found, note = find_calibration(domain, with_adapter(model, resolved.adapter), resolved)
    if found is None:
        message = note or f"the domain {domain.name} is not calibrated for the target {resolved.target}"
        raise UsageError(message, f"Calibrate it: fewparse calibrate {domain.argument}")
    return found


@contextmanager
def item_progress(total: int, shown: str) -> Iterator[Callable[[Progress], None]]:
    """Show a progress bar on standard error, with the accuracy so far of the system of this name."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task("parsing", total=total)

        def after(progress: Progress) -> None:
            bar.advance(task)
            if progress.result.name == shown:
                correct = count([record.correct_within(1) for record in progress.result.records])
                bar.update(task, description=f"accuracy {correct.value:.2f}")

        yield after
