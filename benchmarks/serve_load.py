"""Load of a server: many clients for a while, compared with the command line and with a bare parser.

    python benchmarks/serve_load.py --clients 50 --seconds 60

It starts `fewparse serve calendar`, with the tuned embedded model, and measures one after the other:

1. what the command line prints for utterances of the test set; every parse of the server must equal it,
2. one client and a bare `Parser` in this process, in turns, utterance by utterance the same,
3. the time to the first event of a stream while the server is idle,
4. all clients together: statuses, throughput, latencies, memory of the server, and the time of /healthz,
5. the bare parser once more, so that a change of the machine's speed during the run counts for both.

Throughput is the time that a bare parser needs for the parses of a second. Run it on an idle machine.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from fewparse import Parser, load_domain
from measure import write

FEWPARSE = [sys.executable, "-c", "from fewparse.cli.main import run; run()"]
BLOCK = 5
STREAMS = 30
NOT_COMPARED = ("id", "usage")
"""Fields of a parse that differ from run to run."""


@contextmanager
def server(searches: int) -> Iterator[tuple[str, int]]:
    """Yield the address of a server that runs some searches at a time, and its process id."""
    command = [*FEWPARSE, "serve", "calendar", "--port", "0", "--max-concurrency", str(searches)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline().strip()
            assert line.startswith("Serving "), line
            yield line.partition(" at ")[2], process.pid
        finally:
            process.terminate()


def command_line(utterances: Sequence[str]) -> dict[str, Any]:
    """Return the parse of every utterance as the command line prints it."""
    command = [*FEWPARSE, "parse", "calendar", "--json"]
    done = subprocess.run(command, input="\n".join(utterances), stdout=subprocess.PIPE, text=True, check=False)
    parses = [comparable(json.loads(line)) for line in done.stdout.splitlines()]
    assert [parse["utterance"] for parse in parses] == list(utterances)
    return dict(zip(utterances, parses, strict=True))


def comparable(parse: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a parse that are the same in every run."""
    return {name: value for name, value in parse.items() if name not in NOT_COMPARED}


class Clients:
    """Clients of a server, and what they saw; parses that differ from the command line's are listed."""

    def __init__(self, url: str, expected: dict[str, Any]) -> None:
        self._url, self._expected = url, expected
        self.statuses: Counter[int] = Counter()
        self.different: list[str] = []
        self.finished: list[tuple[str, float, float]] = []
        """Utterance, start and end of every parse."""
        self.health: list[float] = []
        self._stopping = threading.Event()

    def parse(self, client: httpx2.Client, utterance: str) -> float:
        """Parse an utterance; return the seconds that a refused client should wait."""
        started = time.perf_counter()
        response = client.post("/v1/parse", json={"utterance": utterance})
        ended = time.perf_counter()
        self.statuses[response.status_code] += 1
        if response.status_code != httpx2.codes.OK:
            return float(response.headers.get("Retry-After", "1"))
        self.finished.append((utterance, started, ended))
        if comparable(response.json()["parses"][0]) != self._expected[utterance]:
            self.different.append(utterance)
        return 0

    def run(self, clients: int, seconds: float) -> float:
        """Run clients together, and one that asks /healthz; return when they were stopped."""
        threads = [threading.Thread(target=self._repeat, args=(number, clients)) for number in range(clients)]
        threads.append(threading.Thread(target=self._ask_health))
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        self._stopping.set()
        stopped = time.perf_counter()
        for thread in threads:
            thread.join()
        return stopped

    def _repeat(self, number: int, clients: int) -> None:
        utterances = list(self._expected)
        turn = number * len(utterances) // clients
        with httpx2.Client(base_url=self._url, timeout=600) as client:
            while not self._stopping.is_set():
                self._stopping.wait(self.parse(client, utterances[turn % len(utterances)]))
                turn += 1

    def _ask_health(self) -> None:
        with httpx2.Client(base_url=self._url, timeout=600) as client:
            while not self._stopping.wait(0.05):
                started = time.perf_counter()
                client.get("/healthz").raise_for_status()
                self.health.append(time.perf_counter() - started)


class BareParser:
    """A parser in this process, and its mean time for every utterance."""

    def __init__(self) -> None:
        self._parser = Parser.from_domain("calendar")
        self._seconds: defaultdict[str, list[float]] = defaultdict(list)

    def parse(self, utterances: Sequence[str]) -> float:
        """Parse utterances; return the seconds of all."""
        for utterance in utterances:
            started = time.perf_counter()
            self._parser.parse(utterance)
            self._seconds[utterance].append(time.perf_counter() - started)
        return sum(self._seconds[utterance][-1] for utterance in utterances)

    def seconds(self, utterance: str) -> float:
        """Return the mean time of an utterance."""
        return statistics.mean(self._seconds[utterance])


class Memory:
    """Samples of the resident memory of a process and its children, twice a second, in megabytes."""

    def __init__(self, process: int) -> None:
        self._process, self.samples = process, list[float]()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()

    def stop(self) -> None:
        """End the sampling."""
        self._stopping.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stopping.wait(0.5):
            self.samples.append(resident_bytes(self._process) / 1e6)

    def growth(self, window_seconds: float) -> tuple[float, float]:
        """Return the means of the first and of the last seconds."""
        count = max(1, int(2 * window_seconds))
        return statistics.mean(self.samples[:count]), statistics.mean(self.samples[-count:])


def resident_bytes(process: int) -> int:
    """Return the resident memory of a process and its children."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
        children = [
            int(child)
            for task in Path(f"/proc/{process}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    except FileNotFoundError:  # it has just ended
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(map(resident_bytes, children))


def one_client(clients: Clients, url: str, bare: BareParser, utterances: Sequence[str], seconds: float) -> float:
    """Return by which factor a single client waits longer than a bare parser takes, measured in turns."""
    bare.parse(utterances[:BLOCK])
    with httpx2.Client(base_url=url, timeout=600) as client:
        for utterance in utterances[:BLOCK]:
            clients.parse(client, utterance)
        clients.finished.clear()
        bare_seconds, until, start = 0.0, time.perf_counter() + seconds, 0
        while start < len(utterances) or time.perf_counter() < until:
            block = [utterances[(start + i) % len(utterances)] for i in range(BLOCK)]
            bare_seconds += bare.parse(block)
            for utterance in block:
                clients.parse(client, utterance)
            start += BLOCK
    return sum(ended - started for _, started, ended in clients.finished) / bare_seconds


def first_events(url: str, utterances: Sequence[str]) -> list[float]:
    """Return the seconds to the first event of each stream, one stream after the other."""
    found = []
    with httpx2.Client(base_url=url, timeout=600) as client:
        for i in range(STREAMS):
            body, started = {"utterance": utterances[i % len(utterances)]}, time.perf_counter()
            with client.stream("POST", "/v1/parse/stream", json=body) as response:
                lines = response.iter_lines()
                assert next(lines) == "event: Queued"
                found.append(time.perf_counter() - started)
                for _ in lines:
                    pass
    return found


def percentile(values: Sequence[float], percent: int) -> float:
    """Return a percentile of values."""
    return statistics.quantiles(values, n=100)[percent - 1] if len(values) > 1 else sum(values)


def measure(count: int, clients: int, searches: int, seconds: float) -> list[dict[str, object]]:
    """Return the figures and their bars as rows of a table."""
    examples = load_domain("calendar").test_examples
    utterances = [example.utterance for example in examples[:: max(1, len(examples) // count)]][:count]
    expected, bare = command_line(utterances), BareParser()
    with server(searches) as (url, process):
        single = Clients(url, expected)
        factor = one_client(single, url, bare, utterances, seconds)
        events = first_events(url, utterances)
        memory, many = Memory(process), Clients(url, expected)
        started = time.perf_counter()
        stopped = many.run(clients, seconds)
        memory.stop()
    bare.parse(utterances)
    served = [utterance for utterance, _, ended in many.finished if ended <= stopped]
    throughput = sum(map(bare.seconds, served)) / (stopped - started)
    latencies = [ended - began for _, began, ended in many.finished]
    first, last = memory.growth(min(60.0, seconds / 4))
    statuses = single.statuses + many.statuses
    different = sorted({*single.different, *many.different})
    health, event = percentile(many.health, 99), percentile(events, 99)

    def row(figure: str, value: object, bar: str = "", met: bool | None = None) -> dict[str, object]:
        return {"figure": figure, "value": value, "bar": bar, "met": "" if met is None else "yes" if met else "no"}

    return [
        row("clients", clients),
        row("searches at a time", searches),
        row("seconds", seconds),
        row("utterances", len(utterances)),
        row(
            "responses by status",
            ", ".join(f"{count} of {status}" for status, count in sorted(statuses.items())),
            "200 and 429 only",
            set(statuses) <= {200, 429},
        ),
        row("parses that differ from the command line's", len(different), "0", not different),
        row(
            "MB of memory, at the start and at the end",
            f"{first:.0f}, {last:.0f} ({last / first - 1:+.1%})",
            "within 5%",
            abs(last / first - 1) <= 0.05,
        ),
        row("ms of /healthz under load, p99", round(1000 * health, 1), "under 100", health < 0.1),
        row("throughput, of a bare parser's", f"{throughput:.1%}", "at least 95%", throughput >= 0.95),
        row("parses per second", round(len(served) / (stopped - started), 2)),
        row("seconds of a parse under load, p50", round(percentile(latencies, 50), 2)),
        row("seconds of a parse under load, p99", round(percentile(latencies, 99), 2)),
        row("time that the server adds for one client", f"{factor - 1:+.1%}", "under 5%", factor < 1.05),
        row("ms to the first event when idle, p50", round(1000 * percentile(events, 50), 1)),
        row("ms to the first event when idle, p99", round(1000 * event, 1), "under 50", event < 0.05),
    ]


def main() -> None:
    """Measure, write the table, and print it."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--clients", type=int, default=50)
    options.add_argument("--seconds", type=float, default=60.0)
    options.add_argument("--utterances", type=int, default=100)
    options.add_argument("--max-concurrency", type=int, default=1, help="searches of the server at a time")
    options.add_argument("--out", default="serve-load", help="name of the files in benchmarks/results")
    chosen = options.parse_args()
    rows = measure(chosen.utterances, chosen.clients, chosen.max_concurrency, chosen.seconds)
    write(chosen.out, rows)
    for row in rows:
        print("{figure}: {value}  {bar}  {met}".format(**row))


if __name__ == "__main__":
    main()
