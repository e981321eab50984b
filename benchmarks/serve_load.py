"""Load of a server: many clients for a while, then the figures.

    python benchmarks/serve_load.py --clients 50 --seconds 60

It starts `fewparse serve calendar`, measures a bare `Parser` in a loop and a single client for comparison, and
then the clients together: statuses, throughput, latencies, memory, and the time of /healthz. Every parse must
equal that of the bare parser. A client waits as long as Retry-After says.
"""

import argparse
import json
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import httpx2

from fewparse import Parser

UTTERANCES = [
    line for line in (Path(__file__).parents[1] / "demo/utterances.txt").read_text().splitlines() if line
]
COMMAND = [sys.executable, "-c", "from fewparse.cli.main import run; run()", "serve", "calendar", "--port", "0"]


class Load:
    """Clients that parse until the time is over, and what they saw."""

    def __init__(self, url: str, expected: dict[str, str | None]) -> None:
        self._url, self._expected = url, expected
        self.statuses: Counter[int] = Counter()
        self.latencies: list[float] = []
        self.health: list[float] = []
        self.wrong: list[str] = []
        self._stopping = threading.Event()

    def run(self, clients: int, seconds: float) -> None:
        """Run the clients, and one that asks /healthz."""
        threads = [threading.Thread(target=self._client, args=(i,)) for i in range(clients)]
        threads.append(threading.Thread(target=self._health))
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        self._stopping.set()
        for thread in threads:
            thread.join()

    def _client(self, number: int) -> None:
        with httpx2.Client(base_url=self._url, timeout=120) as client:
            turn = number
            while not self._stopping.is_set():
                utterance = UTTERANCES[turn % len(UTTERANCES)]
                turn += 1
                started = time.perf_counter()
                response = client.post("/v1/parse", json={"utterance": utterance})
                self.statuses[response.status_code] += 1
                if response.status_code != httpx2.codes.OK:
                    self._stopping.wait(float(response.headers.get("Retry-After", "1")))
                    continue
                self.latencies.append(time.perf_counter() - started)
                program = response.json()["parses"][0]["program"]
                if program != self._expected[utterance]:
                    self.wrong.append(f"{utterance}: {program}")

    def _health(self) -> None:
        with httpx2.Client(base_url=self._url, timeout=120) as client:
            while not self._stopping.wait(0.05):
                started = time.perf_counter()
                client.get("/healthz").raise_for_status()
                self.health.append(time.perf_counter() - started)


def percentile(values: Sequence[float], percent: int) -> float:
    """Return a percentile of values."""
    return statistics.quantiles(values, n=100)[percent - 1] if len(values) > 1 else sum(values)


def resident_megabytes(process: int) -> float:
    """Return the resident memory of a process."""
    fields = Path(f"/proc/{process}/statm").read_text().split()
    return int(fields[1]) * 4096 / 1e6


def bare_rate(seconds: float) -> tuple[float, dict[str, str | None]]:
    """Return the parses per second of a parser in a loop, and the program of every utterance."""
    parser = Parser.from_domain("calendar")
    programs = {utterance: parser.parse(utterance).program for utterance in UTTERANCES}
    started, count = time.perf_counter(), 0
    while time.perf_counter() - started < seconds:
        parser.parse(UTTERANCES[count % len(UTTERANCES)])
        count += 1
    rate = count / (time.perf_counter() - started)
    parser.model.close()
    return rate, programs


def main() -> None:
    """Measure, and print the figures as JSON."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--clients", type=int, default=50)
    options.add_argument("--seconds", type=float, default=60.0)
    chosen = options.parse_args()
    rate, expected = bare_rate(chosen.seconds / 3)
    with subprocess.Popen(COMMAND, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            url = server.stderr.readline().strip().partition(" at ")[2]
            warm = Load(url, expected)
            warm.run(1, chosen.seconds / 6)
            single = Load(url, expected)
            single.run(1, chosen.seconds / 3)
            before = resident_megabytes(server.pid)
            many = Load(url, expected)
            many.run(chosen.clients, chosen.seconds)
            after = resident_megabytes(server.pid)
        finally:
            server.terminate()
    figures = {
        "clients": chosen.clients,
        "seconds": chosen.seconds,
        "statuses": {str(status): count for status, count in sorted(many.statuses.items())},
        "bare parses per second": round(rate, 3),
        "single client": round(len(single.latencies) / (chosen.seconds / 3) / rate, 3),
        "all clients": round(len(many.latencies) / chosen.seconds / rate, 3),
        "seconds per parse, p50": round(percentile(many.latencies, 50), 3),
        "seconds per parse, p99": round(percentile(many.latencies, 99), 3),
        "seconds of /healthz, p99": round(percentile(many.health, 99), 4),
        "megabytes before and after": [round(before), round(after)],
        "other programs than the bare parser's": many.wrong + single.wrong,
    }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
