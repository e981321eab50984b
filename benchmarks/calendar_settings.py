"""Choose the settings of the bundled calendar domain on its training examples.

A sample of them is held out of the pool and parsed, with one setting changed at a time. The test set is not used.
Run: make settings, or `python benchmarks/calendar_settings.py [number of items]`.
"""

import random
import sys
from dataclasses import replace

from fewparse import load_domain, open_model
from fewparse.options import ParserOptions
from measure import compare

BASE: ParserOptions = {
    "target": "program",
    "prompt": "lisp",
    "examples": 10,
    "retriever": "bm25",
    "order": "best-last",
    "decoder": "speculative",
    "width": 5,
    "rerank": 4.0,
}
CHANGES: list[ParserOptions] = [
    {},
    {"rerank": 0.0},
    {"rerank": 2.0},
    {"rerank": 8.0},
    {"decoder": "beam"},
    {"decoder": "beam", "width": 10},
    {"width": 10},
    {"prompt": "chatml"},
    {"examples": 5},
    {"examples": 16},
    {"retriever": "embedding"},
    {"fold": False},
    {"order": "best-first"},
    {"order": "shuffled"},
]


def main(limit: int) -> None:
    """Write one row per change."""
    whole = load_domain("calendar")
    held_out = random.Random(11).sample(whole.examples, limit)
    domain = replace(whole, examples=tuple(e for e in whole.examples if e not in held_out))
    settings = {describe(change): BASE | change for change in CHANGES}
    compare("calendar-settings", domain, open_model(), held_out, settings)


def describe(change: ParserOptions) -> str:
    """Return the name of a row."""
    if not change:
        return "base: " + ", ".join(f"{name} {value}" for name, value in BASE.items())
    return ", ".join(f"{name} {value}" for name, value in change.items())


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
