"""Names and string literals in canonical SQL: the same text for SQLite, DuckDB and PostgreSQL."""

import re
from functools import cache
from importlib.resources import files

PLAIN = re.compile(r"[a-z_][a-z0-9_]*", re.ASCII)
"""Names that need no quotes: PostgreSQL folds others to lower case."""


@cache
def reserved_words() -> frozenset[str]:
    """Return the words that one of the databases does not accept as the name of a table or column."""
    return frozenset((files(__package__) / "reserved_words.txt").read_text(encoding="utf-8").split())


def identifier(name: str) -> str:
    """Return a name as it is written in SQL: in double quotes only if needed."""
    if PLAIN.fullmatch(name) and name not in reserved_words():
        return name
    return '"' + name.replace('"', '""') + '"'


def string_literal(text: str) -> str:
    """Return a text as a string literal."""
    return "'" + text.replace("'", "''") + "'"


def alias(table: str, number: int, tables: frozenset[str]) -> str:
    """Return the name of the n-th occurrence of a table in one scope: the table's own name, then `city_2` ...

    `tables` are the names of all tables; an alias equals none of them, whatever their case.
    """
    if number == 1:
        return table
    name = f"{table}_{number}"
    taken = {other.casefold() for other in tables}
    while name.casefold() in taken:
        name += "_"
    return name
