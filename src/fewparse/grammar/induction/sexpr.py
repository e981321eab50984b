"""Read S-expressions: words, quoted texts and forms, each with its place in the source.

Blanks only separate, and `compact` writes the one form in which programs are compared: a single blank between
parts, none inside the brackets. A `#`, `'` or `^` right before a bracket belongs to it, as in `#(Number 1)`.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, NoReturn

from fewparse.errors import GrammarError

TOKEN = re.compile(
    r"""(?P<space>\s+)
      |(?P<open>[#'^]?\()
      |(?P<close>\))
      |(?P<quoted>"[^"\\]*(?:\\.[^"\\]*)*")
      |(?P<word>[^\s()"]+)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Atom:
    """A word, or a text with its quotes and escapes as they are written."""

    text: str
    at: int = field(compare=False)

    @property
    def quoted(self) -> bool:
        """Whether this is a text in quotes."""
        return self.text.startswith('"')


@dataclass(eq=False)
class Form:
    """What stands between two brackets; `opening` is the opening one."""

    opening: str
    at: int
    items: "list[Node]" = field(default_factory=list, repr=False)


Node = Atom | Form


def read_program(source: str, name: str = "<program>") -> Node:
    """The one expression of a source text, however deep; mistakes are `GrammarError`s with line and caret."""
    found: list[Node] = []
    still_open: list[Form] = []
    at = 0
    while at < len(source):
        match = TOKEN.match(source, at)
        if match is None:
            fail("this text is never closed", source, at, name, 'Texts end in "; inside of them write \\".')
        kind, text = match.lastgroup, match.group()
        if kind == "close":
            if not still_open:
                fail("nothing is open that this ) could close", source, at, name)
            still_open.pop()
        elif kind != "space":
            siblings = still_open[-1].items if still_open else found
            if not still_open and found:
                fail("a program is one expression, and here begins another", source, at, name)
            node: Node = Form(text, at) if kind == "open" else Atom(text, at)
            siblings.append(node)
            if isinstance(node, Form):
                still_open.append(node)
        at = match.end()
    if still_open:
        fail(f"this {still_open[-1].opening} is never closed", source, still_open[-1].at, name)
    if not found:
        fail("there is no expression here", source, 0, name)
    return found[0]


def fail(message: str, source: str, at: int, name: str, hint: str | None = None) -> NoReturn:
    """Report a mistake at a place of the source."""
    line = source.count("\n", 0, at) + 1
    column = at - (source.rfind("\n", 0, at) + 1) + 1
    raise GrammarError(message, name, line, column, source, hint)


def compact(node: Node) -> str:
    """An expression with one blank between its parts and none elsewhere."""
    pieces: list[str] = []
    agenda: list[Node | str] = [node]
    while agenda:
        part = agenda.pop()
        if isinstance(part, str):
            pieces.append(part)
        elif isinstance(part, Atom):
            pieces.append(part.text)
        else:
            pieces.append(part.opening)
            agenda.append(")")
            for i, item in reversed(list(enumerate(part.items))):
                agenda += [item, " "] if i else [item]
    return "".join(pieces)


class Part(NamedTuple):
    """One argument: its keyword if it has one, and the slot of its value, which a keyword may lack."""

    keyword: str
    slot: str


Shape = tuple[Part, ...]
OPERATOR = "operator"


class Call(NamedTuple):
    """A form taken apart: the opening with the words that name the function, its arguments, and their values."""

    head: str
    shape: Shape
    values: tuple[Node, ...]


def take_apart(form: Form, apply_heads: Collection[str]) -> Call:
    """The function and arguments of a form.

    A head that applies another name, as `call` does in `(call f x)`, names the function together with it. Where
    the function is no word but an expression, as in `((lambda x y) z)`, it is a value of its own, the operator.
    """
    words: list[str] = []
    for item in form.items[:2]:
        if isinstance(item, Form) or item.quoted or (words and words[0] not in apply_heads):
            break
        words.append(item.text)
    shape: list[Part] = []
    values: list[Node] = []
    position = 0
    arguments = iter(form.items[len(words) :])
    if not words or (len(words) == 1 and words[0] in apply_heads):
        for operator in islice(arguments, 1):
            shape.append(Part("", OPERATOR))
            values.append(operator)
    keyword = ""
    for item in arguments:
        if is_keyword(item):
            if keyword:
                shape.append(Part(keyword, ""))
            keyword = compact(item)
            continue
        position += not keyword
        shape.append(Part(keyword, keyword or str(position)))
        values.append(item)
        keyword = ""
    if keyword:
        shape.append(Part(keyword, ""))
    return Call(form.opening + " ".join(words), tuple(shape), tuple(values))


def is_keyword(node: Node) -> bool:
    """Whether this is a word such as `:name`, which says what the argument behind it is."""
    return isinstance(node, Atom) and len(node.text) > 1 and node.text.startswith(":")
