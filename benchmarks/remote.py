"""What a search costs over HTTP, against a real llama.cpp server: requests, rounds, waiting, throughput.

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
from measure import compare, figures, write
from support.faulty_proxy import FaultyProxy
from support.llama_server import llama_cpp_server

SLOTS = 5
ITEMS_AT_ONCE = 2
SETTINGS: dict[str, dict[str, Any]] = {
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
    """The model behind a server; nothing is answered from the cache."""
    return open_remote("openai", "", RemoteSettings(base_url=url, max_concurrency=max_concurrency, cache=False))


def requests(items: Sequence[Example]) -> None:
    """Accuracy, requests and rounds of each way, on each item in turn."""
    with llama_cpp_server(pull(), SLOTS) as url:
        found = compare("remote-requests", load_domain("calendar"), remote(url, 1), items, SETTINGS)
    beam, *others = (found[name] for name in SETTINGS)
    rows = []
    for outcome in (beam, *others):
        row = figures(outcome)
        against = pair([r.right_within(1) for r in outcome.records], [r.right_within(1) for r in beam.records])
        rows.append(
            {
                name: row[name]
                for name in ("setting", "items", "right answer", "95% interval", "requests", "rounds")
            }
            | {"times fewer requests": round(figures(beam)["requests"] / row["requests"], 1)}
            | {"times fewer rounds": round(figures(beam)["rounds"] / row["rounds"], 1)}
            | {"right where beam 5 is not": against.only_first, "wrong where it is": against.only_second}
            | {"p": round(against.p_value, 2)}
        )
    write("remote-requests", rows)


def latency(items: Sequence[Example]) -> None:
    """Seconds an item with added milliseconds between asking and being answered."""
    domain = load_domain("calendar")
    rows = {name: {"setting": name, "items": len(items)} for name in SETTINGS}
    for added in (0, 50, 200):
        for name, setting in SETTINGS.items():
            # A fresh server each time: none finds prompts that another has had read.
            with llama_cpp_server(pull(), SLOTS) as url, FaultyProxy(url, latency=added / 2) as proxy:
                model = remote(proxy.url, SLOTS)
                parser = Parser.from_domain(domain, model, **setting)
                begin = time.perf_counter()
                for item in items:
                    parser.parse(item.utterance)
                seconds = (time.perf_counter() - begin) / len(items)
                rows[name] |= {f"seconds, {added} ms added": round(seconds, 2)}
                write("remote-latency", list(rows.values()))
                model.close()


class Recorder:
    """Rounds of requests as they were asked, by the thread that asked them."""

    def __init__(self, model: RemoteModel) -> None:
        self.rounds: dict[int, list[list[dict[str, Any]]]] = defaultdict(list)
        self.tokens = 0
        self._ask = model._batcher.send
        model._batcher.send = self.round  # type: ignore[method-assign]

    def round(self, requests: Sequence[Any], usage: Usage) -> Any:
        """Ask, and write down."""
        spent = Usage()
        replies = self._ask(requests, spent)
        usage += spent
        self.tokens += spent.completion_tokens
        if requests:
            self.rounds[threading.get_ident()].append([request.body for request in requests])
        return replies


def throughput(items: Sequence[Example]) -> None:
    """Tokens a second of searches, and of the same requests sent without any search, each by a fresh server."""
    rows: list[dict[str, object]] = []
    for repetition in range(3):
        with llama_cpp_server(pull(), SLOTS * ITEMS_AT_ONCE) as url:
            model = remote(url, ITEMS_AT_ONCE * SLOTS)
            parser = Parser.from_domain(load_domain("calendar"), model, **SETTINGS["speculative W=5"])
            recorder = Recorder(model)
            begin = time.perf_counter()
            with ThreadPoolExecutor(ITEMS_AT_ONCE) as pool:
                list(pool.map(parser.parse, [item.utterance for item in items]))
            searching = time.perf_counter() - begin
            model.close()
        with llama_cpp_server(pull(), SLOTS * ITEMS_AT_ONCE) as url:
            begin = time.perf_counter()
            plain = replay(url, list(recorder.rounds.values()))
            sending = time.perf_counter() - begin
        speeds = recorder.tokens / searching, plain / sending
        rows.append(
            {
                "run": repetition + 1,
                "items": len(items),
                "tokens, searching": recorder.tokens,
                "tokens, plain": plain,
                "tokens/s, searching": round(speeds[0], 1),
                "tokens/s, plain": round(speeds[1], 1),
                "ratio": round(speeds[0] / speeds[1], 2),
            }
        )
        write("remote-throughput", rows)


def replay(url: str, threads: Sequence[Sequence[Sequence[dict[str, Any]]]]) -> int:
    """Send the same requests in the same rounds, by as many threads; the tokens that came."""
    with httpx2.Client(timeout=600) as client, ThreadPoolExecutor(SLOTS * ITEMS_AT_ONCE) as senders:

        def send(body: dict[str, Any]) -> int:
            answer = client.post(f"{url}/completions", json=body).json()
            return sum(len(choice["logprobs"]["content"]) for choice in answer["choices"] if choice["logprobs"])

        def follow(rounds: Sequence[Sequence[dict[str, Any]]]) -> int:
            return sum(sum(senders.map(send, bodies)) for bodies in rounds)

        with ThreadPoolExecutor(len(threads)) as askers:
            return sum(askers.map(follow, threads))


if __name__ == "__main__":
    number = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000
    chosen = load_domain("calendar").test_examples[:number]
    {"requests": requests, "latency": latency, "throughput": throughput}[sys.argv[1]](chosen)
