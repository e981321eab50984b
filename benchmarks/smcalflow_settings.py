"""Choose the settings of SMCalFlow on its 300 training examples, each parsed without itself in the prompt.

One setting is changed at a time, on a sample of the examples. The dev sets are not used.
Run: python benchmarks/smcalflow_settings.py [canonical | program] [number of items]; needs the dataset.
"""

import random
import sys

from fewparse import load_domain
from fewparse.example import Target
from fewparse.options import ParserOptions
from measure import compare_changes

BASE: ParserOptions = {"prompt": "chatml", "examples": 20, "decoder": "beam", "width": 5, "rerank": 0.0}
# Changes of the search come first: they share the prompt of the base, which is then evaluated once.
CHANGES: dict[Target, tuple[ParserOptions, list[ParserOptions]]] = {
    "canonical": (
        {"max_tokens": 60},
        [
            {},
            {"rerank": 2.0},
            {"rerank": 4.0},
            {"prompt": "canonical", "rerank": 2.0},
            {"prompt": "chatml-context", "rerank": 2.0},
            {"examples": 10, "rerank": 2.0},
        ],
    ),
    "program": (
        {"examples": 10, "max_tokens": 240},
        [{}, {"rerank": 2.0}, {"prompt": "lisp"}, {"examples": 5}],
    ),
}


def main(target: Target, limit: int) -> None:
    """Write one row per change."""
    domain = load_domain("smcalflow")
    items = random.Random(77).sample(domain.examples, limit)
    base, changes = CHANGES[target]
    compare_changes(f"smcalflow-settings-{target}", domain, items, {"target": target} | BASE | base, changes)


if __name__ == "__main__":
    chosen: Target = "program" if sys.argv[1:2] == ["program"] else "canonical"
    main(chosen, int(sys.argv[2]) if len(sys.argv) > 2 else 30)
