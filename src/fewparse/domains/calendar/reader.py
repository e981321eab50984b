"""Parse programs into trees of words, quoted strings and forms such as `(count (meetings))`; check arguments."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

MAX_LENGTH = 4000
MAX_DEPTH = 40

_TOKEN = re.compile(r'(?P<space>[ \t\r\n]+)|(?P<paren>[()])|"(?P<text>[^"]*)"|(?P<word>[^\s()"]+)')


class ProgramError(ValueError):
    """A program that is malformed, or that has no answer in this world."""


@dataclass(frozen=True)
class Word:
    """An unquoted atom, such as a name, a number or a time."""

    word: str

    def __str__(self) -> str:
        return self.word


@dataclass(frozen=True)
class Text:
    """A quoted string."""

    text: str

    def __str__(self) -> str:
        return f'"{self.text}"'


@dataclass
class Form:
    """A function applied to arguments."""

    head: str
    args: "list[Node]" = field(default_factory=list)

    def __str__(self) -> str:
        return f"({' '.join([self.head, *map(str, self.args)])})"


Node = Word | Text | Form


def read(program: str) -> Form:
    """Parse a program; raise `ProgramError` if it is not one form, or too long or too deep.

    An explicit stack is used, so that deep nesting is reported instead of overflowing the call stack.
    """
    if len(program) > MAX_LENGTH:
        raise ProgramError(f"the program has {len(program)} characters; the limit is {MAX_LENGTH}")
    root = Form("")
    stack = [root]
    position = 0
    while position < len(program):
        match = _TOKEN.match(program, position)
        if match is None:
            raise ProgramError(f"unexpected text at column {position + 1}: {program[position : position + 20]!r}")
        position = match.end()
        kind, text = match.lastgroup, match.group()
        if kind == "space":
            continue
        top = stack[-1]
        if text == ")":
            if top is root:
                raise ProgramError(f"unmatched closing parenthesis at column {position}")
            if not top.head:
                raise ProgramError(f"the form that ends at column {position} has no function")
            stack.pop()
            stack[-1].args.append(top)
        elif top is not root and not top.head:
            if kind != "word":
                raise ProgramError(f"expected a function name before column {position}")
            top.head = text
        elif text == "(":
            if len(stack) > MAX_DEPTH:
                raise ProgramError(f"nested more than {MAX_DEPTH} deep")
            stack.append(Form(""))
        elif kind == "word":
            top.args.append(Word(text))
        else:
            top.args.append(Text(match.group("text")))
    if len(stack) > 1:
        raise ProgramError(f"{len(stack) - 1} parentheses are not closed")
    if len(root.args) != 1 or not isinstance(root.args[0], Form):
        raise ProgramError("a program is exactly one form in parentheses")
    return root.args[0]


def only_argument(form: Form) -> Node:
    """Return the only argument of a form; raise `ProgramError` if it has another number of arguments."""
    if len(form.args) != 1:
        raise ProgramError(f"({form.head}) takes one argument, not {len(form.args)}")
    return form.args[0]


def word(node: Node, expected: str) -> str:
    """Return the text of a word; `expected` describes it in the error for any other node."""
    if not isinstance(node, Word):
        raise ProgramError(f"expected {expected}, found {node}")
    return node.word


def named_arguments(nodes: Sequence[Node], names: Sequence[str]) -> dict[str, Node]:
    """Return the arguments of forms `(name argument)` by their names; they must be in the order of `names`."""
    parts: dict[str, Node] = {}
    for node in nodes:
        if not isinstance(node, Form) or node.head not in names:
            raise ProgramError(f"expected one of {', '.join(names)}, found {node}")
        if node.head in parts:
            raise ProgramError(f"({node.head}) is repeated")
        parts[node.head] = only_argument(node)
    if any(names.index(a) > names.index(b) for a, b in pairwise(parts)):
        raise ProgramError(f"the order must be {', '.join(names)}")
    return parts
