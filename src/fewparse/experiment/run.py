"""Run an experiment on this machine: model by model, with the cells that share a prompt side by side."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

from fewparse.errors import UsageError
from fewparse.evaluate.records import Records
from fewparse.evaluate.run import Listener, run_evaluation
from fewparse.evaluate.system import ParserSystem, Prediction, PromptPrefill, System
from fewparse.example import Example
from fewparse.experiment.folder import ALL_ITEMS, Shard, write_configuration
from fewparse.experiment.plan import Plan, PlannedCell
from fewparse.experiment.results import Results, read_results, record_files
from fewparse.lm.load import NamedModel, model_identity, open_model
from fewparse.lm.model import LanguageModel
from fewparse.options import Options
from fewparse.parser import Parser
from fewparse.retrieve.lm import prepare_similarity

OpenModel = Callable[[str], AbstractContextManager[LanguageModel]]
"""Opens a model by name for a context."""
SimilarityProgress = Callable[[int, int], None]
"""Called with the number of pairs of utterances that the retriever `lm` has scored, and of all pairs."""


class CellSystem:
    """A cell as a system: its records are found by the settings in the manifest, before a model is opened."""

    def __init__(
        self,
        planned: PlannedCell,
        model: LanguageModel,
        retriever_model: LanguageModel | NamedModel,
        prefill: PromptPrefill,
        trace: bool,
    ) -> None:
        parser = Parser(planned.domain, model, planned.options, retriever_model=retriever_model)
        check_served(parser.options, planned.options, model)
        self.name = planned.cell.id
        self.settings = dict(planned.entry.settings)
        self.max_concurrency = model.max_concurrency
        self._system = ParserSystem(self.name, parser, prefill, trace)

    def predict(self, item: Example, without: Sequence[Example]) -> Prediction:
        """Return the prediction of the parser."""
        return self._system.predict(item, without)


def check_served(served: Options, planned: Options, model: LanguageModel) -> None:
    """Raise `UsageError` if a model cannot serve the options of a cell as they are planned."""
    if note := served.note_on(model, planned.search.decoder):
        raise UsageError(note, f'Set decoder = "{served.search.decoder}" for the cells of this model.')
    if served.server_grammar and planned.server_grammar is None:
        message = f"{model.name} reports no log-probabilities: whether its server gets the grammar must be planned"
        raise UsageError(message, "Set server_grammar to true or false for the cells of this model.")


def run_experiment(
    plan: Plan,
    folder: Path,
    open_model: OpenModel | None = None,
    shard: Shard = ALL_ITEMS,
    extend: bool = False,
    listener: Listener = lambda progress: None,
    on_warning: Callable[[str], None] = lambda message: None,
    similarity_progress: SimilarityProgress = lambda done, total: None,
) -> Results:
    """Run what is missing in a folder, and return all of its results.

    Records are appended as they come, so that an interrupted run continues where it ended; items that failed are
    tried again. With `extend`, the cells of the folder and of the plan are joined. Raises `ResultsError` if the
    folder has another configuration or another process writes to it, and the errors of `run_evaluation`.
    """
    with opened_records(plan, folder, shard, extend, on_warning) as records:
        for name, cells in pending_cells(plan, records, shard):
            prepare_retrieval(plan, cells, name, None, shard, similarity_progress)
            with (open_model or opener(plan))(name) as model:
                prepare_retrieval(plan, cells, name, model, shard, similarity_progress)
                run_cells(plan, cells, model, records, shard, listener)
    return read_results(folder)


@contextmanager
def opened_records(
    plan: Plan, folder: Path, shard: Shard, extend: bool, on_warning: Callable[[str], None]
) -> Iterator[Records]:
    """Check or write the configuration of a folder, and yield its records, to which no other process may add."""
    write_configuration(folder, plan.manifest, plan.items, extend)
    records = Records(folder / shard.records_name, record_files(folder))
    with records.locked():
        for repair in records.repairs:
            on_warning(repair)
        yield records


def pending_cells(plan: Plan, records: Records, shard: Shard) -> Iterator[tuple[str, list[PlannedCell]]]:
    """Yield each model that has something to do, with its cells that have items without a record."""
    for model, cells in plan.by_model():
        if pending := [each for each in cells if missing(plan, each, records, shard)]:
            yield model, pending


def opener(plan: Plan) -> OpenModel:
    """Return how to open the models of a plan."""
    return lambda name: closing(open_model(name, remote=plan.remote))


def missing(plan: Plan, planned: PlannedCell, records: Records, shard: Shard) -> list[int]:
    """Return the indices of the items of a cell that have no record."""
    items = plan.items[planned.cell.domain]
    return [
        item.index for item in items if item.index in shard and not records.has((planned.settings_key, item.id))
    ]


def prepare_retrieval(
    plan: Plan,
    cells: Sequence[PlannedCell],
    name: str,
    model: LanguageModel | None,
    shard: Shard,
    progress: SimilarityProgress,
) -> None:
    """Compute the similarities of all items of cells with the retriever `lm`, which is faster than one by one.

    Without `model`, the opened model of that name, those by other models are computed: these are opened one after
    another and closed, so that two models are never in memory.
    """
    for ranking, pool, utterances in similarities(plan, cells, name, shard):
        other = ranking != name
        if other != (model is None) or (model is not None and model_identity(model) is None):
            continue
        prepare_similarity(pool, model or ranking, utterances, progress=progress, remote=plan.remote)


def similarities(
    plan: Plan, cells: Sequence[PlannedCell], name: str, shard: Shard
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield what the retriever `lm` needs for cells of the model `name`: a model's name, a pool, utterances."""
    done: set[object] = set()
    for planned in cells:
        options = planned.options
        key = (planned.cell.domain, options.target, planned.entry.pool, options.retriever_model)
        if options.retriever == "lm" and options.examples and key not in done:
            done.add(key)
            pool = [example.utterance for example in planned.domain.examples]
            utterances = [e.utterance for i, e in enumerate(plan.examples[planned.cell.domain]) if i in shard]
            yield options.retriever_model or name, pool, utterances


def run_cells(
    plan: Plan,
    cells: Sequence[PlannedCell],
    model: LanguageModel,
    records: Records,
    shard: Shard,
    listener: Listener,
) -> None:
    """Run the cells of one model, domain by domain; each item is parsed by all cells before the next."""
    by_domain: dict[str, list[PlannedCell]] = {}
    for planned in cells:
        by_domain.setdefault(planned.cell.domain, []).append(planned)
    for name, group in by_domain.items():
        items = [example for index, example in enumerate(plan.examples[name]) if index in shard]
        with cell_systems(plan, group, model) as systems:
            run_evaluation(group[0].domain, systems, items, plan.table.split, records, listener)


@contextmanager
def cell_systems(plan: Plan, cells: Sequence[PlannedCell], model: LanguageModel) -> Iterator[list[System]]:
    """Yield the cells as systems; other models for retrieval are opened when a similarity is missing."""
    prefill, trace = PromptPrefill(), plan.table.trace
    names = {each.options.retriever_model for each in cells} - {None, cells[0].cell.model}
    others = {name: NamedModel(name, remote=plan.remote) for name in names if name is not None}
    try:
        yield [
            CellSystem(each, model, others.get(each.options.retriever_model or "", model), prefill, trace)
            for each in cells
        ]
    finally:
        for other in others.values():
            other.close()
