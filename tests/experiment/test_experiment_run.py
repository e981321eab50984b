"""An experiment runs every cell on every item once, whatever interrupts it, and shares prompts."""

import json
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from experiment.conftest import OpenModel, lamp_table
from fewparse.errors import ResultsError, UsageError
from fewparse.evaluate.record_lines import Record
from fewparse.evaluate.run import Progress
from fewparse.experiment.estimate import estimate
from fewparse.experiment.folder import ALL_ITEMS, ITEMS, MANIFEST, RECORDS, Shard
from fewparse.experiment.grid import ExperimentTable
from fewparse.experiment.plan import make_plan
from fewparse.experiment.results import Results, read_results
from fewparse.experiment.run import run_experiment
from fewparse.lm.embedded import EmbeddedModel
from fewparse.lm.usage import Usage
from support.cli_runner import fewparse, fewparse_process, start_process

TIMES = ("seconds", "prompt_seconds")


def untimed(record: Record | None) -> dict[str, Any] | None:
    """Return the fields of a record that do not depend on the speed of the machine."""
    if record is None:
        return None
    fields = {name: value for name, value in asdict(record).items() if name not in TIMES}
    counters = ("seconds", "prefill_tokens", "forward_tokens", "forward_passes", "rounds")  # a cache changes them
    return fields | {"usage": {name: n for name, n in fields["usage"].items() if name not in counters}}


def contents(results: Results) -> list[list[dict[str, Any] | None]]:
    return [[untimed(record) for record in cell.records] for cell in results.cell_results]


def lines(folder: Path, name: str = RECORDS) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def test_every_cell_has_a_record_of_every_item(lamp_folder: Path, tmp_path: Path, open_model: OpenModel) -> None:
    seen: list[Progress] = []
    plan = make_plan(lamp_table(lamp_folder, decoder=["greedy", "beam"], width=2, constrained=[True, False]))
    results = run_experiment(plan, tmp_path, open_model, listener=seen.append)
    assert [cell.label for cell in results.cell_results] == [
        "constrained, greedy",
        "constrained, beam, W=2",
        "unconstrained, greedy",
        "unconstrained, beam, W=2",
    ]
    assert len(seen) == len(lines(tmp_path)) == plan.size == 8
    for cell in results.cell_results:
        assert len(list(cell.finished())) == 2
        for item, record in cell.finished():
            assert len(record.scores) == len(record.outputs) == len(record.model_scores)
            assert item.gold in ("(on lamp)", "(off radio)")
    assert contents(read_results(tmp_path)) == contents(results)


def test_what_is_done_is_not_repeated(lamp_folder: Path, tmp_path: Path, open_model: OpenModel) -> None:
    plan = make_plan(lamp_table(lamp_folder, decoder=["greedy", "beam"], width=2))
    run_experiment(plan, tmp_path, open_model)
    before = (tmp_path / RECORDS).read_bytes()

    def no_model(name: str) -> Any:
        raise AssertionError("nothing is missing")

    run_experiment(plan, tmp_path, no_model)
    assert (tmp_path / RECORDS).read_bytes() == before


def test_an_incomplete_last_line_is_repaired_and_reported(
    lamp_folder: Path, tmp_path: Path, open_model: OpenModel
) -> None:
    plan = make_plan(lamp_table(lamp_folder, decoder=["greedy", "beam"], width=2))
    expected = contents(run_experiment(plan, tmp_path, open_model))
    whole = (tmp_path / RECORDS).read_bytes()
    (tmp_path / RECORDS).write_bytes(whole[:-40])
    assert [None] in [[r for r in cell if r is None] for cell in contents(read_results(tmp_path))]
    warnings: list[str] = []
    assert contents(run_experiment(plan, tmp_path, open_model, on_warning=warnings.append)) == expected
    assert len(warnings) == 1
    assert "incomplete last line" in warnings[0]
    assert len(lines(tmp_path)) == 4


def test_a_folder_of_another_configuration_is_refused_with_the_difference(
    lamp_folder: Path, tmp_path: Path, open_model: OpenModel
) -> None:
    run_experiment(make_plan(lamp_table(lamp_folder, decoder="greedy")), tmp_path, open_model)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    other = make_plan(lamp_table(lamp_folder, decoder="beam", width=2))
    with pytest.raises(ResultsError) as caught:
        run_experiment(other, tmp_path, open_model)
    message = str(caught.value)
    assert "only in the folder" in message
    assert "decoder=greedy" in message
    assert "only in the new one" in message
    assert "--extend" in message
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_changed_data_is_another_configuration(tmp_path: Path, lamp_folder: Path, open_model: OpenModel) -> None:
    plan = make_plan(lamp_table(lamp_folder, decoder="greedy"))
    run_experiment(plan, tmp_path, open_model)
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    manifest["cells"][0]["settings"]["files"]["language.jsonl"] = "0" * 64
    (tmp_path / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(ResultsError, match=r"files.language.jsonl was '0000"):
        run_experiment(plan, tmp_path, open_model, extend=True)


def test_extend_joins_the_cells_of_two_configurations(
    lamp_folder: Path, tmp_path: Path, open_model: OpenModel
) -> None:
    run_experiment(make_plan(lamp_table(lamp_folder, decoder="greedy", limit=1)), tmp_path, open_model)
    more = make_plan(lamp_table(lamp_folder, decoder="beam", width=[2, 3]))
    joined = run_experiment(more, tmp_path, open_model, extend=True)
    assert [cell.options["decoder"] for cell in joined.cell_results] == ["greedy", "beam", "beam"]
    assert [len(list(cell.finished())) for cell in joined.cell_results] == [1, 2, 2]
    assert all(len(cell.items) == 2 for cell in joined.cell_results)


def test_shards_together_are_the_whole(lamp_folder: Path, tmp_path: Path, open_model: OpenModel) -> None:
    plan = make_plan(lamp_table(lamp_folder, decoder=["greedy", "beam"], width=2))
    whole = contents(run_experiment(plan, tmp_path / "whole", open_model))
    first = run_experiment(plan, tmp_path / "parts", open_model, Shard(1, 2))
    assert [len(list(cell.finished())) for cell in first.cell_results] == [1, 1]
    both = run_experiment(plan, tmp_path / "parts", open_model, Shard(2, 2))
    assert contents(both) == whole
    assert len(lines(tmp_path / "parts", "records-1-of-2.jsonl")) == 2
    assert len(lines(tmp_path / "parts", "records-2-of-2.jsonl")) == 2


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "1/0", "-1/2", "1/2/3"])
def test_a_shard_is_a_part_of_a_whole(text: str) -> None:
    with pytest.raises(UsageError, match="--shard 1/4"):
        Shard.parse(text)


def test_the_trace_is_recorded_on_demand(lamp_folder: Path, tmp_path: Path, open_model: OpenModel) -> None:
    table = lamp_table(lamp_folder, decoder="speculative", width=2, limit=1)
    (cell,) = run_experiment(make_plan(table), tmp_path / "without", open_model).cell_results
    assert cell.records[0] is not None
    assert cell.records[0].trace is None
    traced = table.model_copy(update={"trace": True})
    (cell,) = run_experiment(make_plan(traced), tmp_path / "with", open_model).cell_results
    assert cell.records[0] is not None
    events = [event["event"] for event in cell.records[0].trace or ()]
    assert events[0] == "RoundStarted"
    assert {"Sampled", "RoundEnded"} <= set(events)


class CountingModel:
    """The embedded model, counting the prompt tokens that it evaluates by prompt."""

    def __init__(self, model: EmbeddedModel) -> None:
        self._model = model
        self.evaluated: Counter[str] = Counter()
        self.lengths: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._model, name)
        if name not in ("next_tokens", "sample", "score"):
            return found

        def counted(prompt: Any, *arguments: Any, **options: Any) -> Any:
            usage = next(each for each in (*arguments, *options.values()) if isinstance(each, Usage))
            before = usage.prefill_tokens
            try:
                return found(prompt, *arguments, **options)
            finally:
                self.evaluated[repr(prompt)] += usage.prefill_tokens - before
                self.lengths[repr(prompt)] = self._model.prompt_length(prompt)

        return counted


def test_cells_with_the_same_prompt_evaluate_it_once(model: EmbeddedModel, tmp_path: Path) -> None:
    decoders: list[dict[str, Any]] = [
        {"decoder": "greedy"},
        {"decoder": "beam", "width": 3},
        {"decoder": "speculative", "width": 3},
        {"decoder": "greedy", "constrained": False},
        {"decoder": "speculative", "width": 2, "temperature": 1.0},
    ]
    common: dict[str, Any] = {
        "domain": "calendar",
        "adapter": "none",
        "examples": 4,
        "target": ["program", "canonical"],
    }
    table = ExperimentTable.model_validate({"limit": 1, "grid": [common | each for each in decoders]})
    counting = CountingModel(model)
    run_experiment(make_plan(table), tmp_path, lambda name: nullcontext(counting))
    assert len(counting.evaluated) == 2, "two targets"
    for prompt, evaluated in counting.evaluated.items():
        assert evaluated <= 1.3 * counting.lengths[prompt]


def kill_and_resume(arguments: Sequence[str], folder: Path, kills: int, first: float, span: float) -> None:
    """Run a command, killed at random moments, until it ends by itself."""
    chance = random.Random(0)
    killed = 0
    while killed < kills:
        process = start_process(*arguments, "--out", str(folder))
        try:
            process.communicate(timeout=first + span * chance.random())
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            killed += 1
    assert killed > 0, "the run was never interrupted"
    assert fewparse_process(*arguments, "--out", str(folder)).code == 0


GRID = (
    "--domain",
    "calendar",
    "--decoder",
    "greedy",
    "--decoder",
    "beam",
    "--decoder",
    "speculative",
    "--width",
    "2",
)


@pytest.mark.parametrize(
    ("items", "kills", "span"), [(2, 3, 1.0), pytest.param(40, 10, 8.0, marks=pytest.mark.campaign)]
)
def test_a_run_that_is_killed_at_any_moment_ends_with_the_same_results(
    items: int, kills: int, span: float, tmp_path: Path
) -> None:
    arguments = ("experiment", *GRID, "--limit", str(items))
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    start = time.monotonic()
    assert fewparse_process(*arguments, "--out", str(whole)).code == 0
    start_up = 0.4 * min(5.0, time.monotonic() - start)
    kill_and_resume(arguments, killed, kills, start_up, span)
    assert contents(read_results(killed)) == contents(read_results(whole))
    keys = [(line["settings"], line["item"]) for line in lines(killed)]
    assert len(keys) == len(set(keys)) == 3 * items
    assert (killed / ITEMS).read_bytes() == (whole / ITEMS).read_bytes()


def test_two_processes_cannot_write_one_folder(lamp_folder: Path, tmp_path: Path, open_model: OpenModel) -> None:
    plan = make_plan(lamp_table(lamp_folder, decoder="greedy"))
    refused: list[str] = []

    def run_again(_: Progress) -> None:
        ended = fewparse_process(
            "experiment",
            "--domain",
            str(lamp_folder),
            "--allow-code",
            "--decoder",
            "greedy",
            "--out",
            str(tmp_path),
        )
        refused.append(ended.err)
        assert ended.code == 1

    run_experiment(plan, tmp_path, open_model, listener=run_again)
    assert len(refused) == 2
    assert all("another evaluation writes to this file" in text for text in refused)
    assert len(lines(tmp_path)) == 2


def test_gold_programs_in_the_pool_are_marked(lamp_folder: Path, tmp_path: Path, open_model: OpenModel) -> None:
    plan = make_plan(lamp_table(lamp_folder, decoder="greedy"))
    (cell,) = run_experiment(plan, tmp_path, open_model).cell_results
    assert {item.gold: cell.gold_seen(item) for item in cell.items} == {"(on lamp)": True, "(off radio)": False}


def test_an_estimate_counts_what_is_missing(lamp_folder: Path, tmp_path: Path, open_model: OpenModel) -> None:
    plan = make_plan(lamp_table(lamp_folder, decoder=["greedy", "beam"], width=3))
    before = estimate(plan, {}, ALL_ITEMS)
    assert [each.missing for each in before] == [2, 2]
    assert before[1].requests > before[0].requests > 0
    run_experiment(replace(plan, cells=plan.cells[:1]), tmp_path, open_model)
    done = json.loads((tmp_path / MANIFEST).read_text())
    assert [cell["options"]["decoder"] for cell in done["cells"]] == ["greedy", "beam"]
    found = fewparse("experiment", *lamp_arguments(lamp_folder), "--out", str(tmp_path), "--dry-run")
    assert "2 cells, 2 items to parse" in found.out
    assert len(lines(tmp_path)) == 2


def lamp_arguments(folder: Path) -> list[str]:
    return ["--domain", str(folder), "--allow-code", "--decoder", "greedy", "--decoder", "beam", "--width", "3"]
