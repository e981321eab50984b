"""A domain small enough to tune a model for it in seconds."""

import json
from collections.abc import Sequence
from pathlib import Path

from fewparse import Domain, Example, load_domain

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


def make_switches(folder: Path, examples: Sequence[Example] = EXAMPLES) -> Domain:
    """Write the domain to a new folder and load it."""
    folder.mkdir(parents=True)
    (folder / "domain.toml").write_text(SETTINGS)
    (folder / "grammar.lark").write_text(GRAMMAR)
    lines = [json.dumps({"utterance": e.utterance, "program": e.program}) for e in examples]
    (folder / "examples.jsonl").write_text("\n".join(lines) + "\n")
    return load_domain(str(folder))
