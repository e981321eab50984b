"""Experiments on Ray: the same results as on this machine, whatever happens to workers and to the driver."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from fewparse import BudgetLimits, FewparseError, LanguageModel, RemoteSettings, open_model
from fewparse.errors import ClusterError, UsageError
from fewparse.evaluate.record_lines import Record
from fewparse.evaluate.records import Records
from fewparse.evaluate.run import Progress, Recorder
from fewparse.example import Example
from fewparse.experiment import ray_backend
from fewparse.experiment.folder import ALL_ITEMS, RECORDS, Shard
from fewparse.experiment.grid import ExperimentTable
from fewparse.experiment.plan import Plan, make_plan
from fewparse.experiment.ray_backend import missing_tasks, room_for_workers, run_on_ray
from fewparse.experiment.results import Results
from fewparse.experiment.run import run_experiment
from fewparse.experiment.worker import MAX_SLICE_TASKS, SLICE_TASKS, Job, Slice, Task, Worker, slices_of
from fewparse.lm.load import NamedModel
from fewparse.retrieve.similarity_store import SimilarityStore
from support.domain_files import to_json_lines
from support.dying_worker import DyingWorker
from support.extras import need_ray
from support.lamp_domain import OUTPUTS, canonical, make_lamps, words
from support.loopback import unused_address
from support.toy_server import ToyServer

GRID = {"decoder": ["greedy", "beam"], "width": 2, "examples": [1, 2]}
RECORD_COUNT = 4 * len(OUTPUTS)
COSTS = {"usage", "seconds", "prompt_seconds"}

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # Ray leaves log files and processes open


@pytest.fixture(scope="module")
def lamps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The domain of lamps with a test item for each of its programs."""
    folder = make_lamps(tmp_path_factory.mktemp("lamps")).folder
    items = [{"utterance": f"i want it {words(p)}", "program": p, "canonical": canonical(p)} for p in OUTPUTS]
    (folder / "test.jsonl").write_text(to_json_lines(items))
    return folder


@pytest.fixture(scope="module")
def plan(lamps: Path) -> Plan:
    return plan_of(lamps)


@pytest.fixture(scope="module")
def local_results(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The predictions of a run in this process, with as many threads as a worker has."""

    @contextmanager
    def one_thread(name: str) -> Iterator[LanguageModel]:
        with closing(open_model(name, threads=1)) as model:
            yield model

    return predictions(run_experiment(plan, tmp_path_factory.mktemp("local"), one_thread))


@pytest.fixture(scope="module")
def ray_session() -> Iterator[Any]:
    """Ray on this machine with two CPUs, even if the tests may use only one core."""
    need_ray()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ray_backend, "usable_cores", lambda: 2)
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[1]), prepend=os.pathsep)  # for tests/support
        with ray_backend.connected(ray_backend.LOCAL) as ray:
            yield ray


def plan_of(domain: Path, **grid: Any) -> Plan:
    return make_plan(ExperimentTable.model_validate({"grid": [{"domain": str(domain), **GRID, **grid}]}))


def test_similarities_are_stored_before_workers_need_them(lamps: Path, isolated_cache: Path) -> None:
    plan = plan_of(lamps, retriever="lm")
    ray_backend.prepare_similarities(plan, plan.by_model(), ALL_ITEMS, lambda done, total: None)
    pool = [example.utterance for example in plan.cells[0].domain.examples]
    store = SimilarityStore(NamedModel("embedded").identity, pool)
    items = plan.examples[str(lamps)]
    assert items
    assert all(store.get(item.utterance) is not None for item in items)


def predictions(results: Results) -> list[Any]:
    """All records without times, in the order of cells and items; each must be there."""
    found = []
    for cell in results.cell_results:
        for record in cell.records:
            assert record is not None
            found.append({name: value for name, value in asdict(record).items() if name not in COSTS})
    return found


def test_two_workers_give_the_same_predictions_as_a_local_run(
    ray_session: Any, plan: Plan, local_results: list[Any], tmp_path: Path
) -> None:
    seen: list[Progress] = []
    assert predictions(run_on_ray(plan, tmp_path, listener=seen.append, workers=2)) == local_results
    assert len(seen) == RECORD_COUNT == len((tmp_path / RECORDS).read_text().splitlines())


def test_the_slices_of_a_killed_worker_are_run_by_others(
    ray_session: Any, plan: Plan, local_results: list[Any], tmp_path: Path
) -> None:
    killed: list[int] = []

    def kill_all_once(progress: Progress) -> None:
        if not killed:
            killed.extend(worker_processes())
            for process in killed:
                os.kill(process, signal.SIGKILL)

    results = run_on_ray(plan, tmp_path, listener=kill_all_once, workers=2)
    assert killed
    assert predictions(results) == local_results
    assert len((tmp_path / RECORDS).read_text().splitlines()) == RECORD_COUNT


def worker_processes() -> list[int]:
    """The processes of the workers whose Ray this process has started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cmdline").read_bytes().startswith(b"ray::Worker") and os.getpid() in ancestors(folder):
                found.append(int(folder.name))
        except OSError:  # it has ended
            continue
    return found


def ancestors(folder: Path) -> Iterator[int]:
    while (parent := int((folder / "stat").read_text().rpartition(")")[2].split()[1])) > 1:
        yield parent
        folder = Path("/proc") / str(parent)


DRIVER = """
import sys, time
from pathlib import Path
from fewparse.experiment.grid import ExperimentTable
from fewparse.experiment.plan import make_plan
from fewparse.experiment.ray_backend import run_on_ray
table = ExperimentTable.model_validate_json(sys.argv[1])
run_on_ray(make_plan(table), Path(sys.argv[2]), listener=lambda _: time.sleep(600), address=sys.argv[3])
"""


def test_a_run_whose_driver_was_killed_continues(
    ray_session: Any, plan: Plan, local_results: list[Any], tmp_path: Path
) -> None:
    address = ray_session.get_runtime_context().gcs_address
    arguments = [plan.table.model_dump_json(exclude_unset=True, by_alias=True), str(tmp_path), address]
    records = tmp_path / RECORDS
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, *arguments])
    try:
        while not (records.exists() and records.stat().st_size):
            assert driver.poll() is None
            time.sleep(0.05)
    finally:
        driver.kill()
        driver.wait()
    first = records.read_text()
    assert predictions(run_on_ray(plan, tmp_path, workers=2)) == local_results
    assert records.read_text().startswith(first)
    assert len(records.read_text().splitlines()) == RECORD_COUNT
    assert predictions(run_on_ray(plan, tmp_path, address="nowhere:1")) == local_results  # nothing is left to run


def test_items_on_which_workers_always_end_are_an_error(
    ray_session: Any, plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_backend, "Worker", DyingWorker)
    with pytest.raises(ClusterError, match="ended 3 times while parsing 'i want it on lamp'"):
        run_on_ray(plan, tmp_path, workers=1)
    assert not (tmp_path / RECORDS).read_text()


def test_errors_of_a_worker_have_their_own_message(ray_session: Any, lamps: Path, tmp_path: Path) -> None:
    (tmp_path / "damaged.gguf").write_bytes(b"not a model")
    damaged = f"gguf:{tmp_path / 'damaged.gguf'}"
    with pytest.raises(FewparseError) as here:
        open_model(damaged)
    with pytest.raises(FewparseError) as there:
        run_on_ray(plan_of(lamps, model=damaged), tmp_path, workers=1)
    assert type(there.value) is type(here.value)
    assert str(there.value) == str(here.value)


def test_a_worker_with_other_data_is_an_error(ray_session: Any, tmp_path: Path) -> None:
    folder = make_lamps(tmp_path / "lamps").folder
    plan = plan_of(folder)
    with (folder / "examples.jsonl").open("a") as examples:
        examples.write('{"utterance": "more", "program": "(on fan)", "canonical": "switch on fan"}\n')
    with pytest.raises(UsageError, match=r"has other files than the experiment: .*examples\.jsonl"):
        run_on_ray(plan, tmp_path / "out", workers=1)


@pytest.mark.parametrize(
    ("workers", "cpus", "may_grow", "room"),
    [(None, 1, False, 2), (1, 2, False, 1), (9, 1, True, 9), (5, 4, True, 5)],
)
def test_there_are_as_many_workers_as_cpus_unless_a_number_is_given(
    ray_session: Any, workers: int | None, cpus: int, may_grow: bool, room: int
) -> None:
    assert room_for_workers(ray_session, workers, cpus, may_grow) == room


@pytest.mark.parametrize(("workers", "cpus", "may_grow"), [(3, 1, False), (None, 3, True), (1, 3, False)])
def test_more_workers_than_cpus_are_an_error(
    ray_session: Any, workers: int | None, cpus: int, may_grow: bool
) -> None:
    with pytest.raises(UsageError, match=f"room for {2 // cpus} workers: 2 CPUs, and a worker has {cpus}"):
        room_for_workers(ray_session, workers, cpus, may_grow)


def test_without_ray_the_package_to_install_is_named(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError) as caught:
        run_on_ray(plan, tmp_path)
    assert caught.value.hint == "pip install 'fewparse[ray]'"


def test_an_address_without_ray_is_an_error(tmp_path: Path, plan: Plan) -> None:
    need_ray()
    address = unused_address().removeprefix("http://").removesuffix("/v1")
    with pytest.raises(ClusterError, match=f"cannot connect to Ray at {address}: .*refused"):
        run_on_ray(plan, tmp_path, address=address)


def test_workers_divide_the_concurrency_of_a_server(lamps: Path, isolated_cache: Path) -> None:
    with ToyServer() as server:
        table = plan_of(lamps).table
        for processes, expected in [(1, 6), (2, 3), (4, 1), (9, 1)]:
            remote = RemoteSettings(base_url=server.url, max_concurrency=6, processes=processes)
            job = Job(table, "openai:toy", (), frozenset(), 1, Path.cwd(), remote=remote)
            assert Worker(job).open() == expected


def test_workers_divide_the_budget_of_a_server() -> None:
    assert BudgetLimits(max_tokens_total=100, max_cost=1.5).divided(3) == BudgetLimits(33, 0.5)
    assert BudgetLimits().divided(3) == BudgetLimits()


def test_the_tasks_of_a_shard_are_those_without_a_record(plan: Plan) -> None:
    (_, cells), *_ = plan.by_model()
    items = plan.examples[cells[0].cell.domain]
    seen: list[Progress] = []
    recorder = Recorder(cells, plan.table.split, Records(), seen.append, 5)
    recorder.add(0, 2, items[2], Record.failed("a failure"), new=True)
    recorder.add(0, 4, items[4], replace(Record.failed(""), failure=None), new=True)
    tasks = missing_tasks(plan, cells, recorder, Shard(1, 2))
    assert [[(task.cell, task.number) for task in of_item] for of_item in tasks] == [
        *([(0, 0), (1, 0)], [(0, 2), (1, 2)], [(1, 4)], [(0, 6), (1, 6)]),  # the cells of the first prompt
        *([(2, number), (3, number)] for number in (0, 2, 4, 6)),
    ]
    assert [progress.new for progress in seen] == [True, True, False]


def test_slices_keep_the_cells_of_an_item_together() -> None:
    def tasks(number: int, cells: int) -> Slice:
        return tuple(Task(cell, number, Example("u", "p")) for cell in range(cells))

    few = [tasks(number, 3) for number in range(3)]
    assert list(slices_of(few)) == [few[0] + few[1], few[2]]
    assert list(slices_of([tasks(0, SLICE_TASKS), (), tasks(1, 1)])) == [tasks(0, SLICE_TASKS), tasks(1, 1)]
    many = tasks(0, MAX_SLICE_TASKS + 1)
    assert list(slices_of([many])) == [many[:MAX_SLICE_TASKS], many[MAX_SLICE_TASKS:]]
