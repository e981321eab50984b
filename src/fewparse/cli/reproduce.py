"""`fewparse reproduce`: the tables of the paper with any models, beside the figures of the paper."""

from datetime import date
from pathlib import Path
from typing import Annotated, Any

import typer

from fewparse.cli import backend, options
from fewparse.cli.console import echo
from fewparse.cli.experiment import given, run_table
from fewparse.domains.load import load_domain
from fewparse.errors import UnknownName, UsageError
from fewparse.evaluate.report import write_report
from fewparse.experiment import data_examples, paper_report
from fewparse.experiment.data_examples import DATA_EXAMPLES
from fewparse.experiment.folder import MANIFEST
from fewparse.experiment.grid import RemoteTable
from fewparse.experiment.paper_figures import Dataset
from fewparse.experiment.paper_tables import PAPER_DATASETS, PAPER_TABLES
from fewparse.experiment.reproduction import Reproduction
from fewparse.experiment.results import Results, read_results
from fewparse.files import exists, user_path
from fewparse.lm.load import EMBEDDED, model_choices
from fewparse.retrieve.retriever import RETRIEVERS
from fewparse.text import to_json

TABLES = (DATA_EXAMPLES, *PAPER_TABLES)
OUT = Path("experiments/paper")


def reproduce(
    table: Annotated[str, typer.Argument(help=f"Table of the paper: {' | '.join(TABLES)}.")],
    dataset: Annotated[
        list[str] | None,
        options.option(
            options.INPUT, f"Dataset, may be repeated: {' | '.join(PAPER_DATASETS)} (default: all of them)."
        ),
    ] = None,
    full: Annotated[
        bool | None,
        options.option(
            options.INPUT,
            "All items of the evaluation sets, or the first 100 of Overnight and 200 of SMCalFlow "
            "(default: as in the paper).",
            "--full/--subset",
        ),
    ] = None,
    limit: Annotated[
        int | None, options.option(options.INPUT, "Use only the first LIMIT items of each domain.", min=1)
    ] = None,
    data: options.Data = None,
    paper: Annotated[
        bool,
        options.option(
            options.DECODING,
            "Use the settings of the paper, or those of the domains without their adapters.",
            "--paper/--improved",
        ),
    ] = True,
    retriever: options.Retriever = None,
    retriever_model: Annotated[
        str | None,
        options.option(
            options.PROMPT, "Model for retrieval with all models; the paper used GPT-3.", metavar="MODEL"
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        options.option(
            options.MODEL, f"Language model, may be repeated: {' | '.join(model_choices())} (default: {EMBEDDED})."
        ),
    ] = None,
    base_url: options.BaseUrl = None,
    max_concurrency: options.MaxConcurrency = None,
    timeout: options.Timeout = None,
    deadline: options.Deadline = None,
    max_tokens_total: options.MaxTokensTotal = None,
    max_cost: options.MaxCost = None,
    cache: options.Cache = True,
    context_length: options.ContextLength = None,
    on: backend.On = backend.LOCAL,
    workers: backend.Workers = None,
    cpus_per_worker: backend.CpusPerWorker = 1,
    gpus_per_worker: backend.GpusPerWorker = 0,
    ray_address: backend.RayAddress = None,
    out: Annotated[
        Path,
        options.option(
            options.OUTPUT, "Folder of the results of all tables: what one has computed is not computed again."
        ),
    ] = OUT,
    run: Annotated[
        bool,
        options.option(
            options.OUTPUT, "Whether to run what is missing, or only print what is finished.", "--run/--no-run"
        ),
    ] = True,
    dry_run: Annotated[
        bool, options.option(options.OUTPUT, "Only say how much would be run, and roughly how long.", "--dry-run")
    ] = False,
    markdown: Annotated[
        bool, options.option(options.OUTPUT, "Print the table as Markdown, with 95% intervals.", "--markdown")
    ] = False,
    as_json: Annotated[
        bool, options.option(options.OUTPUT, "Print all figures as one JSON object.", "--json")
    ] = False,
) -> None:
    """Repeat a table of the paper with any models, and print it beside the figures of the paper.

    An interrupted run continues with the same command. At the end, the table is
    also written to the folder of the results, as JSON and as Markdown.
    """
    if table not in TABLES:
        raise UnknownName("table", table, TABLES)
    if markdown and as_json:
        raise UsageError("a table is printed in one format only", "Omit --markdown or --json.")
    datasets = chosen_datasets(dataset or [])
    ray = backend.chosen_backend(on, workers, cpus_per_worker, gpus_per_worker, ray_address)
    if table == DATA_EXAMPLES:
        examples = data_examples.data_examples(datasets, data)
        printed = data_examples.markdown(examples) if markdown else data_examples.plain(examples)
        echo(to_json(data_examples.as_json(examples), indent=1) if as_json else printed.rstrip())
        return
    connection: dict[str, Any] = {
        "base_url": base_url,
        "max_concurrency": max_concurrency,
        "timeout": timeout,
        "deadline": deadline,
        "max_tokens_total": max_tokens_total,
        "max_cost": max_cost,
        "context_length": context_length,
    }
    layout = PAPER_TABLES[table]
    reproduction = Reproduction(
        layout,
        tuple(dict.fromkeys(model or [EMBEDDED])),
        datasets,
        layout.items if full is None else "full" if full else "subset",
        limit,
        paper,
        None if retriever is None else RETRIEVERS.check(retriever),
        retriever_model,
        RemoteTable(cache=cache, **given(connection)),
    )
    experiments = reproduction.experiments()
    for domain in dict.fromkeys(cell.domain for each in experiments.values() for cell in each.cells() if run):
        load_domain(domain, data)  # an error if a dataset is missing, before anything runs
    folder = user_path(out)
    results: dict[Dataset, Results] = {}
    for name, experiment in experiments.items():
        of_dataset = folder / reproduction.folder_name(name)
        if dry_run:
            echo(f"{name}:")
            run_table(experiment, of_dataset, data=data, dry_run=True)
        elif run and (found := run_table(experiment, of_dataset, data=data, extend=True, report=False, ray=ray)):
            results[name] = found
        elif exists(of_dataset / MANIFEST):
            results[name] = read_results(of_dataset)
    if dry_run:
        return
    report = paper_report.make_report(reproduction, results, date.today().isoformat())
    figures, summary = to_json(paper_report.as_json(report), indent=1), paper_report.markdown(report)
    if run:
        write_report(folder, f"{figures}\n", summary, names=(f"{table}.json", f"{table}.md"))
    printed = summary.rstrip() if markdown else paper_report.plain(report)
    echo(figures if as_json else printed)


def chosen_datasets(names: list[str]) -> tuple[Dataset, ...]:
    """Return the datasets of these names in the order of the paper, all if there are none."""
    for name in names:
        if name not in PAPER_DATASETS:
            raise UnknownName("dataset of the paper", name, PAPER_DATASETS)
    return tuple(name for name in PAPER_DATASETS if name in names or not names)
