"""Searches through a faulty network give the same results as without faults, and repeat no request."""

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
from support.fault_drill import DECODERS, MAX_CONCURRENCY, Outputs, search_all
from support.faulty_proxy import FaultyProxy, Rates
from support.remote_models import capabilities_of, model_at
from support.server_behaviours import COMPLIANT
from support.toy_server import ToyServer

ITEMS = 100
RATES = Rates(seed=7, delay=0.02)
FEW = 30
TESTS = Path(__file__).parents[2]


def results(found: list[tuple[Outputs, Usage]]) -> list[Outputs]:
    return [outputs for outputs, _ in found]


def total_usage(found: list[tuple[Outputs, Usage]]) -> Usage:
    total = Usage()
    for _, usage in found:
        total += usage
    return total


def without_faults(decoder: str, items: int = ITEMS) -> list[tuple[Outputs, Usage]]:
    with (
        ToyServer() as toy,
        model_at(toy.url, capabilities_of(COMPLIANT), max_concurrency=MAX_CONCURRENCY) as model,
    ):
        return search_all(model, items, decoder)


@pytest.mark.parametrize("decoder", DECODERS)
def test_a_hundred_items_have_the_same_results_despite_faults(decoder: str) -> None:
    expected = without_faults(decoder)
    with (
        ToyServer() as toy,
        FaultyProxy(toy.url, RATES) as proxy,
        model_at(proxy.url, capabilities_of(COMPLIANT), max_concurrency=MAX_CONCURRENCY) as model,
    ):
        found = search_all(model, ITEMS, decoder)
    assert results(found) == results(expected)
    assert all(results(found))
    assert set(proxy.succeeded().values()) == {1}, "a delivered response is never requested again"
    reference, actual = total_usage(expected), total_usage(found)
    failed = [record for record in proxy.log if not (record.delivered and record.status == 200)]
    assert actual.retries == len(failed) > ITEMS / 10
    assert reference.retries == 0
    assert (actual.requests, actual.completion_tokens) == (reference.requests, reference.completion_tokens)
    kinds = Counter(record.fault.kind for record in failed if record.fault)
    assert kinds.keys() >= {
        "rejected",
        "dropped_before",
        "dropped_after",
        "dropped_within",
        "truncated",
        "flipped",
    }
    assert {record.status for record in failed} >= {429, 500, 502, 503}


@pytest.mark.parametrize("decoder", DECODERS)
def test_a_second_run_with_the_cache_of_the_first_sends_nothing(decoder: str, tmp_path: Path) -> None:
    with ToyServer() as toy, FaultyProxy(toy.url, RATES) as proxy:

        def run() -> list[tuple[Outputs, Usage]]:
            with (
                closing(ResponseCache(tmp_path / "answers.sqlite")) as cache,
                model_at(
                    proxy.url, capabilities_of(COMPLIANT), cache=cache, max_concurrency=MAX_CONCURRENCY
                ) as model,
            ):
                return search_all(model, FEW, decoder)

        first, sent = run(), len(proxy.log)
        again = run()
        assert len(proxy.log) == sent > 0
    assert results(again) == results(first) == results(without_faults(decoder, FEW))
    total = total_usage(again)
    assert (total.cached_requests, total.retries, total.cost) == (total.requests, 0, 0)


def start_drill(proxy: FaultyProxy, folder: Path, items: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "support.fault_drill", proxy.url, str(folder), str(items)]
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "FEWPARSE_CACHE": str(folder)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def parsed(written: str) -> list[Outputs]:
    lines = [json.loads(line) for line in written.splitlines()]
    assert [item for item, _ in lines] == list(range(len(lines)))
    return [[(text, score) for text, score in found] for _, found in lines]


def test_a_killed_run_resumes_without_repeating_requests(tmp_path: Path) -> None:
    expected = results(without_faults("speculative"))
    with ToyServer() as toy, FaultyProxy(toy.url, RATES, latency=5) as proxy:
        with start_drill(proxy, tmp_path, ITEMS) as first:
            deadline = time.monotonic() + 300
            while sum(proxy.succeeded().values()) < 60 and first.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
            first.send_signal(signal.SIGKILL)
            first.communicate()
        assert first.returncode == -signal.SIGKILL
        before = proxy.succeeded()
        assert len(before) >= 60
        with start_drill(proxy, tmp_path, ITEMS) as second:
            written, _ = second.communicate(timeout=600)
        assert second.returncode == 0
        again = Counter({request: times - 1 for request, times in proxy.succeeded().items() if times > 1})
    assert parsed(written) == expected
    assert sum(again.values()) <= MAX_CONCURRENCY, "only requests in progress when it was killed"


def test_two_processes_share_one_cache(tmp_path: Path) -> None:
    expected = results(without_faults("speculative", FEW))
    with ToyServer() as toy, FaultyProxy(toy.url, RATES) as proxy:
        with start_drill(proxy, tmp_path, FEW) as one, start_drill(proxy, tmp_path, FEW) as other:
            outputs = [process.communicate(timeout=600)[0] for process in (one, other)]
        assert (one.returncode, other.returncode) == (0, 0)
        assert [parsed(written) for written in outputs] == [expected, expected]
        assert max(proxy.succeeded().values()) <= 2, "each process requests it at most once"
        sent = len(toy.requests)
        with start_drill(proxy, tmp_path, FEW) as third:
            written, _ = third.communicate(timeout=600)
        assert (parsed(written), len(toy.requests)) == (expected, sent)
