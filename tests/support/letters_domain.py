"""A tiny domain for the toy model: the programs are short strings of letters."""

import json
from pathlib import Path

from fewparse import Domain, load_domain

SETTINGS = """\
name = "letters"
[retrieve]
examples = 2
retriever = "bm25"
[constraint]
grammar = "grammar.lark"
[search]
decoder = "greedy"
max_tokens = 12
"""
GRAMMAR = 'start: "a" "b"* "c"'
EXAMPLES = [("one", "abc"), ("two", "abbc"), ("three", "ac")]


def make_letters(folder: Path) -> Domain:
    """Write the domain into a folder and load it."""
    folder.mkdir(exist_ok=True)
    (folder / "domain.toml").write_text(SETTINGS)
    (folder / "grammar.lark").write_text(GRAMMAR)
    lines = [json.dumps({"utterance": u, "program": p}) for u, p in EXAMPLES]
    (folder / "examples.jsonl").write_text("\n".join(lines))
    return load_domain(folder)
