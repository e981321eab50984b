"""Run an experiment on this machine: model by model, with the cells that share a prompt side by side."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from fewparse.evaluate.records import Records
from fewparse.evaluate.run import Listener, run_evaluation
from fewparse.evaluate.system import ParserSystem, Prediction, PromptPrefill, System
from fewparse.example import Example
from fewparse.experiment.folder import ALL_ITEMS, Shard, write_configuration
from fewparse.experiment.plan import Plan, PlannedCell
from fewparse.experiment.results import Results, read_results, record_files
from fewparse.lm.model import LanguageModel
from fewparse.parser import Parser

OpenModel = Callable[[str], AbstractContextManager[LanguageModel]]
"""Opens a model by name for a context."""


class CellSystem:
    """A cell as a system: its records are found by the settings in the manifest, before a model is opened."""

    def __init__(self, planned: PlannedCell, model: LanguageModel, prefill: PromptPrefill, trace: bool) -> None:
        parser = Parser(planned.domain, model, planned.options)
        self.name = planned.cell.id
        self.settings = dict(planned.entry.settings)
        self.max_concurrency = model.max_concurrency
        self._system = ParserSystem(self.name, parser, prefill, trace)

    def predict(self, item: Example, without: Sequence[Example]) -> Prediction:
        """Return the prediction of the parser."""
        return self._system.predict(item, without)


def run_experiment(
    plan: Plan,
    folder: Path,
    open_model: OpenModel,
    shard: Shard = ALL_ITEMS,
    extend: bool = False,
    listener: Listener = lambda progress: None,
) -> Results:
    """Run what is missing in a folder, and return all of its results.

    Records are appended as they come, so that an interrupted run continues where it ended; items that failed are
    tried again. Raises `ResultsError` if the folder has another configuration (with `extend`, cells and items may
    be added), or if another process writes to it; and the errors of `run_evaluation`.
    """
    with opened_records(plan, folder, shard, extend) as records:
        for model, cells in pending_cells(plan, records, shard):
            with open_model(model) as opened:
                run_cells(plan, cells, opened, records, shard, listener)
    return read_results(folder)


@contextmanager
def opened_records(plan: Plan, folder: Path, shard: Shard, extend: bool) -> Iterator[Records]:
    """Check or write the configuration of a folder, and yield its records, to which no other process may add."""
    write_configuration(folder, plan.manifest, plan.items, extend)
    records = Records(folder / shard.records_name, record_files(folder))
    with records.locked():
        yield records


def pending_cells(plan: Plan, records: Records, shard: Shard) -> Iterator[tuple[str, list[PlannedCell]]]:
    """Yield each model that has something to do, with its cells that have items without a record."""
    for model, cells in plan.by_model():
        if pending := [each for each in cells if missing(plan, each, records, shard)]:
            yield model, pending


def missing(plan: Plan, planned: PlannedCell, records: Records, shard: Shard) -> list[int]:
    """Return the indices of the items of a cell that have no record."""
    items = plan.items[planned.cell.domain]
    return [
        item.index for item in items if item.index in shard and not records.has((planned.settings_key, item.id))
    ]


def run_cells(
    plan: Plan,
    cells: Iterable[PlannedCell],
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
        prefill = PromptPrefill()
        systems: list[System] = [CellSystem(each, model, prefill, plan.table.trace) for each in group]
        items = [example for index, example in enumerate(plan.examples[name]) if index in shard]
        run_evaluation(group[0].domain, systems, items, plan.table.split, records, listener)
