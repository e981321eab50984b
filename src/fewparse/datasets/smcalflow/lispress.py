"""Lispress, the language of SMCalFlow's programs, and the normal form in which two programs are compared.

A Lispress program denotes a graph of calls: an argument is nested in the call that uses it, `let` names a node
that is used more than once, and `do` adds nodes that no call uses. `normal_form` reads a program into this graph
and writes the graph in one way.
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
BOOLEANS = ("true", "false")
LET_HINT = "Write (let (x0 value x1 value) body)."


@dataclass(eq=False)
class GraphNode:
    """A literal, or a call with its arguments: pairs of a keyword, which may be empty, and a node."""

    node: Node
    arguments: list[tuple[str, "GraphNode"]] = field(default_factory=list)
    uses: int = 0
    written: bool = False


Reading = Generator[Node, Any, GraphNode]
"""A coroutine that reads one expression: it yields subexpressions, receives their nodes, and returns its own."""


def normal_form(program: str) -> str:
    """Return the normal form of a program; raise `GrammarError` if it is not Lispress.

    Programs with the same normal form may differ in the order of keyword arguments, in the names of variables, and
    in whether a number, string or boolean has an explicit type. Numbers are compared by their first decimal,
    strings without leading and trailing whitespace.
    """
    return compact(write(GraphReader(program).read(read_program(program))))


class GraphReader:
    """Reads one program into a graph. The scope of a variable lasts until the next `let` of its name."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._variables: dict[str, GraphNode] = {}
        self._nodes: list[GraphNode] = []

    def read(self, tree: Node) -> list[GraphNode]:
        """Return the nodes, each after its arguments. An explicit stack allows any depth of nesting."""
        stack = [self._start(tree)]
        result: GraphNode | None = None
        while stack:
            try:
                inner = stack[-1].send(result)
            except StopIteration as done:
                stack.pop()
                result = done.value
            else:
                stack.append(self._start(inner))
                result = None
        return self._nodes

    def _start(self, node: Node) -> Reading:
        value = literal(node) if isinstance(node, Atom) else typed_literal(node)
        if value is not None:
            return self._literal(value)
        form = Form("(", node.at, [node]) if isinstance(node, Atom) else node
        head = form.items[0].text if form.items and isinstance(form.items[0], Atom) else ""
        if form.opening != "(":
            return self._call(form, head)
        if head == "let":
            return self._let(form)
        if head == "do" and len(form.items) > 1:
            return self._sequence(form.items[1:])
        if len(form.items) == 1 and (head in self._variables or VARIABLE.fullmatch(head)):
            return self._variable(head, form.at)
        return self._call(form, head)

    def _literal(self, node: Node) -> Reading:
        yield from ()
        return self._add(GraphNode(node))

    def _variable(self, name: str, at: int) -> Reading:
        yield from ()
        if name not in self._variables:
            fail(f"the variable {name} is not bound by a let", self._source, at, "<program>", LET_HINT)
        return self._variables[name]

    def _let(self, form: Form) -> Reading:
        bindings = form.items[1] if len(form.items) > 2 else None
        if not isinstance(bindings, Form) or len(bindings.items) % 2:
            fail(
                "a let needs pairs of a name and a value, and a body", self._source, form.at, "<program>", LET_HINT
            )
        for name, value in zip(bindings.items[::2], bindings.items[1::2], strict=True):
            if isinstance(name, Form) or literal(name) is not None:
                fail("this is not a variable name", self._source, name.at, "<program>", LET_HINT)
            self._variables[name.text] = yield value
        return (yield from self._sequence(form.items[2:]))

    def _sequence(self, statements: Sequence[Node]) -> Reading:
        """Read several statements; return the node of the last one."""
        for statement in statements:
            last: GraphNode = yield statement
        return last

    def _call(self, form: Form, head: str) -> Reading:
        call = Form(form.opening, form.at, form.items[: 1 if head else 0])
        items = [("", item) for item in form.items[len(call.items) :]]
        if head[:1].isascii() and head[:1].isupper():
            items = with_keywords(items)
        elif (path := path_of(form)) is not None:
            call.items = [Atom(f":{path}", form.at)]
            items = items[:1]
        arguments: list[tuple[str, GraphNode]] = []
        for keyword, value in items:
            arguments.append((keyword, (yield value)))
        if all(keyword for keyword, _ in arguments):
            arguments.sort(key=lambda argument: argument[0])
        for _, argument in arguments:
            argument.uses += 1
        return self._add(GraphNode(call, arguments))

    def _add(self, node: GraphNode) -> GraphNode:
        self._nodes.append(node)
        return node


def literal(atom: Atom) -> Atom | None:
    """Return a string, number, boolean or keyword in its normal form, or None for any other word."""
    text = atom.text
    if atom.quoted:
        return Atom(normal_string(text), atom.at)
    if NUMBER.fullmatch(text):
        number = float(text)
        return atom if math.isinf(number) else Atom(f"{number:z.1f}", atom.at)
    return atom if text in BOOLEANS or LONG_NUMBER.fullmatch(text) or is_keyword(atom) else None


def normal_string(text: str) -> str:
    """Strip a quoted string; one whose escapes are not those of JSON is returned unchanged."""
    try:
        return json.dumps(json.loads(text, strict=False).strip())
    except ValueError:
        return text


def typed_literal(form: Form) -> Node | None:
    """Return a literal such as `#(Month "MAY")`, without a type that its value implies; None for other forms."""
    words = [item for item in form.items if isinstance(item, Atom)]
    if form.opening != "#(" or not words or len(words) < len(form.items) or literal(words[0]) is not None:
        return None
    schema, *values = words[0], *(literal(word) or word for word in words[1:])
    if len(values) == 1 and schema.text == implied_type(values[0]):
        return values[0]
    return Form(form.opening, form.at, [schema, *values])


def implied_type(value: Atom) -> str | None:
    """Return the type of a literal that may be written without one, or None."""
    if value.quoted:
        return "String"
    if value.text in BOOLEANS:
        return "Boolean"
    return "Number" if NUMBER.fullmatch(value.text) else None


def path_of(form: Form) -> str | None:
    """Return the field of `(get x #(Path "field"))`; None for other forms and if it is not a plain word."""
    match form:
        case Form(opening="(", items=[Atom(text="get"), _, Form() as path]):
            match typed_literal(path):
                case Form(items=[Atom(text="Path"), Atom(text=text, quoted=True)]) if text[1:-1].isalnum():
                    return text[1:-1]
    return None


def with_keywords(items: Sequence[tuple[str, Node]]) -> list[tuple[str, Node]]:
    """Pair arguments with their keywords. A keyword applies up to the next one; without a value it is dropped."""
    arguments: list[tuple[str, Node]] = []
    keyword = ""
    for _, item in items:
        if isinstance(item, Atom) and is_keyword(item):
            keyword = item.text
        else:
            arguments.append((keyword, item))
    return arguments


def write(nodes: Sequence[GraphNode]) -> Node:
    """Write a graph as an expression: shared nodes are bound by `let`, several roots are joined by `do`."""
    roots = [node for node in nodes if not node.uses]
    bindings: list[Node] = []
    for node in in_postorder(roots):
        if isinstance(node.node, Form):
            for keyword, argument in node.arguments:
                node.node.items += [Atom(keyword, 0), argument.node] if keyword else [argument.node]
        if node.uses > 1:
            variable = Atom(f"x{len(bindings) // 2}", 0)
            bindings += [variable, node.node]
            node.node = variable
    statements = [node.node for node in roots]
    body = statements[0] if len(statements) == 1 else Form("(", 0, [Atom("do", 0), *statements])
    return Form("(", 0, [Atom("let", 0), Form("(", 0, bindings), body]) if bindings else body


def in_postorder(roots: Sequence[GraphNode]) -> Iterator[GraphNode]:
    """Yield all nodes reachable from the roots, each once and after its arguments."""
    agenda = [(node, False) for node in reversed(roots)]
    while agenda:
        node, is_ready = agenda.pop()
        if is_ready:
            node.written = True
            yield node
        elif not node.written:
            agenda.append((node, True))
            agenda += [(argument, False) for _, argument in reversed(node.arguments)]
