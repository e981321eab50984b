"""Reads the text of a program into nested tuples, however deep it is."""

import re
from typing import TypeAlias

from fewparse.errors import ExecutionError

Expression: TypeAlias = "str | tuple[Expression, ...]"

TOKEN = re.compile(r"[()]|[^()\s]+", re.ASCII)


def read(text: str) -> Expression:
    """The one expression of a text: an atom, or a tuple of expressions. Anything else is an `ExecutionError`."""
    found: list[Expression] = []
    outer: list[list[Expression]] = []
    for token in TOKEN.findall(text):
        if token == "(":
            outer.append(found)
            found = []
        elif token == ")":
            if not outer:
                raise ExecutionError("a bracket is closed that was never opened")
            form = tuple(found)
            found = outer.pop()
            found.append(form)
        else:
            found.append(token)
    if outer:
        raise ExecutionError("a bracket is never closed")
    if len(found) != 1:
        raise ExecutionError("a program is one expression")
    return found[0]


def shown(text: str, longest: int = 60) -> str:
    """As much of a text as is worth showing in an error."""
    return text if len(text) <= longest else f"{text[:longest]}…"
