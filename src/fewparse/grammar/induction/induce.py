"""Induce a grammar from example programs that are S-expressions.

A function is known by its head (for `(call f x)` by `call f`) and has slots: its positions and its keywords. How
much the examples are generalised is a matter of the level, each wider than the one before:

strict  a slot takes exactly the functions and constants that were seen in it;
typed   slots that share a function or a constant have the same type, and take whatever any of them takes;
loose   a slot that took a form takes any expression; slots of bare names and literals keep to their type;
open    constants may have other names behind their dots (`en.person.` and a name) and other numbers in them
        (`May-` and a number) where examples vary, and the keywords of a function that was seen with several sets
        of them may be left out, except those that all sets have; they keep their order.

Functions with nothing but atoms inside, such as `(string <)`, are told apart by the slot that they stand in, up to
the typed level. Literals (texts, numbers, dates, times) are classes at every level. Whatever the grammar derives
is a balanced program in compact form (see `sexpr`), with arguments as they were seen for each head.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from fewparse.errors import UnknownName, UsageError
from fewparse.grammar.induction.rule_writer import (
    PROGRAM,
    QUOTED,
    Constant,
    Family,
    Filler,
    Function,
    Kind,
    Slot,
    compose,
    kind_of,
)
from fewparse.grammar.induction.sexpr import (
    OPERATOR,
    Call,
    Form,
    Node,
    Shape,
    compact,
    fail,
    is_keyword,
    read_program,
    take_apart,
)
from fewparse.grammar.parsing.chart import ChartParser
from fewparse.grammar.rules import Grammar, Production, Ref, Text

Merge = Literal["strict", "typed", "loose", "open"]
APPLY_HEADS = ("call",)
NAME = re.compile(r"[A-Za-z0-9_-]+")
Fillers = dict[Filler, None]
"""A set that keeps its order."""


@dataclass(frozen=True)
class Induced:
    """A grammar, and what it was made of."""

    grammar: Grammar
    programs: int
    functions: int
    constants: int
    literals: tuple[str, ...]


@dataclass(frozen=True)
class Coverage:
    """How many programs a grammar derives, and in compact form those that it does not."""

    derived: int
    missed: tuple[str, ...]

    @property
    def share(self) -> float:
        """The part of the programs that is derived."""
        return self.derived / max(1, self.derived + len(self.missed))


def induce(programs: Iterable[str], merge: Merge = "typed", apply_heads: Collection[str] = APPLY_HEADS) -> Induced:
    """A grammar that derives all of these programs, and more by the level of merging.

    `apply_heads` are the heads that apply the function named behind them.
    """
    if merge not in get_args(Merge):
        raise UnknownName("level of merging", merge, get_args(Merge))
    trees = [read_example(source, number) for number, source in enumerate(programs, 1)]
    if not trees:
        raise UsageError("a grammar is induced from programs, and there are none", "Give at least one example.")
    seen = Observation(trees, merge, apply_heads)
    slots = seen.slots if merge == "strict" else typed(seen.slots)
    if merge in ("loose", "open"):
        slots = loosened(slots)
    if merge == "open":
        slots = with_families(slots)
    grammar = compose(
        seen.shapes,
        {slot: tuple(admitted(slot, fillers)) for slot, fillers in slots.items()},
        seen.quoted,
        optional_keywords=merge == "open",
    )
    fillers = {filler for taken in seen.slots.values() for filler in taken}
    return Induced(
        grammar,
        programs=len(trees),
        functions=len({function.head for function in seen.shapes}),
        constants=sum(isinstance(filler, Constant) for filler in fillers),
        literals=tuple(sorted(filler.rule for filler in fillers if isinstance(filler, Kind))),
    )


def coverage(grammar: Grammar, programs: Sequence[str]) -> Coverage:
    """Which programs a grammar derives; they are compared in compact form."""
    parser = ChartParser(grammar)
    texts = [compact(read_program(source, f"program {number}")) for number, source in enumerate(programs, 1)]
    missed = tuple(text for text in texts if not parser.accepts(text))
    return Coverage(len(texts) - len(missed), missed)


def read_example(source: str, number: int) -> Node:
    """The tree of an example; its number is its name in error messages."""
    tree = read_program(source, f"program {number}")
    if is_keyword(tree):
        fail("a keyword alone is no program", source, tree.at, f"program {number}")
    return tree


class Observation:
    """Which functions the examples have, in which shapes, and what they have in which slot."""

    def __init__(self, trees: Sequence[Node], merge: Merge, apply_heads: Collection[str]) -> None:
        self.shapes: dict[Function, dict[Shape, None]] = {}
        self.slots: dict[Slot, Fillers] = {}
        self.quoted: dict[str, None] = {}
        self._merge = merge
        self._apply_heads = apply_heads
        self._leaves = self._leaf_heads(trees) if merge in ("strict", "typed") else set()
        agenda = [(tree, PROGRAM) for tree in reversed(trees)]
        while agenda:
            node, slot = agenda.pop()
            fillers = self.slots.setdefault(slot, {})
            if isinstance(node, Form):
                call = take_apart(node, apply_heads)
                function = self._function(call, slot)
                fillers[function] = None
                self.shapes.setdefault(function, {})[call.shape] = None
                names = [part.slot for part in call.shape if part.slot]
                inner = [(value, Slot(function, name)) for name, value in zip(names, call.values, strict=True)]
                agenda += reversed(inner)
            elif node.quoted:
                fillers[QUOTED] = None
                self.quoted[node.text] = None
            else:
                fillers[kind_of(node.text) or Constant(node.text)] = None

    def _leaf_heads(self, trees: Sequence[Node]) -> set[str]:
        """The functions that have arguments, and never a form among them."""
        found: dict[str, bool] = {}
        agenda = list(trees)
        while agenda:
            node = agenda.pop()
            if isinstance(node, Form):
                call = take_apart(node, self._apply_heads)
                if call.values:
                    bare = not any(isinstance(value, Form) for value in call.values)
                    found[call.head] = found.get(call.head, True) and bare
                agenda += call.values
        return {head for head, is_leaf in found.items() if is_leaf}

    def _function(self, call: Call, slot: Slot) -> Function:
        shape = call.shape if self._merge == "strict" else None
        return Function(call.head, shape, slot if call.head in self._leaves else None)


def typed(slots: Mapping[Slot, Fillers]) -> dict[Slot, Fillers]:
    """Slots that share a function or a constant take the same: all that any of them takes."""
    parents: dict[Slot | Filler, Slot | Filler] = {}

    def root(node: Slot | Filler) -> Slot | Filler:
        while (parent := parents.setdefault(node, node)) != node:
            parents[node] = node = parents[parent]
        return node

    for slot, fillers in slots.items():
        for filler in fillers:
            if isinstance(filler, Function | Constant):
                parents[root(filler)] = root(slot)
    together: dict[Slot | Filler, Fillers] = {}
    for slot, fillers in slots.items():
        together.setdefault(root(slot), {}).update(fillers)
    return {slot: together[root(slot)] for slot in slots}


def loosened(slots: Mapping[Slot, Fillers]) -> dict[Slot, Fillers]:
    """All slots that take a form take the same; operators, and the program itself, keep to theirs."""
    general = [
        slot
        for slot, fillers in slots.items()
        if slot != PROGRAM and slot.name != OPERATOR and any(isinstance(filler, Function) for filler in fillers)
    ]
    anything = {filler: None for slot in general for filler in slots[slot]}
    return {**slots, **dict.fromkeys(general, anything)}


def with_families(slots: Mapping[Slot, Fillers]) -> dict[Slot, Fillers]:
    """Constants that differ from others only in a name or a number make way for all names or numbers there."""
    words = {filler.word for fillers in slots.values() for filler in fillers if isinstance(filler, Constant)}
    names = {tuple(word.split(".")[: i + 1]) for word in words for i in range(word.count(".") + 1)}
    followed = Counter(name[:-1] for name in names if len(name) > 1)
    numbered = Counter(map(with_numbers, words))

    def widened(filler: Filler) -> Filler:
        if isinstance(filler, Constant):
            *path, last = filler.word.split(".")
            if path and NAME.fullmatch(last) and max(followed[tuple(path)], followed[tuple(path[:-1])]) > 1:
                return Family((Text(".".join(path) + "."), Ref("NAME")))
            if numbered[with_numbers(filler.word)] > 1:
                return Family(with_numbers(filler.word))
        return filler

    return {slot: {widened(filler): None for filler in fillers} for slot, fillers in slots.items()}


def with_numbers(word: str) -> Production:
    """A word with any number in the place of each of its numbers."""
    parts = re.split("([0-9]+)", word)
    return tuple(Ref("NATURAL") if i % 2 else Text(part) for i, part in enumerate(parts) if part)


def admitted(slot: Slot, fillers: Fillers) -> Iterator[Filler]:
    """The fillers that leave a program readable as it was meant, without those that another includes.

    A bare word in the place of an operator would be read as the name of the function.
    """
    for filler in fillers:
        if slot.name == OPERATOR and not isinstance(filler, Function) and filler != QUOTED:
            continue
        if filler != Kind("NATURAL") or Kind("INTEGER") not in fillers:
            yield filler
