"""Memory of a long-running process: many parses of the tuned calendar domain with the default settings.

The utterances are the training and test examples of the domain, each changed a little on every pass, so that no
cache answers them. The resident memory is read after a warm-up and at the end; their ratio is the result.
Run: python benchmarks/soak.py [number of parses].
"""

import itertools
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from fewparse import Domain, Parser, load_domain
from measure import RESULTS

PARSES = 2_000
WARM_UP = 200
REPORT_EVERY = 100
VARIATIONS = ("{}", "please {}", "{} please", "{}, thanks", "ok, {}", "{}?", "hey {}", "{} now", "um, {}", "{}...")


def utterances(domain: Domain) -> Iterator[str]:
    """Yield the utterances of all examples, again and again, each time with another variation."""
    known = [example.utterance for example in (*domain.test_examples, *domain.examples)]
    for variation in itertools.cycle(VARIATIONS):
        for utterance in known:
            yield variation.format(utterance)


def resident_bytes() -> int:
    """Return the resident memory of this process."""
    status = Path("/proc/self/status").read_text()
    fields = dict(line.split(":", 1) for line in status.splitlines())
    return int(fields["VmRSS"].split()[0]) * 1024


def main(count: int) -> None:
    """Parse, and write the memory used every hundred parses."""
    domain = load_domain("calendar")
    parser = Parser.from_domain(domain)
    memory: dict[int, int] = {}
    start = time.perf_counter()
    for number, utterance in enumerate(itertools.islice(utterances(domain), count), 1):
        parser.parse(utterance)
        if number % REPORT_EVERY == 0 or number == count:
            memory[number] = resident_bytes()
            print(
                f"{number:6} parses {memory[number] / 1e6:8.1f} MB {time.perf_counter() - start:8.1f} s",
                flush=True,
            )
    first = min(WARM_UP, max(memory))
    result = {
        "parses": count,
        "warm-up parses": first,
        "MB after the warm-up": round(memory[first] / 1e6, 1),
        "MB at the end": round(memory[count] / 1e6, 1),
        "ratio": round(memory[count] / memory[first], 4),
        "MB by number of parses": {number: round(size / 1e6, 1) for number, size in memory.items()},
        "seconds per parse": round((time.perf_counter() - start) / count, 3),
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "soak.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else PARSES)
