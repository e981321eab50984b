"""`fewparse eval`: accuracy, cost and speed of a model on the held-out examples of a domain."""

import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

from fewparse.cli import options
from fewparse.cli.console import echo, err, named_model, opened_model, warn
from fewparse.cli.explain import usage_summary
from fewparse.cli.progress import counted
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
from fewparse.evaluate.gold_coverage import accepted_gold
from fewparse.evaluate.metrics import Judge, count
from fewparse.evaluate.plain_table import WIDTH
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
    SystemResult,
    check_not_tuned_on,
    every_decoder,
    load_split,
    parser_systems,
    run_evaluation,
)
from fewparse.evaluate.system import System
from fewparse.evaluate.wrong_items import judged_items, report_items
from fewparse.files import user_path
from fewparse.lm.load import EMBEDDED, NamedModel, with_adapter
from fewparse.lm.model import LanguageModel
from fewparse.options import Options, ParserOptions, prepare
from fewparse.text import to_json

Show = Literal["wrong", "all", "none"]
MAX_SHOWN = 20
"""So many wrong items are listed."""


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
    show: Annotated[
        Show,
        options.option(
            options.OUTPUT, "Items to list, with their gold and predicted programs: wrong | all | none."
        ),
    ] = "wrong",
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
    accepted = accepted_gold(loaded, resolved, items)
    judge = Judge(loaded)
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
        with item_progress(len(items), systems) as after:
            results = run_evaluation(loaded, [*simple, *systems], items, split, records, after)
        outside = loaded.out_of_scope(OUT_OF_SCOPE_TEST) if calibrated and split == TEST else ()
        if outside:
            with item_progress(len(outside), systems[:1]) as after:
                rejected = run_evaluation(loaded, systems[:1], outside, "out of scope", records, after)[0].records
    table = rows(results, systems[0].name)
    usage = total_usage(results)
    title = title_of(loaded, resolved, opened, ranking, f"{len(items)} {split} items", judge.criterion)
    title += "".join(f"; {note}" for note in (*loaded.data_notes, *notes_of(results, accepted)))
    judged = judged_items(items, results[len(simple)].records, accepted, judge.fails)
    hint = loaded.constraint_kind.wider([item.gold for item in judged if item.reason == "not reachable"])
    found: dict[str, object] = {"title": title, "criterion": judge.criterion}
    found |= {"gold_coverage": None if accepted is None else sum(accepted)}
    found |= {"rows": table, "usage": usage.as_dict()}
    found |= {"wrong_items": [item.as_dict() for item in judged if item.reason is not None]}
    section = ""
    if calibrated is not None:
        inside = judge_records(calibrated, results[len(simple)].records, resolved.max_risk)
        judged_outside = judge_records(calibrated, rejected, resolved.max_risk, False) if outside else []
        found["calibration"] = confidence = figures(inside, judged_outside, resolved.max_risk)
        section = f"\n{calibration_section(confidence)}"
        if folder:
            write_plots(folder, confidence)
    report = to_json(found, indent=1)
    if folder:
        pictures = f"\n![reliability]({RELIABILITY}) ![risk and coverage]({RISK_COVERAGE})\n" if section else ""
        listed = f"\n## Wrong items\n\n```text\n{report_items(judged, hint=hint)}\n```\n"
        write_report(folder, f"{report}\n", f"{title}\n\n{markdown(table)}{section}{pictures}{listed}")
    if as_json:
        echo(report)
    else:
        wrapped = textwrap.fill(title, WIDTH, break_long_words=False, break_on_hyphens=False)
        echo(f"{wrapped}\n\n{plain(table)}\n{section}".rstrip("\n"))
        if show != "none":
            echo(f"\n{report_items(judged, show == 'all', None if show == 'all' else MAX_SHOWN, hint)}")
    if not (opened.local or as_json):
        echo(f"\n{usage_summary(usage)}")
    for reason, times in failures(results).most_common():
        err.print(f"failed {times} times: {reason}", markup=False)


def title_of(
    domain: Domain, resolved: Options, model: LanguageModel, ranking: NamedModel | None, items: str, criterion: str
) -> str:
    """Return what was evaluated: items, model and adapter, examples, and how programs are compared."""
    name, adapter = model.name, resolved.adapter
    if adapter is not None:
        own = adapter.provenance
        tuned = "" if own is None else f" on {own.examples} examples"
        if own is not None and own.data_sha256 != domain.data_sha256(resolved.target):
            tuned += " other than the present ones"
        name = f"{name} tuned{tuned} ({adapter.path.name})"
    prompt = f"{len(domain.examples)} training examples, {resolved.examples} in the prompt"
    if resolved.examples:
        retrieval = resolved.retriever + (f" of {ranking.name}" if ranking else "")
        prompt += f" by {retrieval} ({resolved.order})"
    paper = "; paper mode" if resolved.search.paper else ""
    return f"{domain.name}: {items}, target {resolved.target}, {prompt}, {name}, compared by {criterion}{paper}"


def notes_of(results: Sequence[SystemResult], accepted: Sequence[bool] | None) -> Iterator[str]:
    """Yield what the title says about the items: gold outputs, dropped examples, failures."""
    if accepted is not None:
        yield f"the constraint accepts {sum(accepted)} of {len(accepted)} gold outputs"
    if shortened := sum(record.examples_dropped > 0 for record in results[-1].records):
        yield f"fewer examples on {shortened} items, where not all fit into the model's context"
    if failed := failed_items(results):
        yield f"{failed} items failed"


def used_calibration(domain: Domain, model: LanguageModel, resolved: Options) -> Calibration:
    """Return the calibration for these settings; raise `UsageError` if there is none."""
    found, note = find_calibration(domain, with_adapter(model, resolved.adapter), resolved)
    if found is None:
        message = note or f"the domain {domain.name} is not calibrated for the target {resolved.target}"
        raise UsageError(message, f"Calibrate it: fewparse calibrate {domain.argument}")
    return found


@contextmanager
def item_progress(total: int, systems: Sequence[System]) -> Iterator[Callable[[Progress], None]]:
    """Show how many items all systems have parsed, and the accuracy of the first parser so far."""
    with counted(total, "items") as report:
        accuracy = ""

        def after(progress: Progress) -> None:
            nonlocal accuracy
            name, records = progress.result.name, progress.result.records
            if name == systems[0].name:
                accuracy = f"accuracy {count([record.correct_within(1) for record in records]).value:.2f}"
            if name == systems[-1].name:  # the systems run one after another on each item
                report(len(records), accuracy)

        yield after
