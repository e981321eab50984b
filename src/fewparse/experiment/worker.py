"""A worker of a distributed run: it runs slices of the cells of one model, and returns their records."""

import os
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from fewparse.errors import FewparseError, UsageError, listed
from fewparse.evaluate.metrics import Judge
from fewparse.evaluate.record_lines import Record
from fewparse.evaluate.run import excluded, judged, predict
from fewparse.evaluate.system import Prediction, PromptPrefill
from fewparse.example import Example
from fewparse.experiment.folder import CellEntry, changes_between
from fewparse.experiment.grid import Cell, ExperimentTable
from fewparse.experiment.plan import PlannedCell, plan_cell
from fewparse.experiment.run import CellSystem
from fewparse.lm.load import NamedModel, open_model
from fewparse.lm.model import LanguageModel

if TYPE_CHECKING:
    from fewparse.lm.http.load import RemoteSettings

SLICE_TASKS = 4
"""A slice has at least so many tasks, if there are enough: a lost worker loses little."""
MAX_SLICE_TASKS = 16
"""The cells that share the prompt of an item are in one slice, unless there are more than this."""


@dataclass(frozen=True)
class Job:
    """What the workers of one model need, as values that can be sent to another machine.

    `cells` have to be run by `model`, with `threads` threads if it runs in the process of the worker; those of a
    domain in `code_allowed` may run the code of its folder. `data` is the folder of datasets. Relative paths are
    relative to `folder`, if the worker has a folder of this name.
    """

    table: ExperimentTable
    model: str
    cells: tuple[CellEntry, ...]
    code_allowed: frozenset[str]
    threads: int
    folder: Path
    data: Path | None = None
    remote: "RemoteSettings | None" = None


class Task(NamedTuple):
    """A cell of the job, by its index, on an item of its domain, with the number of the item."""

    cell: int
    number: int
    item: Example


Slice = tuple[Task, ...]


class SliceResult(NamedTuple):
    """The outcomes of the tasks of a slice in order, and the error that ended it, if it was not finished."""

    outcomes: tuple[Record | FewparseError, ...]
    error: FewparseError | None = None


def slices_of(tasks_by_item: Iterable[Iterable[Task]]) -> Iterator[Slice]:
    """Divide tasks into slices; those of one item, which share its prompt, are given together."""
    current: list[Task] = []
    for tasks in tasks_by_item:
        for task in tasks:
            current.append(task)
            if len(current) >= MAX_SLICE_TASKS:
                yield tuple(current)
                current = []
        if len(current) >= SLICE_TASKS:
            yield tuple(current)
            current = []
    if current:
        yield tuple(current)


class Worker:
    """Runs slices with one model, which is opened once; several at the same time if the model allows it.

    Errors of fewparse are returned, not raised: their types and messages then arrive as they are.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._model: LanguageModel | None = None
        self._prefill = PromptPrefill()
        self._cells: dict[int, tuple[PlannedCell, CellSystem]] = {}
        self._judge: Judge | None = None
        self._lock = Lock()

    def open(self) -> int | FewparseError:
        """Open the model; return how many slices it can run at the same time."""
        job = self._job
        if job.folder.is_dir():
            os.chdir(job.folder)
        try:
            self._model = open_model(job.model, remote=job.remote, threads=job.threads)
        except FewparseError as error:
            return error
        return self._model.max_concurrency

    def run(self, tasks: Slice) -> SliceResult:
        """Run the tasks one after another."""
        outcomes: list[Record | FewparseError] = []
        try:
            for task in tasks:
                outcomes.append(self._run(task))
        except FewparseError as error:
            return SliceResult(tuple(outcomes), error)
        return SliceResult(tuple(outcomes))

    def _run(self, task: Task) -> Record | FewparseError:
        with self._lock:
            system, judge = self._system(task.cell)
        outcome = predict(system, task.item, excluded(task.item, self._job.table.split))
        if not isinstance(outcome, Prediction):
            return outcome
        with self._lock:
            return judged(outcome, task.item, judge)

    def _system(self, index: int) -> tuple[CellSystem, Judge]:
        """Return the system of a cell, and the judge of its domain; those of the previous domain are released."""
        entry = self._job.cells[index]
        others = [planned for planned, _ in self._cells.values()]
        if others and others[0].cell.domain != entry.options["domain"]:
            self._cells, self._judge, others = {}, None, []
        if index not in self._cells:
            planned = self._planned(entry, others)
            assert self._model is not None, "the model is opened first"
            name = planned.options.retriever_model
            own = name in (None, planned.cell.model)
            ranking = self._model if own or name is None else NamedModel(name, remote=self._job.remote)
            system = CellSystem(planned, self._model, ranking, self._prefill, self._job.table.trace)
            self._cells[index] = planned, system
        planned, system = self._cells[index]
        self._judge = self._judge or Judge(planned.domain)
        return system, self._judge

    def _planned(self, entry: CellEntry, others: Iterable[PlannedCell]) -> PlannedCell:
        """Load what a cell needs; raise `UsageError` if its files are not those of the manifest."""
        cell, job = Cell(entry.options), self._job
        planned = plan_cell(cell, job.table, job.data, cell.domain in job.code_allowed, job.remote, others)
        if changes := changes_between(entry.settings, planned.settings):
            raise UsageError(
                f"the worker on {socket.gethostname()} has other files than the experiment: {listed(changes, 4)}",
                "All machines need the same data, the same domain folders and the same version of fewparse.",
            )
        return planned
