"""Read SEMPRE example files, the Lisp format in which Overnight was published.

    (example
      (utterance "...")
      (original "...")
      (targetFormula (call edu.stanford.nlp.sempre.overnight.SimpleWorld.listValue ...)))

A formula may be split over lines anywhere. It is returned on one line, with single spaces between its elements and
without the Java class before the names of the functions.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from fewparse.datasets.dataset import CHECK_FILE
from fewparse.errors import DataError, line_and_column
from fewparse.example import Example
from fewparse.grammar.induction.sexpr import Atom, Form, Node, compact

PREFIX = "edu.stanford.nlp.sempre.overnight.SimpleWorld."
TOKEN = re.compile(
    r"""(?P<space>(?:\s|\#[^\n]*)++)
      |(?P<open>\()
      |(?P<close>\))
      |(?P<quoted>"[^"\\]*+(?:\\.[^"\\]*+)*+")
      |(?P<word>(?:[^\s()"\\]++|\\.)++)""",
    re.VERBOSE | re.DOTALL,
)
ESCAPE = re.compile(r"\\(.)", re.DOTALL)
ESCAPED = {"n": "\n", "t": "\t"}


def read_sempre(source: str, path: Path) -> Iterator[Example]:
    """Yield the examples of a file; raise `DataError` with line and column at a mistake."""
    for form in top_level_forms(source, path):
        if not has_head(form, "example"):
            fail("expected (example ...)", source, form.at, path)
        fields: dict[str, Node] = {}
        for field in form.items[1:]:
            if isinstance(field, Form) and len(field.items) == 2 and isinstance(field.items[0], Atom):
                fields[field.items[0].text] = field.items[1]
        for name in ("utterance", "original", "targetFormula"):
            if name not in fields or not text_of(fields[name]).strip():
                fail(f"this example has no ({name} ...)", source, form.at, path)
        yield Example(
            utterance=text_of(fields["utterance"]),
            canonical=text_of(fields["original"]),
            program=compact(fields["targetFormula"]),
        )


def top_level_forms(source: str, path: Path) -> Iterator[Form]:
    """Yield the top-level S-expressions of a file."""
    still_open: list[Form] = []
    at = 0
    while at < len(source):
        match = TOKEN.match(source, at)
        if match is None:
            start = still_open[0].at if still_open else at
            fail("a string in this example is not closed", source, start, path)
        kind, text = match.lastgroup, match.group()
        if kind == "open":
            form = Form(text, at)
            if still_open:
                still_open[-1].items.append(form)
            still_open.append(form)
        elif kind == "close":
            if not still_open:
                fail("unmatched )", source, at, path)
            closed = still_open.pop()
            if not still_open:
                yield closed
        elif kind != "space":
            if not still_open:
                fail("expected (example ...)", source, at, path)
            siblings = still_open[-1].items
            is_function = len(siblings) == 1 and has_head(still_open[-1], "call")
            siblings.append(Atom(text.removeprefix(PREFIX) if is_function else text, at))
        at = match.end()
    if still_open:
        fail("the file ends within this example", source, still_open[0].at, path)


def has_head(form: Form, word: str) -> bool:
    """Return whether the first element of a form is this word."""
    first = form.items[0] if form.items else None
    return isinstance(first, Atom) and first.text == word


def text_of(node: Node) -> str:
    """Return the unescaped text of a word or string, or the source of a form."""
    if isinstance(node, Form):
        return compact(node)
    text = node.text[1:-1] if node.quoted else node.text
    return ESCAPE.sub(lambda escape: ESCAPED.get(escape[1], escape[1]), text)


def fail(message: str, source: str, at: int, path: Path) -> NoReturn:
    """Raise a `DataError` at a position of the source."""
    raise DataError(message, path, *line_and_column(source, at), source, CHECK_FILE)
