"""S-expressions: words, quoted strings and forms, each with its offset in the source.

Whitespace only separates. `compact` writes the normal form in which programs are compared: one blank between
elements, none inside the parentheses. A `#`, `'` or `^` right before a parenthesis belongs to it, as in
`#(Number 1)`.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, NoReturn

from fewparse.errors import GrammarError, LimitExceeded, line_and_column

MAX_PROGRAM_LENGTH = 1_000_000

TOKEN = re.compile(
    r"""(?P<space>\s+)
      |(?P<open>[#'^]?\()
      |(?P<close>\))
      |(?P<quoted>"[^"\\]*+(?:\\.[^"\\]*+)*+")
      |(?P<word>[^\s()"]+)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Atom:
    """A word, or a string with its quotes and escapes as written; `at` is its offset in the source."""

    text: str
    at: int = field(compare=False)

    @property
    def quoted(self) -> bool:
        """Whether this is a quoted string."""
        return self.text.startswith('"')


@dataclass(eq=False)
class Form:
    """A parenthesised list; `opening` is the opening parenthesis with its prefix, `at` its source offset."""

    opening: str
    at: int
    items: "list[Node]" = field(default_factory=list, repr=False)


Node = Atom | Form


class Malformed(Exception):
    """A text that is not one S-expression: the reason, its offset, and a hint."""

    def __init__(self, reason: str, at: int, hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason, self.at, self.hint = reason, at, hint


def read_program(source: str, name: str = "<program>") -> Node:
    """Parse a source text that is a single expression of any depth.

    `name` is the file name in error messages. Raises `GrammarError` with line, column and caret, and
    `LimitExceeded` for a program that is too long.
    """
    try:
        return read_expression(source, name)
    except Malformed as error:
        fail(error.reason, source, error.at, name, error.hint)


def read_expression(source: str, name: str) -> Node:
    """Parse a source text like `read_program`; raise `Malformed` if it is not one expression."""
    if len(source) > MAX_PROGRAM_LENGTH:
        message = f"{name}: the program has {len(source):,} characters; at most {MAX_PROGRAM_LENGTH:,} are allowed"
        raise LimitExceeded(message, "Write one program per line.")
    found: list[Node] = []
    still_open: list[Form] = []
    at = 0
    while at < len(source):
        match = TOKEN.match(source, at)
        if match is None:
            hint = 'A string ends with "; write \\" for a quote in it.'
            raise Malformed("this string is never closed", at, hint)
        kind, text = match.lastgroup, match.group()
        if kind == "close":
            if not still_open:
                raise Malformed("this ) has no matching (", at)
            still_open.pop()
        elif kind != "space":
            siblings = still_open[-1].items if still_open else found
            if not still_open and found:
                raise Malformed("a program is one expression, but a second one starts here", at)
            node: Node = Form(text, at) if kind == "open" else Atom(text, at)
            siblings.append(node)
            if isinstance(node, Form):
                still_open.append(node)
        at = match.end()
    if still_open:
        raise Malformed(f"this {still_open[-1].opening} is never closed", still_open[-1].at)
    if not found:
        raise Malformed("the program is empty", 0)
    return found[0]


def fail(message: str, source: str, at: int, name: str, hint: str | None = None) -> NoReturn:
    """Raise a `GrammarError` at an offset of the source."""
    raise GrammarError(message, name, *line_and_column(source, at), source, hint)


def compact(node: Node) -> str:
    """Write an expression with one blank between its elements and none elsewhere."""
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


class Parameter(NamedTuple):
    """A parameter of a call: its keyword, empty if positional; its slot, empty for a keyword without value."""

    keyword: str
    slot: str


Signature = tuple[Parameter, ...]
OPERATOR = "operator"


class Call(NamedTuple):
    """A form as a function call.

    `head` is the opening parenthesis with the words that name the function; `values` are the arguments of those
    parameters that have a slot.
    """

    head: str
    signature: Signature
    values: tuple[Node, ...]


def parse_call(form: Form, apply_heads: Collection[str]) -> Call:
    """Split a form into its function and its arguments.

    A head in `apply_heads`, such as `call` in `(call f x)`, names the function together with the word after it.
    If the function is an expression, as in `((lambda x y) z)`, it is the value of the slot `OPERATOR`.
    """
    words: list[str] = []
    for item in form.items[:2]:
        if isinstance(item, Form) or item.quoted or (words and words[0] not in apply_heads):
            break
        words.append(item.text)
    signature: list[Parameter] = []
    values: list[Node] = []
    position = 0
    arguments = iter(form.items[len(words) :])
    if not words or (len(words) == 1 and words[0] in apply_heads):
        for operator in islice(arguments, 1):
            signature.append(Parameter("", OPERATOR))
            values.append(operator)
    keyword = ""
    for item in arguments:
        if is_keyword(item):
            if keyword:
                signature.append(Parameter(keyword, ""))
            keyword = compact(item)
            continue
        position += not keyword
        signature.append(Parameter(keyword, keyword or str(position)))
        values.append(item)
        keyword = ""
    if keyword:
        signature.append(Parameter(keyword, ""))
    return Call(form.opening + " ".join(words), tuple(signature), tuple(values))


def is_keyword(node: Node) -> bool:
    """Return whether this is a word such as `:name`, which names the argument after it."""
    return isinstance(node, Atom) and len(node.text) > 1 and node.text.startswith(":")
