"""Compare the decoders on the calendar test set with programs as outputs: accuracy, requests, tokens, seconds.

All settings run one after another on each item, so that the figures of one run are comparable.
Run: make bench-full, or `python benchmarks/decoders.py [number of items]`.
"""

import json
import math
import sys

from fewparse import load_domain, open_model
from fewparse.evaluate.run import SystemResult
from fewparse.options import ParserOptions
from measure import RESULTS, compare

PLAIN: ParserOptions = {"free_back_off": False, "free_branching": False, "forced_spans": False, "margin": math.inf}
SPECULATIVE: ParserOptions = {"decoder": "speculative", "temperature": 0.5}
SETTINGS: dict[str, ParserOptions] = {
    "greedy": {"decoder": "greedy"},
    "beam 5": {"decoder": "beam", "width": 5},
    "beam 5, forced spans": {"decoder": "beam", "width": 5, "forced_spans": True},
    "speculative W=1 T=0": {**SPECULATIVE, "width": 1, "temperature": 0.0},
    "speculative W=1 T=0, plain": {**SPECULATIVE, **PLAIN, "width": 1, "temperature": 0.0},
    "speculative W=5": {**SPECULATIVE, "width": 5},
    "speculative W=5, plain": {**SPECULATIVE, **PLAIN, "width": 5},
    "speculative W=5, free back-off": {**SPECULATIVE, **PLAIN, "width": 5, "free_back_off": True},
    "speculative W=5, free branching": {**SPECULATIVE, **PLAIN, "width": 5, "free_branching": True},
    "speculative W=5, forced spans": {**SPECULATIVE, **PLAIN, "width": 5, "forced_spans": True},
    "speculative W=5, margin": {**SPECULATIVE, **PLAIN, "width": 5, "margin": 1.0},
    "speculative W=5, forced spans too": {**SPECULATIVE, "width": 5, "forced_spans": True},
    "speculative W=10": {**SPECULATIVE, "width": 10},
    "greedy, unconstrained": {"decoder": "greedy", "constrained": False},
    "beam 5, unconstrained": {"decoder": "beam", "width": 5, "constrained": False},
    "speculative W=1 T=0, unconstrained": {
        **SPECULATIVE,
        "width": 1,
        "temperature": 0.0,
        "constrained": False,
    },
    "speculative W=5, unconstrained": {**SPECULATIVE, "width": 5, "constrained": False},
    "speculative W=10, unconstrained": {**SPECULATIVE, "width": 10, "constrained": False},
}


def main(limit: int) -> None:
    """Write one row per setting, and the agreement of speculative W=1 T=0 with greedy decoding."""
    domain = load_domain("calendar")
    items = domain.test_examples[:limit]
    settings: dict[str, ParserOptions] = {
        name: {**setting, "target": "program"} for name, setting in SETTINGS.items()
    }
    by_name = compare("decoders", domain, open_model(), items, settings)
    write_agreement(by_name["greedy"], by_name["speculative W=1 T=0"])
    write_items([item.program for item in items], by_name)


def write_agreement(greedy: SystemResult, speculative: SystemResult) -> None:
    """Write the items on which speculative decoding (W=1 T=0) differs from greedy decoding."""
    pairs = list(zip(first_outputs(greedy), first_outputs(speculative), strict=True))
    different = [{"greedy": a, "speculative": b} for a, b in pairs if a != b]
    agreement = {"items": len(pairs), "same": len(pairs) - len(different), "different": different}
    (RESULTS / "agreement.json").write_text(json.dumps(agreement, indent=1) + "\n")


def write_items(gold: list[str], results: dict[str, SystemResult]) -> None:
    """Write the output of each setting for each item, and whether it is correct."""
    outputs = {name: first_outputs(result) for name, result in results.items()}
    correct = {name: [r.correct_within(1) for r in result.records] for name, result in results.items()}
    rows = [
        {"gold": program, "outputs": {name: [outputs[name][i], correct[name][i]] for name in results}}
        for i, program in enumerate(gold)
    ]
    (RESULTS / "decoders-items.json").write_text(json.dumps(rows, indent=1) + "\n")


def first_outputs(result: SystemResult) -> list[str | None]:
    """Return the best output for each item."""
    return [record.outputs[0] if record.outputs else None for record in result.records]


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
