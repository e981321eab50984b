"""Run an experiment on Ray: each worker is an actor with its own model, and this process writes all records."""

import os
import socket
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from fewparse.errors import ClusterError, FewparseError, UsageError
from fewparse.evaluate.run import ABORT_AFTER, Listener, Recorder
from fewparse.experiment.folder import ALL_ITEMS, Shard
from fewparse.experiment.plan import Plan, PlannedCell
from fewparse.experiment.results import Results, read_results
from fewparse.experiment.run import SimilarityProgress, opened_records, pending_cells, similarities
from fewparse.experiment.worker import Job, Slice, SliceResult, Task, Worker, slices_of
from fewparse.lm.load import NamedModel, kind_of
from fewparse.lm.local import usable_cores
from fewparse.lm.response_cache import warn
from fewparse.retrieve.lm import prepare_similarity

ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",  # no telemetry
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # otherwise a warning about GPUs
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # otherwise `uv run` copies the working folder
}
LOCAL = "local"
"""The address for starting Ray on this machine."""
OBJECT_STORE_BYTES = 100 << 20
"""The shared memory of Ray on this machine; records are small."""
MAX_ATTEMPTS = 3
"""How often a slice, or the start of a worker, is tried before the run is aborted."""
START_SECONDS = 600.0
"""The longest wait for a worker when none is running; a cluster may have to start a node for it."""
MAX_THREADS = 64
"""The largest number of slices that one worker runs at the same time, with a model behind a server."""
CONNECT_SECONDS = 10.0
REASON_LENGTH = 200
LOGS = "Ray's logs are in /tmp/ray/session_latest/logs. Finished items are stored; the same command continues."


def run_on_ray(
    plan: Plan,
    folder: Path,
    shard: Shard = ALL_ITEMS,
    extend: bool = False,
    listener: Listener = lambda progress: None,
    on_warning: Callable[[str], None] = lambda message: None,
    similarity_progress: SimilarityProgress = lambda done, total: None,
    *,
    data: Path | None = None,
    address: str | None = None,
    workers: int | None = None,
    cpus_per_worker: int = 1,
    gpus_per_worker: float = 0,
) -> Results:
    """Run what is missing in a folder with workers of Ray, and return all of its results; see `run_experiment`.

    `data` is the folder of datasets that the plan was made with. All workers share a model behind a server.
    Without `address` or `RAY_ADDRESS`, Ray is started on this machine. There are as many workers as the cluster
    has room for, unless `workers` is given; a model in the process of a worker has `cpus_per_worker` threads. A
    slice whose worker ended is given to another one.

    Raises `UsageError` if Ray is not installed or no worker can be placed, `ClusterError` if Ray cannot be reached
    or workers end repeatedly, and the errors of `run_experiment`.
    """
    if cpus_per_worker < 1 or (workers is not None and workers < 1):
        raise UsageError("a run needs at least one worker, and a worker at least one CPU")
    with opened_records(plan, folder, shard, extend, on_warning) as records:
        pending = list(pending_cells(plan, records, shard))
        if not pending:
            return read_results(folder)
        address = address or os.environ.get("RAY_ADDRESS") or LOCAL
        if address == LOCAL:  # workers on other machines have similarities of their own
            prepare_similarities(plan, pending, shard, similarity_progress)
        with connected(address) as ray:
            room = room_for_workers(ray, workers, cpus_per_worker, may_grow=address != LOCAL)
            for model, cells in pending:
                kind = kind_of(model)
                shared = plan.remote if kind is not None and kind.remote else None
                count = min(room, shared.max_concurrency or room) if shared is not None else room
                job = Job(
                    table=plan.table,
                    model=model,
                    cells=tuple(planned.entry for planned in cells),
                    code_allowed=frozenset(each.cell.domain for each in cells if each.domain.allow_code),
                    threads=cpus_per_worker,
                    folder=Path.cwd(),
                    data=data and data.absolute(),
                    remote=plan.remote and replace(plan.remote, on_warning=warn, processes=count),
                )
                recorder = Recorder(cells, plan.table.split, records, listener, ABORT_AFTER * count)
                slices = slices_of(missing_tasks(plan, cells, recorder, shard))
                queue = SliceQueue(ray, job, slices, recorder)
                queue.run(
                    count,
                    num_cpus=cpus_per_worker,
                    num_gpus=gpus_per_worker,
                    max_concurrency=1 if shared is None else MAX_THREADS,
                )
    return read_results(folder)


def prepare_similarities(
    plan: Plan, pending: Iterable[tuple[str, list[PlannedCell]]], shard: Shard, progress: SimilarityProgress
) -> None:
    """Store the similarities of all items in this process, with all cores, before the workers need them."""
    for model, cells in pending:
        for ranking, pool, utterances in similarities(plan, cells, model, shard):
            if NamedModel(ranking, remote=plan.remote).identity is not None:
                prepare_similarity(pool, ranking, utterances, progress=progress, remote=plan.remote)


def missing_tasks(
    plan: Plan, cells: Iterable[PlannedCell], recorder: Recorder, shard: Shard
) -> Iterator[list[Task]]:
    """Yield the tasks without a record, those of cells that share the prompt of an item together.

    The records that exist are passed to the recorder.
    """
    numbered = enumerate(cells)
    for (domain, *_), group in groupby(numbered, lambda each: (each[1].cell.domain, *each[1].prompt_key)):
        indices = [index for index, _ in group]
        for number, item in enumerate(plan.examples[domain]):
            if number not in shard:
                continue
            tasks = []
            for index in indices:
                if (found := recorder.find(index, item)) is not None:
                    recorder.add(index, number, item, found, new=False)
                else:
                    tasks.append(Task(index, number, item))
            yield tasks


class SliceQueue:
    """Gives slices to workers, and adds what they return to the records.

    A worker that ended is replaced, and its slices are given to others; nothing of them was recorded.
    """

    def __init__(self, ray: Any, job: Job, slices: Iterable[Slice], recorder: Recorder) -> None:
        self._ray = ray
        self._job = job
        self._waiting = deque(slices)
        self._recorder = recorder
        self._running: dict[Any, tuple[Any, Slice | None]] = {}  # by the reference to the result; None: opening
        self._workers: set[Any] = set()
        self._attempts: Counter[Slice | None] = Counter()

    def run(self, workers: int, **options: Any) -> None:
        """Run all slices with at most so many workers; `options` are those of Ray's actors."""
        actor = self._ray.remote(Worker).options(max_restarts=0, max_task_retries=0, **options)
        try:
            for _ in range(min(workers, len(self._waiting))):
                self._start(actor)
            while self._waiting or any(tasks is not None for _, tasks in self._running.values()):
                ready, _ = self._ray.wait(list(self._running), timeout=START_SECONDS)
                if ready:
                    self._receive(ready[0], actor)
                elif all(tasks is None for _, tasks in self._running.values()):
                    raise ClusterError(
                        f"no worker has started within {START_SECONDS:.0f} seconds",
                        "The cluster may have no node with enough free CPUs or GPUs: ray status",
                    )
        finally:
            for worker in self._workers:
                self._ray.kill(worker)

    def _start(self, actor: Any) -> None:
        worker = actor.remote(self._job)
        self._workers.add(worker)
        self._running[worker.open.remote()] = worker, None

    def _receive(self, reference: Any, actor: Any) -> None:
        """Add what a worker returned, and give it more to do; replace a worker that has ended."""
        worker, tasks = self._running.pop(reference)
        errors = self._ray.exceptions
        try:
            result = self._ray.get(reference)
        except errors.RayTaskError:
            raise  # a defect in a worker
        except errors.RayError as error:
            self._retry(tasks, error)
            if worker in self._workers:
                self._workers.remove(worker)
                self._ray.kill(worker)
                self._start(actor)
            return
        if isinstance(result, FewparseError):
            raise result
        if isinstance(result, SliceResult):
            assert tasks is not None
            for task, outcome in zip(tasks, result.outcomes, strict=False):
                self._recorder.add(task.cell, task.number, task.item, outcome, new=True)
            if result.error is not None:
                raise result.error
        else:
            self._attempts[None] = 0
        for _ in range(min(1 if tasks is not None else result, len(self._waiting), MAX_THREADS)):
            following = self._waiting.popleft()
            self._running[worker.run.remote(following)] = worker, following

    def _retry(self, tasks: Slice | None, error: Exception) -> None:
        """Put a slice back that a worker has lost; raise `ClusterError` after `MAX_ATTEMPTS`."""
        self._attempts[tasks] += 1
        if self._attempts[tasks] >= MAX_ATTEMPTS:
            what = f"a worker has ended {MAX_ATTEMPTS} times"
            during = " at its start" if tasks is None else f" while parsing {tasks[0].item.utterance!r}"
            reason = str(error).strip().rpartition("\n")[2][:REASON_LENGTH]  # above it, there may be a traceback
            raise ClusterError(f"{what}{during}: {reason}", f"It may need more memory. {LOGS}")
        if tasks is not None:
            self._waiting.appendleft(tasks)


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Yield the module `ray`, connected to a cluster or to one that is started on this machine.

    Instead of starting one, a connection that exists in this process is used. Others are closed at the end.
    """
    os.environ.update(ENVIRONMENT)
    try:
        import ray
    except ImportError:
        raise UsageError("Ray is not installed", "pip install 'fewparse[ray]'") from None
    if address == LOCAL and ray.is_initialized():
        yield ray
        return
    local = {"include_dashboard": False, "num_cpus": usable_cores(), "object_store_memory": OBJECT_STORE_BYTES}
    try:
        check_reachable(address)
        ray.init(address, log_to_driver=False, logging_level="ERROR", **(local if address == LOCAL else {}))
    except (ConnectionError, ImportError, OSError, RuntimeError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0][:REASON_LENGTH]
        raise ClusterError(
            f"cannot connect to Ray at {address}: {reason}", "Is it running? ray status --address ADDRESS"
        ) from None
    try:
        yield ray
    finally:
        ray.shutdown()


def check_reachable(address: str) -> None:
    """Raise `OSError` if nothing listens at an address with a port; Ray would try for minutes."""
    host, _, port = address.rpartition("/")[2].rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()


def room_for_workers(ray: Any, workers: int | None, cpus_per_worker: int, may_grow: bool) -> int:
    """Return the number of workers: as requested, or as many as there are CPUs for.

    Raises `UsageError` if there is not enough room, unless nodes may be added to the cluster.
    """
    cpus = [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
    room = sum(each // cpus_per_worker for each in cpus)
    if (workers or 1) > room and not (workers and may_grow):
        raise UsageError(
            f"there is room for {room} workers: {sum(cpus)} CPUs, and a worker has {cpus_per_worker}",
            "Use fewer (--workers, --cpus-per-worker). A cluster that starts nodes on demand needs --workers.",
        )
    return workers or room
