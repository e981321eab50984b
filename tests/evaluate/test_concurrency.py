"""Concurrent evaluation: the results do not depend on the order in which items are finished."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Event, get_ident
from typing import Literal

import pytest

from fewparse import Domain, Usage, load_domain
from fewparse.errors import ServerError
from fewparse.evaluate.baselines import baselines
from fewparse.evaluate.record_lines import Record
from fewparse.evaluate.records import Records
from fewparse.evaluate.run import Progress, SystemResult, parser_systems, run_evaluation
from fewparse.evaluate.system import System
from fewparse.lm.model import LanguageModel, NextTokens, Prefix
from fewparse.options import ParserOptions
from fewparse.prompt import Prompt
from fewparse.vocabulary import Mask
from support.byte_model import ByteModel
from support.domain_files import write_domain
from support.lamp_domain import FixedSystem, RemoteSystem, numbered
from support.toy_model import ToyModel

TIMEOUT = 120


def outputs(result: SystemResult) -> list[str]:
    return [" ".join(record.outputs) for record in result.records]


def test_as_many_items_run_at_the_same_time_as_the_model_allows(lamps: Domain) -> None:
    all_four = Barrier(4, timeout=TIMEOUT)
    (result,) = run_evaluation(lamps, [RemoteSystem(4, lambda utterance: all_four.wait())], numbered(8), "test")
    assert outputs(result) == [str(number) for number in range(8)]


def test_results_are_in_the_order_of_the_items_and_records_in_the_order_of_completion(
    lamps: Domain, tmp_path: Path
) -> None:
    seen: list[list[str]] = []
    path = tmp_path / "records.jsonl"
    recorded = [Event() for _ in range(6)]
    recorded[5].set()

    def wait_for_the_next_item(utterance: str) -> None:
        assert recorded[int(utterance) + 1].wait(TIMEOUT)

    def after(progress: Progress) -> None:
        seen.append(outputs(progress.result))
        recorded[5 - len(seen)].set()

    remote = RemoteSystem(5, wait_for_the_next_item)
    (result,) = run_evaluation(lamps, [remote], numbered(5), "test", Records(path), after)
    assert outputs(result) == ["0", "1", "2", "3", "4"]
    assert seen == [[str(number) for number in range(first, 5)] for first in (4, 3, 2, 1, 0)]
    written = [json.loads(line)["utterance"] for line in path.read_text().splitlines()]
    assert written == ["4", "3", "2", "1", "0"], "in the order of completion"


def test_the_systems_run_one_after_another_on_an_item(lamps: Domain) -> None:
    calls: list[tuple[str, str]] = []

    def named(name: str) -> RemoteSystem:
        return RemoteSystem(3, lambda utterance: calls.append((name, utterance)), name=name)

    systems = [named("a"), named("b")]
    results = run_evaluation(lamps, systems, numbered(9), "test")
    for number in map(str, range(9)):
        assert [name for name, utterance in calls if utterance == number] == ["a", "b"]
    assert [outputs(result) for result in results] == [[str(number) for number in range(9)]] * 2


@pytest.mark.parametrize("others", [[], [RemoteSystem(8, name="another")], [FixedSystem("no model")]])
def test_a_system_without_concurrency_runs_in_order_in_the_main_thread(
    others: list[System], lamps: Domain
) -> None:
    threads: set[int] = set()
    remote = RemoteSystem(1, lambda utterance: threads.add(get_ident()))
    run_evaluation(lamps, [*others, remote], numbered(20), "test")
    assert remote.utterances == [str(number) for number in range(20)]
    assert threads == {get_ident()}


class CountingModel(ToyModel):
    """The toy model with a concurrency, which counts its calls; remote if the concurrency is above 1."""

    context_length = 4096

    def __init__(self, max_concurrency: int) -> None:
        super().__init__()
        self.max_concurrency = max_concurrency
        self.local = max_concurrency == 1
        self.calls = 0

    def next_tokens(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        k: int,
        stop: bytes,
        usage: Usage,
        allowed: Sequence[Mask] | None = None,
    ) -> list[NextTokens]:
        self.calls += 1
        return super().next_tokens(prompt, prefixes, k, stop, usage, allowed)


def untimed(results: list[SystemResult]) -> list[list[Record]]:
    return [[replace(record, seconds=0, prompt_seconds=0) for record in result.records] for result in results]


LETTERS = """\
name = "letters"
[retrieve]
examples = 2
retriever = "bm25"
[constraint]
grammar = "grammar.lark"
"""


def make_model(max_concurrency: int, by_bytes: bool) -> LanguageModel:
    model = CountingModel(max_concurrency)
    return ByteModel(model) if by_bytes else model


@pytest.mark.parametrize(
    ("by_bytes", "constraint"), [(True, "trie"), (True, "grammar"), (False, "trie"), (False, "grammar")]
)
def test_outputs_and_costs_of_parsers_do_not_depend_on_concurrency(
    by_bytes: bool, constraint: Literal["trie", "grammar"], tmp_path: Path
) -> None:
    examples = [{"utterance": program, "program": program} for program in ("a", "b", "ab", "bc", "abc", "cab")]
    write_domain(tmp_path, LETTERS, examples, {"grammar.lark": 'start: ("a" | "b" | "c" | "bc")+\n'})
    domain = load_domain(tmp_path, constraint=constraint)
    decoders: dict[str, ParserOptions] = {
        name: {"decoder": name, "width": 4, "max_tokens": 12} for name in ("greedy", "beam", "speculative")
    }

    def run(max_concurrency: int) -> list[SystemResult]:
        model = make_model(max_concurrency, by_bytes)
        systems = [*baselines(domain, "program", model, 0), *parser_systems(domain, model, decoders)]
        return run_evaluation(domain, systems, numbered(24), "test")

    sequential, concurrent = run(1), run(8)
    assert all(any(record.outputs for record in result.records) for result in sequential)
    assert untimed(concurrent) == untimed(sequential)


def test_only_a_local_model_evaluates_the_prompt_before_decoding(lamps: Domain) -> None:
    def run(max_concurrency: int) -> tuple[int, float]:
        model = CountingModel(max_concurrency)
        systems = parser_systems(lamps, model, {"greedy": {"decoder": "greedy", "examples": 0}})
        (result,) = run_evaluation(lamps, systems, lamps.test_examples[:1], "test")
        return model.calls, result.records[0].prompt_seconds

    calls, seconds = run(1)
    assert seconds > 0
    assert run(2) == (calls - 1, 0)


INTERRUPTED = """
import signal, sys, time
from pathlib import Path
from support.lamp_domain import RemoteSystem, make_lamps, numbered
from fewparse.evaluate.records import Records
from fewparse.evaluate.run import run_evaluation

def behave(utterance):
    if utterance != "0":
        sys.stdout.write("waiting\\n")
        sys.stdout.flush()
        time.sleep(90)

signal.signal(signal.SIGINT, signal.default_int_handler)
folder = Path(sys.argv[1])
records = Records(folder / "records.jsonl")
run_evaluation(make_lamps(folder / "lamps"), [RemoteSystem(2, behave)], numbered(50), "test", records)
"""


def test_ctrl_c_does_not_wait_for_running_items_and_finished_records_are_kept(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        try:
            assert [process.stdout.readline() for _ in range(2)] == [b"waiting\n"] * 2
            process.send_signal(signal.SIGINT)
            _, error = process.communicate(timeout=TIMEOUT)
        finally:
            process.kill()
    assert process.returncode != 0
    assert error.endswith(b"KeyboardInterrupt\n")
    lines = (tmp_path / "records.jsonl").read_text().splitlines()
    assert [json.loads(line)["utterance"] for line in lines] == ["0"]


def test_predictions_after_an_interrupt_are_ignored(lamps: Domain, tmp_path: Path) -> None:
    both, release = Barrier(2, timeout=TIMEOUT), Event()
    main, before, seen = get_ident(), set(threading.enumerate()), list[int]()

    def behave(utterance: str) -> None:
        both.wait()
        if utterance == "0":
            signal.pthread_kill(main, signal.SIGINT)
        assert release.wait(TIMEOUT)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_evaluation(
                lamps,
                [RemoteSystem(2, behave)],
                numbered(50),
                "test",
                Records(tmp_path / "records.jsonl"),
                lambda results: seen.append(1),
            )
    finally:
        signal.signal(signal.SIGINT, handler)
    release.set()
    for thread in set(threading.enumerate()) - before:
        thread.join(TIMEOUT)
    assert (seen, (tmp_path / "records.jsonl").read_text()) == ([], "")


def test_an_unexpected_error_ends_the_run(lamps: Domain) -> None:
    def behave(utterance: str) -> None:
        if utterance == "1":
            raise ZeroDivisionError("a defect")
        raise ServerError("down")

    for max_concurrency in (1, 3):
        with pytest.raises(ZeroDivisionError, match="a defect"):
            run_evaluation(lamps, [RemoteSystem(max_concurrency, behave)], numbered(50), "test")
