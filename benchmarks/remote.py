"""Measure searches over HTTP with a real llama.cpp server: requests, rounds, latency, throughput.

Run: PYTHONPATH=tests python benchmarks/remote.py requests | latency | throughput [number of items].
"""

import sys
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2

from fewparse import Example, Parser, load_domain
from fewparse.evaluate.metrics import pair
from fewparse.lm.http.load import RemoteSettings, open_remote
from fewparse.lm.http.remote import RemoteModel
from fewparse.lm.usage import Usage
from fewparse.lm.weights import pull
from fewparse.options import ParserOptions
from measure import compare, figures, write
from support.faulty_proxy import FaultyProxy
from support.llama_server import llama_cpp_server

SLOTS = 5
CONCURRENT_ITEMS = 2
SETTINGS: dict[str, ParserOptions] = {
    "beam 5": {"decoder": "beam", "width": 5, "target": "program"},
    "speculative W=5": {"decoder": "speculative", "width": 5, "target": "program"},
    "speculative W=5, server grammar": {
        "decoder": "speculative",
        "width": 5,
        "target": "program",
        "server_grammar": True,
    },
}


def remote(url: str, max_concurrency: int) -> RemoteModel:
    """Open the model of a server, without the response cache."""
    return open_remote("openai", "", RemoteSettings(base_url=url, max_concurrency=max_concurrency, cache=False))


def requests(items: Sequence[Example]) -> None:
    """Write accuracy, requests and rounds of each setting."""
    with llama_cpp_server(pull(), SLOTS) as url:
        results = compare("remote-requests", load_domain("calendar"), remote(url, 1), items, SETTINGS)
    beam, *others = (results[name] for name in SETTINGS)
    rows = []
    for result in (beam, *others):
        row = figures(result)
        paired = pair([r.correct_within(1) for r in result.records], [r.correct_within(1) for r in beam.records])
        rows.append(
            {name: row[name] for name in ("setting", "items", "accuracy", "95% interval", "requests", "rounds")}
            | {"times fewer requests": round(figures(beam)["requests"] / row["requests"], 1)}
            | {"times fewer rounds": round(figures(beam)["rounds"] / row["rounds"], 1)}
            | {"only this correct": paired.only_first, "only beam 5 correct": paired.only_second}
            | {"p-value": round(paired.p_value, 2)}
        )
    write("remote-requests", rows)


def latency(items: Sequence[Example]) -> None:
    """Write the seconds per item with an added latency in milliseconds."""
    domain = load_domain("calendar")
    rows = {name: {"setting": name, "items": len(items)} for name in SETTINGS}
    for added in (0, 50, 200):
        for name, setting in SETTINGS.items():
            # A new server each time, so that no prompt is in its cache.
            with llama_cpp_server(pull(), SLOTS) as url, FaultyProxy(url, latency=added / 2) as proxy:
                model = remote(proxy.url, SLOTS)
                parser = Parser.from_domain(domain, model, **setting)
                start = time.perf_counter()
                for item in items:
                    parser.parse(item.utterance)
                seconds = (time.perf_counter() - start) / len(items)
                rows[name] |= {f"seconds, {added} ms added": round(seconds, 2)}
                write("remote-latency", list(rows.values()))
                model.close()


class Recorder:
    """Records rounds of requests by the thread that sent them."""

    def __init__(self, model: RemoteModel) -> None:
        self.rounds: dict[int, list[list[dict[str, Any]]]] = defaultdict(list)
        self.tokens = 0
        self._send = model._batcher.send
        model._batcher.send = self.round  # type: ignore[method-assign]

    def round(self, requests: Sequence[Any], usage: Usage) -> Any:
        """Send a round of requests and record it."""
        spent = Usage()
        replies = self._send(requests, spent)
        usage += spent
        self.tokens += spent.completion_tokens
        if requests:
            self.rounds[threading.get_ident()].append([request.body for request in requests])
        return replies


def throughput(items: Sequence[Example]) -> None:
    """Write the tokens per second of searches, and of the same requests without a search, with new servers."""
    rows: list[dict[str, object]] = []
    for repetition in range(3):
        with llama_cpp_server(pull(), SLOTS * CONCURRENT_ITEMS) as url:
            model = remote(url, CONCURRENT_ITEMS * SLOTS)
            parser = Parser.from_domain(load_domain("calendar"), model, **SETTINGS["speculative W=5"])
            recorder = Recorder(model)
            start = time.perf_counter()
            with ThreadPoolExecutor(CONCURRENT_ITEMS) as pool:
                list(pool.map(parser.parse, [item.utterance for item in items]))
            search_seconds = time.perf_counter() - start
            model.close()
        with llama_cpp_server(pull(), SLOTS * CONCURRENT_ITEMS) as url:
            start = time.perf_counter()
            replayed = replay(url, list(recorder.rounds.values()))
            replay_seconds = time.perf_counter() - start
        speeds = recorder.tokens / search_seconds, replayed / replay_seconds
        rows.append(
            {
                "run": repetition + 1,
                "items": len(items),
                "tokens, searching": recorder.tokens,
                "tokens, plain": replayed,
                "tokens/s, searching": round(speeds[0], 1),
                "tokens/s, plain": round(speeds[1], 1),
                "ratio": round(speeds[0] / speeds[1], 2),
            }
        )
        write("remote-throughput", rows)


def replay(url: str, threads: Sequence[Sequence[Sequence[dict[str, Any]]]]) -> int:
    """Send the same requests in the same rounds and threads; return the number of tokens received."""
    with httpx2.Client(timeout=600) as client, ThreadPoolExecutor(SLOTS * CONCURRENT_ITEMS) as senders:

        def send(body: dict[str, Any]) -> int:
            response = client.post(f"{url}/completions", json=body).json()
            return sum(len(choice["logprobs"]["content"]) for choice in response["choices"] if choice["logprobs"])

        def follow(rounds: Sequence[Sequence[dict[str, Any]]]) -> int:
            return sum(sum(senders.map(send, bodies)) for bodies in rounds)

        with ThreadPoolExecutor(len(threads)) as followers:
            return sum(followers.map(follow, threads))


if __name__ == "__main__":
    number = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000
    chosen = load_domain("calendar").test_examples[:number]
    {"requests": requests, "latency": latency, "throughput": throughput}[sys.argv[1]](chosen)
