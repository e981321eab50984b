"""Propose examples: pairs sampled from the grammar whose queries have an answer worth asking for."""

import re
import time
from collections.abc import Iterator

from fewparse.domains.sql.execution import DatabaseExecutor
from fewparse.domains.sql.rows import Rows
from fewparse.errors import ExecutionError
from fewparse.example import Example
from fewparse.grammar.analysis.sampling import sample_pairs
from fewparse.grammar.synchronous import SynchronousGrammar

MAX_WORDS = 20
MAX_ROWS = 30
MAX_SAME_SHAPE = 2
SAMPLES = 200
"""How many pairs are sampled for each example."""
MAX_SECONDS = 60.0
DEPTH = 6


def propose(grammar: SynchronousGrammar, executor: DatabaseExecutor, count: int, seed: int) -> list[Example]:
    """Return up to `count` examples; their utterances are canonical English, for people to rephrase."""
    found: dict[str, Example] = {}
    shapes: dict[str, int] = {}
    answers: set[str] = set()
    deadline = time.monotonic() + MAX_SECONDS
    for utterance, program in candidates(grammar, count, seed):
        if len(found) == count or time.monotonic() > deadline:
            break
        shape = shape_of(program)
        if program in found or shapes.get(shape, 0) == MAX_SAME_SHAPE:
            continue
        rows = rows_of(program, executor)
        if rows is None or repr(rows.rows) in answers:
            continue
        answers.add(repr(rows.rows))
        shapes[shape] = shapes.get(shape, 0) + 1
        found[program] = Example(utterance, program)
    return list(found.values())


def candidates(grammar: SynchronousGrammar, count: int, seed: int) -> Iterator[tuple[str, str]]:
    """Yield sampled pairs that are not too long to ask."""
    for pair in sample_pairs(grammar, SAMPLES * count, seed, DEPTH):
        if len(pair.utterance.split()) <= MAX_WORDS:
            yield pair


def rows_of(program: str, executor: DatabaseExecutor) -> Rows | None:
    """Return the rows of a query if they are worth asking for: some, not many, and not all of them missing."""
    try:
        rows = executor.rows(program, MAX_ROWS)
    except ExecutionError:
        return None
    if rows.truncated or not rows.rows or all(value in (None, "", 0) for row in rows.rows for value in row):
        return None
    return rows


def shape_of(program: str) -> str:
    """Return a query without its literals."""
    return re.sub(r"'(?:[^']|'')*'|\b\d[\d.]*\b", "?", program)
