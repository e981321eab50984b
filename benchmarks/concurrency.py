"""Compare parses one by one with parses at a time on the tuned calendar, in one run on one machine.

The models take turns, and their outputs must be equal. Run: make bench, or
`python benchmarks/concurrency.py [number of utterances]`.
"""

import sys
import time
from statistics import median

from fewparse import Parser, load_domain, open_model
from fewparse.lm.local import usable_cores
from measure import write

ROUNDS = 3


def main(count: int) -> None:
    """Write one row per number of parses at a time: utterances a second, and the ratio to one by one."""
    cores = usable_cores()
    levels = [n for n in (1, 2, 4, 8, 16, 32) if n == 1 or n <= cores]
    models = {n: open_model(max_concurrency=n) for n in levels}
    parsers = {n: Parser.from_domain("calendar", model) for n, model in models.items()}
    utterances = [example.utterance for example in load_domain("calendar").test_examples[:count]]
    rates: dict[int, list[float]] = {n: [] for n in levels}
    outputs: dict[int, list[object]] = {}
    for n, parser in parsers.items():
        list(parser.parse_many(utterances[: 2 * n]))  # opens the contexts
    for _ in range(ROUNDS):
        for n, parser in parsers.items():
            start = time.perf_counter()
            parses = list(parser.parse_many(utterances))
            rates[n].append(len(parses) / (time.perf_counter() - start))
            outputs[n] = [[(c.text, c.score) for c in parse.candidates] for parse in parses]
    for model in models.values():
        model.close()
    rows: list[dict[str, object]] = [
        {
            "parses at a time": n,
            "threads each": cores // n,
            "utterances a second": round(median(rates[n]), 2),
            "ratio": round(median(rates[n]) / median(rates[1]), 2),
            "same outputs": outputs[n] == outputs[1],
        }
        for n in levels
    ]
    write("concurrency", rows)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 24)
