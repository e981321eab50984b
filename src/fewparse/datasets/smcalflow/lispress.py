"""Lispress, the language of SMCalFlow's programs, and the normal form in which two of them are compared.

A program is a graph of steps: nesting hands a step on to the one that uses it, `let` names a step that is used
more than once, and `do` holds those that nobody uses. So it is read into steps, and these are written anew, in
one way whichever way they were written before.
"""

import json
import math
import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from fewparse.grammar.induction.sexpr import Atom, Form, Node, compact, fail, is_keyword, read_program

NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
LONG_NUMBER = re.compile(r"\d+L", re.ASCII)
VARIABLE = re.compile(r"x\d+", re.ASCII)
TRUTHS = ("true", "false")
LET_HINT = "Write (let (x0 value x1 value) body)."


@dataclass(eq=False)
class Step:
    """A literal, or a call of other steps: each with the name of its argument, if it has one."""

    node: Node
    arguments: list[tuple[str, "Step"]] = field(default_factory=list)
    uses: int = 0
    written: bool = False


Reading = Generator[Node, Any, Step]
"""Reads a node: asks for the steps of the nodes within, and ends with its own."""


def normal_form(program: str) -> str:
    """The one text for all ways to write a program; a text that is no Lispress is a `GrammarError`.

    Neither the order of named arguments nor the names of variables matter, nor whether a number, a text or a
    truth has its type before it. Numbers are told apart by their first decimal, texts without blanks at the ends.
    """
    return compact(write(Reader(program).read(read_program(program))))


class Reader:
    """Makes steps of one program. A variable holds from its `let` to the end, or to the next of its name."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._bound: dict[str, Step] = {}
        self._steps: list[Step] = []

    def read(self, tree: Node) -> list[Step]:
        """The steps, each behind those that it uses. Nesting may be deep: what is begun waits on a stack."""
        begun = [self._part(tree)]
        found: Step | None = None
        while begun:
            try:
                inner = begun[-1].send(found)
            except StopIteration as done:
                begun.pop()
                found = done.value
            else:
                begun.append(self._part(inner))
                found = None
        return self._steps

    def _part(self, node: Node) -> Reading:
        known = literal(node) if isinstance(node, Atom) else typed_literal(node)
        if known is not None:
            return self._literal(known)
        form = Form("(", node.at, [node]) if isinstance(node, Atom) else node
        head = form.items[0].text if form.items and isinstance(form.items[0], Atom) else ""
        if form.opening != "(":
            return self._call(form, head)
        if head == "let":
            return self._let(form)
        if head == "do" and len(form.items) > 1:
            return self._last(form.items[1:])
        if len(form.items) == 1 and (head in self._bound or VARIABLE.fullmatch(head)):
            return self._variable(head, form.at)
        return self._call(form, head)

    def _literal(self, node: Node) -> Reading:
        yield from ()
        return self._add(Step(node))

    def _variable(self, name: str, at: int) -> Reading:
        yield from ()
        if name not in self._bound:
            fail(f"no let gives {name} a value", self._source, at, "<program>", LET_HINT)
        return self._bound[name]

    def _let(self, form: Form) -> Reading:
        bindings = form.items[1] if len(form.items) > 2 else None
        if not isinstance(bindings, Form) or len(bindings.items) % 2:
            fail("a let has pairs of a name and a value, and a body", self._source, form.at, "<program>", LET_HINT)
        for name, value in zip(bindings.items[::2], bindings.items[1::2], strict=True):
            if isinstance(name, Form) or literal(name) is not None:
                fail("this is no name for a value", self._source, name.at, "<program>", LET_HINT)
            self._bound[name.text] = yield value
        return (yield from self._last(form.items[2:]))

    def _last(self, statements: Sequence[Node]) -> Reading:
        """Several steps, of which the last stands for all."""
        for statement in statements:
            last: Step = yield statement
        return last

    def _call(self, form: Form, head: str) -> Reading:
        call = Form(form.opening, form.at, form.items[: 1 if head else 0])
        parts = [("", item) for item in form.items[len(call.items) :]]
        if head[:1].isascii() and head[:1].isupper():
            parts = named(parts)
        elif (path := path_of(form)) is not None:
            call.items = [Atom(f":{path}", form.at)]
            parts = parts[:1]
        arguments: list[tuple[str, Step]] = []
        for name, value in parts:
            arguments.append((name, (yield value)))
        if all(name for name, _ in arguments):
            arguments.sort(key=lambda argument: argument[0])
        for _, argument in arguments:
            argument.uses += 1
        return self._add(Step(call, arguments))

    def _add(self, step: Step) -> Step:
        self._steps.append(step)
        return step


def literal(atom: Atom) -> Atom | None:
    """A text, number, truth or keyword as the normal form has it; None for a word that names something."""
    text = atom.text
    if atom.quoted:
        return Atom(normal_text(text), atom.at)
    if NUMBER.fullmatch(text):
        number = float(text)
        return atom if math.isinf(number) else Atom(f"{number:z.1f}", atom.at)
    return atom if text in TRUTHS or LONG_NUMBER.fullmatch(text) or is_keyword(atom) else None


def normal_text(text: str) -> str:
    """A text without blanks at its ends; its escapes are those of JSON, and with others it stays as it is."""
    try:
        return json.dumps(json.loads(text, strict=False).strip())
    except ValueError:
        return text


def typed_literal(form: Form) -> Node | None:
    """A literal such as `#(Month "MAY")`, bare where its value shows its type; None where this is none."""
    words = [item for item in form.items if isinstance(item, Atom)]
    if form.opening != "#(" or not words or len(words) < len(form.items) or literal(words[0]) is not None:
        return None
    schema, *values = words[0], *(literal(word) or word for word in words[1:])
    if len(values) == 1 and schema.text == type_of(values[0]):
        return values[0]
    return Form(form.opening, form.at, [schema, *values])


def type_of(value: Atom) -> str | None:
    """The type of a literal that needs no name for it."""
    if value.quoted:
        return "String"
    if value.text in TRUTHS:
        return "Boolean"
    return "Number" if NUMBER.fullmatch(value.text) else None


def path_of(form: Form) -> str | None:
    """The field that `(get x #(Path "field"))` gets; None for other forms and for what is no plain word."""
    match form:
        case Form(opening="(", items=[Atom(text="get"), _, Form() as path]):
            match typed_literal(path):
                case Form(items=[Atom(text="Path"), Atom(text=text, quoted=True)]) if text[1:-1].isalnum():
                    return text[1:-1]
    return None


def named(parts: Sequence[tuple[str, Node]]) -> list[tuple[str, Node]]:
    """The arguments with their names. A name holds until the next, and one without a value says nothing."""
    found: list[tuple[str, Node]] = []
    name = ""
    for _, item in parts:
        if isinstance(item, Atom) and is_keyword(item):
            name = item.text
        else:
            found.append((name, item))
    return found


def write(steps: Sequence[Step]) -> Node:
    """The program of these steps: all nested but those that are used more than once, or never."""
    last = [step for step in steps if not step.uses]
    bindings: list[Node] = []
    for step in in_order_of_use(last):
        if isinstance(step.node, Form):
            for name, argument in step.arguments:
                step.node.items += [Atom(name, 0), argument.node] if name else [argument.node]
        if step.uses > 1:
            variable = Atom(f"x{len(bindings) // 2}", 0)
            bindings += [variable, step.node]
            step.node = variable
    statements = [step.node for step in last]
    body = statements[0] if len(statements) == 1 else Form("(", 0, [Atom("do", 0), *statements])
    return Form("(", 0, [Atom("let", 0), Form("(", 0, bindings), body]) if bindings else body


def in_order_of_use(last: Sequence[Step]) -> Iterator[Step]:
    """These steps and all that they use, each once and behind its own arguments."""
    agenda = [(step, False) for step in reversed(last)]
    while agenda:
        step, is_ready = agenda.pop()
        if is_ready:
            step.written = True
            yield step
        elif not step.written:
            agenda.append((step, True))
            agenda += [(argument, False) for _, argument in reversed(step.arguments)]
