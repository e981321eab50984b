"""`fewparse calibrate`: make the confidence of a domain's parses a probability."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from fewparse.cli import options
from fewparse.cli.console import echo, err, named_model, opened_model, out, warn
from fewparse.cli.progress import ProgressLines
from fewparse.cli.remote import remote_settings
from fewparse.cli.trust import code_allowed
from fewparse.confidence.assess import calibration_path
from fewparse.confidence.calibration import Calibration, read_calibrations, write_calibration
from fewparse.domains.domain import Domain
from fewparse.evaluate.records import Records
from fewparse.evaluate.run import Progress as ItemProgress
from fewparse.example import Target
from fewparse.files import cache_folder
from fewparse.lm.load import EMBEDDED
from fewparse.lm.model import LanguageModel
from fewparse.options import ParserOptions, prepare
from fewparse.text import to_json

CALIBRATION = "Calibration"
Folds = Annotated[
    int | None,
    options.option(
        CALIBRATION,
        "Parse each of FOLDS parts of the examples without them: with an adapter, by one tuned on the others "
        "(default: 4, if the adapter has learned all examples).",
        min=2,
        max=100,
    ),
]
Epochs = Annotated[
    int | None,
    options.option(CALIBRATION, "Epochs of the adapters of folds (default: those of the adapter).", min=1),
]
Negatives = Annotated[
    list[str] | None,
    options.option(
        CALIBRATION,
        "Domain whose utterances are out of scope, besides out_of_scope.jsonl; may be repeated "
        "(default: the other bundled domains).",
        metavar="DOMAIN",
    ),
]
MaxDeclined = Annotated[
    float, options.option(CALIBRATION, "Share of in-scope utterances that may be declined.", min=0, max=0.5)
]


def calibrate(
    domain: options.Domain,
    target: options.Target = None,
    pool: options.Pool = None,
    data: options.Data = None,
    allow_code: options.AllowCode = False,
    limit: Annotated[int | None, options.option(options.INPUT, "Parse only LIMIT examples.", min=1)] = None,
    folds: Folds = None,
    epochs: Epochs = None,
    negatives: Negatives = None,
    max_declined: MaxDeclined = 0.02,
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
    server_grammar: options.ServerGrammar = False,
    rerank: options.Rerank = None,
    vote: options.Vote = None,
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
    as_json: Annotated[
        bool, options.option(options.OUTPUT, "Print the calibration as one JSON object.", "--json")
    ] = False,
) -> None:
    """Calibrate the confidence of a domain: parse examples that the model has not learned, and fit on the results.

    Then parses have a confidence and a decision. Parses and adapters of folds
    are stored in the cache folder: the same command resumes an interrupted
    run. The test set is not used.
    """
    given: ParserOptions = {
        "target": target,
        "decoder": decoder,
        "width": width,
        "temperature": temperature,
        "max_tokens": max_tokens,
        "rounds": rounds,
        "margin": margin,
        "alternatives": alternatives,
        "free_back_off": free_back_off,
        "free_branching": free_branching,
        "forced_spans": forced_spans,
        "constrained": constrained,
        "server_grammar": server_grammar,
        "rerank": rerank,
        "vote": vote,
        "prompt": prompt,
        "description_lines": description_lines,
        "examples": examples,
        "retriever": retriever,
        "retriever_model": retriever_model,
        "order": order,
        "adapter": adapter,
    }
    allowed = code_allowed(domain, allow_code)
    loaded, resolved = prepare(
        domain,
        model,
        data=data,
        pool=pool,
        constraint=constraint,
        grammar=grammar,
        copy=copy,
        allow_code=allowed,
        **given,
    )
    loaded.require_code()
    read_calibrations(calibration_path(loaded))  # a damaged file is found before the work, not after it
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
    with opened_model(model, remote, max_concurrency) as opened, named_model(retriever_model, remote) as ranking:
        found = calibrated(
            loaded,
            resolved.target,
            opened,
            given,
            folds=folds,
            epochs=epochs,
            limit=limit,
            negatives=negatives or (),
            max_declined=max_declined,
            data=data,
            retriever_model=ranking,
        )
    if as_json:
        echo(to_json(found.model_dump(mode="json")))
    else:
        show(loaded, found)


def calibrated(
    domain: Domain, target: Target, model: LanguageModel, given: ParserOptions, **settings: object
) -> Calibration:
    """Calibrate with a progress display, and store the result; interrupted work is resumed."""
    from fewparse.calibrate.calibration import Plan, calibrate

    folder = cache_folder() / "calibration"
    records = Records(folder / f"{domain.name.replace('/', '-')}-{target}.jsonl")
    with records.locked(), progress_bar() as (report, after):
        for repair in records.repairs:
            warn(repair)
        plan = Plan(
            domain,
            model,
            target,
            given,
            folder,
            report=report,
            after=after,
            records=records,
            **settings,  # type: ignore[arg-type]
        )
        found = calibrate(plan)
    write_calibration(calibration_path(domain), found)
    return found


@contextmanager
def progress_bar() -> Iterator[tuple[Callable[[str], None], Callable[[ItemProgress], None]]]:
    """Show on standard error what is done; yield how it changes, and what is called after each parse."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task("preparing", total=None)
        current, lines = ["preparing"], ProgressLines()

        def report(text: str) -> None:
            current[0] = text
            bar.update(task, description=text)
            lines.show(text)

        def after(progress: ItemProgress) -> None:
            records = progress.result.records
            right = sum(record.correct_within(1) for record in records)
            text = f"{current[0]}: {right} of {len(records)} right"
            bar.update(task, description=text)
            lines.show(text)

        yield report, after


def show(domain: Domain, found: Calibration) -> None:
    """Print what a calibration was fitted on, and which part of the utterances is executed at some risks."""
    origin = found.origin
    out.print(
        f"{domain.name}, target {found.made_for.target}: {origin.right} of {origin.examples} examples right "
        f"({origin.method}), {origin.out_of_scope} utterances out of scope",
        markup=False,
    )
    for risk in (0.01, 0.02, 0.05, 0.1, 0.2):
        points = [point for point in found.risks if point.risk <= risk]
        shown = f"{points[-1].coverage:.0%} executed without a question" if points else "nothing is executed"
        out.print(f"  at most {risk:.0%} wrong: {shown}", style="dim", markup=False)
    out.print(f"  {calibration_path(domain)}", style="cyan", markup=False)
    if found.scope is None:
        warn(
            "no utterance is declined, because there are too few that are out of scope: write some into "
            f"{domain.data_file('out_of_scope.jsonl')}"
        )
