"""Choose the settings of the Overnight domains on training examples of `overnight/calendar`.

The pool is the first 200 training examples; a sample of the others is parsed, with one setting changed at a time.
The test set is not used.
Run: python benchmarks/overnight_settings.py [canonical | program] [number of items]; needs the dataset.
"""

import random
import sys

from fewparse import load_domain
from fewparse.example import Target
from fewparse.options import ParserOptions
from measure import compare_changes

BASE: ParserOptions = {
    "examples": 20,
    "retriever": "embedding",
    "order": "best-last",
    "decoder": "speculative",
    "width": 10,
    "rerank": 4.0,
}
# Changes of the search come first: they share the prompt of the base, which is then evaluated once.
CHANGES: dict[Target, tuple[ParserOptions, list[ParserOptions]]] = {
    "canonical": (
        {"prompt": "rewrite"},
        [
            {},
            {"rerank": 2.0},
            {"rerank": 8.0},
            {"rerank": 16.0},
            {"width": 5},
            {"decoder": "greedy"},
            {"decoder": "beam", "width": 5},
            {"decoder": "beam"},
            {"prompt": "canonical"},
            {"prompt": "chatml"},
            {"prompt": "arrow"},
            {"prompt": "question"},
            {"examples": 10},
            {"examples": 30},
            {"retriever": "bm25"},
            {"order": "best-first"},
            {"order": "shuffled"},
        ],
    ),
    "program": (
        {"prompt": "lisp", "examples": 10},
        [{}, {"rerank": 8.0}, {"decoder": "beam", "width": 5}, {"prompt": "chatml"}, {"examples": 5}],
    ),
}


def main(target: Target, limit: int) -> None:
    """Write one row per change."""
    domain = load_domain("overnight/calendar")
    items = random.Random(77).sample(domain.spare_examples, limit)
    base, changes = CHANGES[target]
    compare_changes(f"overnight-settings-{target}", domain, items, {"target": target} | BASE | base, changes)


if __name__ == "__main__":
    chosen: Target = "program" if sys.argv[1:2] == ["program"] else "canonical"
    main(chosen, int(sys.argv[2]) if len(sys.argv) > 2 else 30)
