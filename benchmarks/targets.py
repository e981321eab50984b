"""Compare the two targets on the calendar: the model generates programs, or canonical utterances.

Run: python benchmarks/targets.py [test | train]. `train` parses a sample of the training examples instead of the
test set, with no example of the same program in the prompt; the domain's target was chosen on these.
"""

import random
import sys
from dataclasses import replace

from fewparse import load_domain, open_model
from fewparse.example import Target
from fewparse.options import ParserOptions
from measure import compare

DECODERS: dict[str, ParserOptions] = {
    "greedy": {"decoder": "greedy"},
    "beam 5": {"decoder": "beam", "width": 5},
    "speculative W=5": {"decoder": "speculative", "width": 5},
    "speculative W=10": {"decoder": "speculative", "width": 10},
    "speculative W=10, unconstrained": {"decoder": "speculative", "width": 10, "constrained": False},
}
TARGETS: tuple[Target, ...] = ("program", "canonical")
HELD_OUT = 120


def main(part: str) -> None:
    """Write one row per target and decoder."""
    domain = load_domain("calendar")
    items = domain.test_examples
    if part == "train":
        sample = random.Random(8).sample(domain.examples, HELD_OUT)
        programs = {example.program for example in sample}
        domain = replace(domain, examples=tuple(e for e in domain.examples if e.program not in programs))
        items = tuple(sample)
    settings: dict[str, ParserOptions] = {
        f"{target}, {name}": {**decoder, "target": target}
        for target in TARGETS
        for name, decoder in DECODERS.items()
    }
    compare(f"targets-{part}", domain, open_model(), items, settings)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "test")
