"""A tiny domain for the toy model: the programs are short strings of letters."""

from pathlib import Path

from fewparse import Domain, load_domain
from support.domain_files import write_domain

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
    """Write the domain to a folder and load it."""
    examples = [{"utterance": u, "program": p} for u, p in EXAMPLES]
    return load_domain(write_domain(folder, SETTINGS, examples, {"grammar.lark": GRAMMAR}))
