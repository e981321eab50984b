"""The drill: a network and a server at their worst, and nothing of it is seen in what comes out."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from fewparse.lm.response_cache import ResponseCache
from fewparse.lm.usage import Usage
from support.fault_drill import AT_ONCE, DECODERS, Found, search_all
from support.faulty_proxy import FaultyProxy, Rates
from support.remote_models import abilities_of, model_at
from support.server_behaviours import HONEST
from support.toy_server import ToyServer

ITEMS = 100
RATES = Rates(seed=7, delay=0.02)
FEW = 30
TESTS = Path(__file__).parents[2]


def results(found: list[tuple[Found, Usage]]) -> list[Found]:
    return [outputs for outputs, _ in found]


def in_all(found: list[tuple[Found, Usage]]) -> Usage:
    total = Usage()
    for _, usage in found:
        total += usage
    return total


def undisturbed(decoder: str, items: int = ITEMS) -> list[tuple[Found, Usage]]:
    with ToyServer() as toy, model_at(toy.url, abilities_of(HONEST), max_concurrency=AT_ONCE) as model:
        return search_all(model, items, decoder)


@pytest.mark.parametrize("decoder", DECODERS)
def test_a_hundred_items_come_out_as_if_nothing_had_gone_wrong(decoder: str) -> None:
    calm = undisturbed(decoder)
    with (
        ToyServer() as toy,
        FaultyProxy(toy.url, RATES) as proxy,
        model_at(proxy.url, abilities_of(HONEST), max_concurrency=AT_ONCE) as model,
    ):
        found = search_all(model, ITEMS, decoder)
    assert results(found) == results(calm)
    assert all(results(found))
    assert set(proxy.succeeded().values()) == {1}, "what was answered is never asked again"
    usual, stormy = in_all(calm), in_all(found)
    failed = [record for record in proxy.log if not (record.delivered and record.status == 200)]
    assert stormy.retries == len(failed) > ITEMS / 10
    assert usual.retries == 0
    assert (stormy.requests, stormy.completion_tokens) == (usual.requests, usual.completion_tokens)
    kinds = Counter(record.fault.kind for record in failed if record.fault)
    assert kinds.keys() >= {"refused", "dropped_before", "dropped_after", "dropped_within", "truncated", "flipped"}
    assert {record.status for record in failed} >= {429, 500, 502, 503}


@pytest.mark.parametrize("decoder", DECODERS)
def test_a_second_run_with_the_answers_of_the_first_sends_nothing(decoder: str, tmp_path: Path) -> None:
    with ToyServer() as toy, FaultyProxy(toy.url, RATES) as proxy:

        def run() -> list[tuple[Found, Usage]]:
            with (
                closing(ResponseCache(tmp_path / "answers.sqlite")) as cache,
                model_at(proxy.url, abilities_of(HONEST), cache=cache, max_concurrency=AT_ONCE) as model,
            ):
                return search_all(model, FEW, decoder)

        first, sent = run(), len(proxy.log)
        again = run()
        assert len(proxy.log) == sent > 0
    assert results(again) == results(first) == results(undisturbed(decoder, FEW))
    total = in_all(again)
    assert (total.cached_requests, total.retries, total.cost) == (total.requests, 0, 0)


def started(proxy: FaultyProxy, folder: Path, items: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "lm.http.drill", proxy.url, str(folder), str(items)]
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "FEWPARSE_CACHE": str(folder)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def told(written: str) -> list[Found]:
    lines = [json.loads(line) for line in written.splitlines()]
    assert [item for item, _ in lines] == list(range(len(lines)))
    return [[(text, score) for text, score in found] for _, found in lines]


def test_a_run_that_is_killed_is_carried_on_without_asking_twice(tmp_path: Path) -> None:
    calm = results(undisturbed("speculative"))
    with ToyServer() as toy, FaultyProxy(toy.url, RATES, latency=5) as proxy:
        with started(proxy, tmp_path, ITEMS) as first:
            deadline = time.monotonic() + 30
            while sum(proxy.succeeded().values()) < 60 and time.monotonic() < deadline:
                time.sleep(0.01)
            first.send_signal(signal.SIGKILL)
            first.communicate()
        assert first.returncode == -signal.SIGKILL
        before = proxy.succeeded()
        assert len(before) >= 60
        with started(proxy, tmp_path, ITEMS) as second:
            written, _ = second.communicate(timeout=60)
        assert second.returncode == 0
        again = Counter({request: times - 1 for request, times in proxy.succeeded().items() if times > 1})
    assert told(written) == calm
    assert sum(again.values()) <= AT_ONCE, "only what was under way when it was killed"


def test_two_processes_share_one_cache(tmp_path: Path) -> None:
    calm = results(undisturbed("speculative", FEW))
    with ToyServer() as toy, FaultyProxy(toy.url, RATES) as proxy:
        with started(proxy, tmp_path, FEW) as one, started(proxy, tmp_path, FEW) as other:
            outputs = [process.communicate(timeout=60)[0] for process in (one, other)]
        assert (one.returncode, other.returncode) == (0, 0)
        assert [told(written) for written in outputs] == [calm, calm]
        assert max(proxy.succeeded().values()) <= 2, "each asks for itself at most once"
        sent = len(toy.requests)
        with started(proxy, tmp_path, FEW) as third:
            written, _ = third.communicate(timeout=60)
        assert (told(written), len(toy.requests)) == (calm, sent)
