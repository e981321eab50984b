"""A domain small enough to tune a model for it in seconds."""

from collections.abc import Sequence
from pathlib import Path

from fewparse import Domain, Example, load_domain
from support.domain_files import write_domain

SETTINGS = """\
name = "switches"
[retrieve]
examples = 2
retriever = "all"
fold = ["ROOM"]
[search]
decoder = "greedy"
width = 1
max_tokens = 32
"""
GRAMMAR = """\
start: "(" ("on" | "off") " " ("lamp" | "radio") " " ROOM ")"
ROOM: "hall" | "office" | "kitchen" | "attic"
"""
EXAMPLES = tuple(
    Example(f"{device} {state} in the {room}", f"({state} {device} {room})")
    for room in ("hall", "office", "kitchen")
    for device in ("lamp", "radio")
    for state in ("on", "off")
)

REPHRASED = tuple(
    Example(utterance, example.program)
    for example in EXAMPLES
    for device, state, *_, room in [example.utterance.split()]
    for utterance in (example.utterance, f"in the {room} the {device} {state} please")
)
"""The same examples, each in two wordings: enough for the word alignment to find many right programs."""


def make_switches(folder: Path, examples: Sequence[Example] = EXAMPLES) -> Domain:
    """Write the domain to a folder and load it."""
    rows = [{"utterance": e.utterance, "program": e.program} for e in examples]
    return load_domain(str(write_domain(folder, SETTINGS, rows, {"grammar.lark": GRAMMAR})))
