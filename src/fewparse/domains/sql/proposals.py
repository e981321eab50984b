"""Propose examples: usual questions about a schema, with real values, whose queries have an answer.

A query is made from a pattern, such as "the largest of", and the schema, and brought into the normal form. Its
utterance is its canonical English. What the grammar does not derive, fails or has no rows is dropped.
"""

import time

from fewparse.domains.sql.database import Database
from fewparse.domains.sql.execution import DatabaseExecutor
from fewparse.domains.sql.normal_form import canonical_sql
from fewparse.domains.sql.patterns import Queries
from fewparse.domains.sql.rows import Rows
from fewparse.errors import ExecutionError, SqlError
from fewparse.example import Example
from fewparse.grammar.synchronous import SynchronousGrammar
from fewparse.grammar.translation.translator import Translator

MAX_WORDS = 30
MAX_ROWS = 50
MAX_SECONDS = 60.0


def propose(
    database: Database, grammar: SynchronousGrammar, executor: DatabaseExecutor, count: int, seed: int
) -> list[Example]:
    """Return up to `count` examples, spread over tables and patterns; equal seeds give equal examples."""
    translator = Translator(grammar)
    found: dict[str, Example] = {}
    answers = set[str]()
    deadline = time.monotonic() + MAX_SECONDS
    for sql in Queries(database, executor, seed):
        if len(found) == count or time.monotonic() > deadline:
            break
        example = as_example(sql, database, translator)
        if example is None or example.program in found:
            continue
        rows = rows_of(example.program, executor)
        if rows is not None and (shown := repr(rows.rows)) not in answers:
            answers.add(shown)
            found[example.program] = example
    return list(found.values())


def as_example(sql: str, database: Database, translator: Translator) -> Example | None:
    """Return a query with its canonical English; None if it has none, or a long one."""
    try:
        program = canonical_sql(sql, database)
    except SqlError:
        return None
    utterance = translator.to_utterance(program).best
    return None if utterance is None or len(utterance.split()) > MAX_WORDS else Example(utterance, program)


def rows_of(program: str, executor: DatabaseExecutor) -> Rows | None:
    """Return the rows of a query if they are worth asking for: some, not many, and not all of them missing."""
    try:
        rows = executor.rows(program, MAX_ROWS)
    except ExecutionError:
        return None
    if rows.truncated or not any(value not in (None, "", 0) for row in rows.rows for value in row):
        return None
    return rows
