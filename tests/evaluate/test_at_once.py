"""Models that answer several items at once: what comes out does not depend on which answer came first."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Event, get_ident
from typing import Literal

import pytest

from fewparse import Domain, Usage, load_domain
from fewparse.errors import ServerError
from fewparse.evaluate.baselines import baselines
from fewparse.evaluate.records import Record, Records
from fewparse.evaluate.run import Outcome, evaluate, prompted
from fewparse.evaluate.system import System
from fewparse.lm.model import LanguageModel, NextTokens, Prefix
from fewparse.prompt import Prompt
from fewparse.vocabulary import Mask
from support.byte_model import ByteModel
from support.lamp_domain import RemoteSystem, Scripted, lines, make_lamps, numbered
from support.toy_model import ToyModel

PATIENCE = 20


@pytest.fixture
def lamps(tmp_path: Path) -> Domain:
    return make_lamps(tmp_path / "lamps")


def said(outcome: Outcome) -> list[str]:
    return [" ".join(record.outputs) for record in outcome.records]


def last_first(count: int) -> Callable[[str], None]:
    """Answers an item only after the one behind it."""
    answered = [Event() for _ in range(count + 1)]
    answered[count].set()

    def behave(utterance: str) -> None:
        assert answered[int(utterance) + 1].wait(PATIENCE)
        time.sleep(0.01)
        answered[int(utterance)].set()

    return behave


def test_items_are_asked_at_once_as_many_as_the_model_serves(lamps: Domain) -> None:
    all_four = Barrier(4, timeout=PATIENCE)
    (outcome,) = evaluate(lamps, [RemoteSystem(4, lambda utterance: all_four.wait())], numbered(8), "test")
    assert said(outcome) == [str(number) for number in range(8)]


def test_outcomes_are_in_the_order_of_the_items_whatever_was_finished_first(lamps: Domain, tmp_path: Path) -> None:
    seen: list[list[str]] = []
    path = tmp_path / "records.jsonl"
    records = Records(path)
    remote = RemoteSystem(5, last_first(5))
    (outcome,) = evaluate(lamps, [remote], numbered(5), "test", records, lambda found: seen.append(said(found[0])))
    assert said(outcome) == ["0", "1", "2", "3", "4"]
    assert seen == [[str(number) for number in range(first, 5)] for first in (4, 3, 2, 1, 0)]
    written = [json.loads(line)["utterance"] for line in path.read_text().splitlines()]
    assert written == ["4", "3", "2", "1", "0"], "as they came"


def test_the_systems_of_an_item_follow_each_other_and_stay_apart(lamps: Domain) -> None:
    asked: list[tuple[str, str]] = []

    def named(name: str) -> RemoteSystem:
        return RemoteSystem(3, lambda utterance: asked.append((name, utterance)), name=name)

    systems = [named("a"), named("b")]
    outcomes = evaluate(lamps, systems, numbered(9), "test")
    for number in map(str, range(9)):
        assert [name for name, utterance in asked if utterance == number] == ["a", "b"]
    assert [said(outcome) for outcome in outcomes] == [[str(number) for number in range(9)]] * 2


@pytest.mark.parametrize("others", [[], [RemoteSystem(8, name="another")], [Scripted("no model")]])
def test_one_at_a_time_is_asked_in_order(others: list[System], lamps: Domain) -> None:
    threads: set[int] = set()
    remote = RemoteSystem(1, lambda utterance: threads.add(get_ident()))
    evaluate(lamps, [*others, remote], numbered(20), "test")
    assert remote.asked == [str(number) for number in range(20)]
    assert threads == {get_ident()}


class Served(ToyModel):
    """The toy as a server would offer it; it counts what it is asked."""

    context_length = 4096

    def __init__(self, max_concurrency: int) -> None:
        super().__init__()
        self.max_concurrency = max_concurrency
        self.local = max_concurrency == 1
        self.questions = 0

    def next_tokens(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        k: int,
        stop: bytes,
        usage: Usage,
        allowed: Sequence[Mask] | None = None,
    ) -> list[NextTokens]:
        self.questions += 1
        return super().next_tokens(prompt, prefixes, k, stop, usage, allowed)


def untimed(outcomes: list[Outcome]) -> list[list[Record]]:
    return [[replace(record, seconds=0, prompt_seconds=0) for record in outcome.records] for outcome in outcomes]


LETTERS = """\
name = "letters"
[retrieve]
examples = 2
retriever = "bm25"
[constraint]
grammar = "grammar.lark"
"""


def offered(max_concurrency: int, by_bytes: bool) -> LanguageModel:
    served = Served(max_concurrency)
    return ByteModel(served) if by_bytes else served


@pytest.mark.parametrize(
    ("by_bytes", "constraint"), [(True, "trie"), (True, "grammar"), (False, "trie"), (False, "grammar")]
)
def test_real_parsers_say_and_cost_the_same_however_many_items_run_at_once(
    by_bytes: bool, constraint: Literal["trie", "grammar"], tmp_path: Path
) -> None:
    (tmp_path / "domain.toml").write_text(LETTERS)
    (tmp_path / "grammar.lark").write_text('start: ("a" | "b" | "c" | "bc")+\n')
    (tmp_path / "examples.jsonl").write_text(
        lines([{"utterance": program, "program": program} for program in ("a", "b", "ab", "bc", "abc", "cab")])
    )
    domain = load_domain(tmp_path, constraint=constraint)
    decoders = {
        name: {"decoder": name, "width": 4, "max_tokens": 12} for name in ("greedy", "beam", "speculative")
    }

    def run(max_concurrency: int) -> list[Outcome]:
        model = offered(max_concurrency, by_bytes)
        systems = [*baselines(domain, "program", model, 0), *prompted(domain, model, decoders)]
        return evaluate(domain, systems, numbered(24), "test")

    alone, max_concurrency = run(1), run(8)
    assert all(any(record.outputs for record in outcome.records) for outcome in alone)
    assert untimed(max_concurrency) == untimed(alone)


def test_a_prompt_is_read_beforehand_only_by_a_model_in_this_process(lamps: Domain) -> None:
    def asked(max_concurrency: int) -> tuple[int, float]:
        model = Served(max_concurrency)
        systems = prompted(lamps, model, {"greedy": {"decoder": "greedy", "examples": 0}})
        (outcome,) = evaluate(lamps, systems, lamps.test_examples[:1], "test")
        return model.questions, outcome.records[0].prompt_seconds

    questions, seconds = asked(1)
    assert seconds > 0
    assert asked(2) == (questions - 1, 0)


INTERRUPTED = """
import signal, sys, time
from pathlib import Path
from support.lamp_domain import RemoteSystem, make_lamps, numbered
from fewparse.evaluate.records import Records
from fewparse.evaluate.run import evaluate

def behave(utterance):
    if utterance != "0":
        sys.stdout.write("waiting\\n")
        sys.stdout.flush()
        time.sleep(90)

signal.signal(signal.SIGINT, signal.default_int_handler)
folder = Path(sys.argv[1])
records = Records(folder / "records.jsonl")
evaluate(make_lamps(folder / "lamps"), [RemoteSystem(2, behave)], numbered(50), "test", records)
"""


def test_ctrl_c_waits_for_no_answer_and_what_was_answered_is_kept(tmp_path: Path) -> None:
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
            _, complaint = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert process.returncode != 0
    assert complaint.endswith(b"KeyboardInterrupt\n")
    lines = (tmp_path / "records.jsonl").read_text().splitlines()
    assert [json.loads(line)["utterance"] for line in lines] == ["0"]


def test_what_is_answered_after_an_interrupt_comes_too_late(lamps: Domain, tmp_path: Path) -> None:
    both, late = Barrier(2, timeout=PATIENCE), Event()
    main, before, seen = get_ident(), set(threading.enumerate()), list[int]()

    def behave(utterance: str) -> None:
        both.wait()
        if utterance == "0":
            signal.pthread_kill(main, signal.SIGINT)
        assert late.wait(PATIENCE)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            evaluate(
                lamps,
                [RemoteSystem(2, behave)],
                numbered(50),
                "test",
                Records(tmp_path / "records.jsonl"),
                lambda outcomes: seen.append(1),
            )
    finally:
        signal.signal(signal.SIGINT, handler)
    late.set()
    for thread in set(threading.enumerate()) - before:
        thread.join(PATIENCE)
    assert (seen, (tmp_path / "records.jsonl").read_text()) == ([], "")


def test_an_error_that_is_nobodys_failure_ends_the_run(lamps: Domain) -> None:
    def behave(utterance: str) -> None:
        if utterance == "1":
            raise ZeroDivisionError("a defect")
        raise ServerError("down")

    for max_concurrency in (1, 3):
        with pytest.raises(ZeroDivisionError, match="a defect"):
            evaluate(lamps, [RemoteSystem(max_concurrency, behave)], numbered(50), "test")
