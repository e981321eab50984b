"""Programs as trees: words, quoted texts and forms such as `(count (meetings))`."""

import re
from dataclasses import dataclass, field

MAX_LENGTH = 4000
MAX_DEPTH = 40

_TOKEN = re.compile(r'(?P<space>[ \t\r\n]+)|(?P<paren>[()])|"(?P<text>[^"]*)"|(?P<word>[^\s()"]+)')


class ProgramError(ValueError):
    """A program that cannot be read, or that means nothing in this world."""


@dataclass(frozen=True)
class Word:
    word: str

    def __str__(self) -> str:
        return self.word


@dataclass(frozen=True)
class Text:
    text: str

    def __str__(self) -> str:
        return f'"{self.text}"'


@dataclass
class Form:
    head: str
    args: "list[Node]" = field(default_factory=list)

    def __str__(self) -> str:
        return f"({' '.join([self.head, *map(str, self.args)])})"


Node = Word | Text | Form


def read(program: str) -> Form:
    """The tree of a program; iterative, so that depth is an error and never a crash."""
    if len(program) > MAX_LENGTH:
        raise ProgramError(f"program of {len(program)} characters; the limit is {MAX_LENGTH}")
    root = Form("")
    stack = [root]
    position = 0
    while position < len(program):
        match = _TOKEN.match(program, position)
        if match is None:
            raise ProgramError(f"unreadable at column {position + 1}: {program[position : position + 20]!r}")
        position = match.end()
        kind, text = match.lastgroup, match.group()
        if kind == "space":
            continue
        top = stack[-1]
        if text == ")":
            if top is root:
                raise ProgramError(f"nothing to close with the parenthesis at column {position}")
            if not top.head:
                raise ProgramError(f"a form without a function ends at column {position}")
            stack.pop()
            stack[-1].args.append(top)
        elif top is not root and not top.head:
            if kind != "word":
                raise ProgramError(f"expected the name of a function before column {position}")
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
