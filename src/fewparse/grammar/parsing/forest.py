"""Shared packed parse forest (SPPF; Scott & Johnstone 2010) of a text: all its derivations in polynomial space.

A symbol node has a packed node for each production that derives its span. A packed node consists of intermediate
nodes, which are shared by derivations that agree on the first slots; each holds the splits of its last slot.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fewparse.errors import LimitExceeded
from fewparse.grammar.parsing.automaton import numbered
from fewparse.grammar.parsing.chart import Chart, ChartParser, ParseFailure
from fewparse.grammar.rules import Chars, Grammar, Production, Ref, Text

MAX_SIZE = 1_000_000


class Slot(NamedTuple):
    """A nonterminal or character class with the literal before it; `at` is its index in the production."""

    before: str
    symbol: Ref | Chars
    at: int


class Shape(NamedTuple):
    """A numbered production as a sequence of slots; `tail` is the literal after the last one."""

    name: str
    number: int
    production: Production
    slots: tuple[Slot, ...]
    tail: str


class IntermediateNode:
    """The first slots of a production over one span; each split fills the last of them."""

    __slots__ = ("splits",)

    def __init__(self, splits: "list[Split]") -> None:
        self.splits = splits


class Split(NamedTuple):
    """The filler of the last slot, a node or a character, and the intermediate node of the slots before it."""

    before: IntermediateNode | None
    filler: "SymbolNode | str"


class PackedNode(NamedTuple):
    """One production over the span of a symbol node; layer `k` has the intermediate nodes of `k + 1` slots."""

    shape: Shape
    layers: tuple[tuple[IntermediateNode, ...], ...]

    @property
    def whole(self) -> IntermediateNode | None:
        """The intermediate node of all slots; None if the production has no slots."""
        return self.layers[-1][0] if self.layers else None


class SymbolNode:
    """A nonterminal over a span of the text."""

    __slots__ = ("end", "name", "packed", "start")

    def __init__(self, name: str, start: int, end: int) -> None:
        self.name, self.start, self.end = name, start, end
        self.packed: list[PackedNode] = []

    def children(self) -> Iterator["SymbolNode"]:
        """Yield the symbol nodes directly below this one, possibly with repeats."""
        for packed in self.packed:
            for layer in packed.layers:
                for split in (split for intermediate in layer for split in intermediate.splits):
                    if isinstance(split.filler, SymbolNode):
                        yield split.filler


@dataclass(frozen=True)
class Tree:
    """One derivation of a symbol node: a production whose slots are filled by trees and characters."""

    node: SymbolNode
    shape: Shape
    fillers: tuple["Tree | str", ...] = field(repr=False)


class Shapes:
    """The productions of a grammar as shapes, by number and by nonterminal, each made when it is first used."""

    def __init__(self, grammar: Grammar) -> None:
        self._productions = list(numbered(grammar))
        self._rules = grammar.rules
        self._first: dict[str, int] = {}
        self._made: dict[int, Shape] = {}
        for number, (name, _) in enumerate(self._productions):
            self._first.setdefault(name, number)

    def __getitem__(self, number: int) -> Shape:
        found = self._made.get(number)
        return found or self._made.setdefault(number, shape_of(*self._productions[number], number))

    def of_name(self, name: str) -> list[Shape]:
        """Return the shapes of a nonterminal."""
        first = self._first[name]
        return [self[number] for number in range(first, first + len(self._rules[name]))]


def shape_of(name: str, production: Production, number: int) -> Shape:
    """Split a production into slots and the literals between them."""
    slots, text = [], ""
    for at, symbol in enumerate(production):
        if isinstance(symbol, Text):
            text += symbol.text
        else:
            slots.append(Slot(text, symbol, at))
            text = ""
    return Shape(name, number, production, tuple(slots), text)


Fillings = dict[int, list[tuple[int, SymbolNode | str]]]
"""For each end of a slot, its fillers, each with the position where the slot and its literal start."""


class Forest:
    """All derivations of a text.

    `nodes` holds the symbol nodes below the root, children before parents except within cycles. `cyclic` is
    true if a node can derive itself. `size` is the number of splits.
    """

    def __init__(self, chart: Chart, shapes: Shapes, start: str) -> None:
        self._chart, self._shapes = chart, shapes
        self._symbol_nodes: dict[tuple[str, int, int], SymbolNode] = {}
        self.size = 0
        self.nodes: list[SymbolNode] = []
        self.cyclic = False
        self.root = self._build(start)

    @property
    def text(self) -> str:
        """The parsed text."""
        return self._chart.text

    def _build(self, start: str) -> SymbolNode:
        """Expand all nodes below the root, depth first, with an explicit stack."""
        root = self._node(start, 0, len(self.text))
        self._expand(root)
        ancestors = {root}
        stack = [(root, root.children())]
        while stack:
            node, children = stack[-1]
            for child in children:
                if child in ancestors:
                    self.cyclic = True
                elif not child.packed:
                    self._expand(child)
                    ancestors.add(child)
                    stack.append((child, child.children()))
                    break
            else:
                stack.pop()
                ancestors.remove(node)
                self.nodes.append(node)
        return root

    def _node(self, name: str, start: int, end: int) -> SymbolNode:
        key = name, start, end
        if key not in self._symbol_nodes:
            self._symbol_nodes[key] = SymbolNode(name, start, end)
        return self._symbol_nodes[key]

    def _expand(self, node: SymbolNode) -> None:
        """Add the packed nodes of a symbol node; raise LimitExceeded if the forest grows too large."""
        if node.start == node.end:
            shapes: Sequence[Shape] = self._shapes.of_name(node.name)
        else:
            numbers = self._chart.ends[node.end][node.name][node.start]
            shapes = [self._shapes[number] for number in sorted(numbers)]
        for shape in shapes:
            packed = self._pack(shape, node.start, node.end)
            if packed is not None:
                node.packed.append(packed)
                self.size += sum(len(intermediate.splits) for layer in packed.layers for intermediate in layer)
        if self.size > MAX_SIZE:
            raise LimitExceeded(
                f"the text is too ambiguous: its derivations have more than {MAX_SIZE} parts",
                "Shorten it, or make the grammar less ambiguous.",
            )

    def _pack(self, shape: Shape, start: int, end: int) -> PackedNode | None:
        """Fill the slots of a production from the last to the first; None if it does not derive the span."""
        text = self.text
        inner = end - len(shape.tail)
        if inner < start or not text.startswith(shape.tail, inner):
            return None
        if not shape.slots:
            return PackedNode(shape, ()) if inner == start else None
        layers: list[Fillings] = []
        ends = [inner]
        for slot in reversed(shape.slots):
            first = slot is shape.slots[0]
            layer: Fillings = {}
            for position in ends:
                fillings = []
                for origin in self._origins(slot.symbol, start, position):
                    before = origin - len(slot.before)
                    fits = before == start if first else before >= start
                    if fits and text.startswith(slot.before, before):
                        fillings.append((before, self._filler(slot.symbol, origin, position)))
                layer[position] = fillings
            layers.append(layer)
            ends = list(dict.fromkeys(before for fillings in layer.values() for before, _ in fillings))
        return link_layers(shape, layers[::-1], start)

    def _origins(self, symbol: Ref | Chars, start: int, end: int) -> Sequence[int]:
        """Return the positions from `start` on where a symbol that ends at `end` can start."""
        if isinstance(symbol, Chars):
            return [end - 1] if end > start and self.text[end - 1] in symbol else []
        found = [origin for origin in self._chart.ends[end].get(symbol.name, ()) if origin >= start]
        if symbol.name in self._chart.nullable:
            found.append(end)
        return found

    def _filler(self, symbol: Ref | Chars, start: int, end: int) -> SymbolNode | str:
        return self.text[start] if isinstance(symbol, Chars) else self._node(symbol.name, start, end)

    def count(self) -> int | None:
        """Return the number of derivations; None if there are infinitely many."""
        if self.cyclic:
            return None
        counts: dict[SymbolNode, int] = {}
        for node in self.nodes:
            counts[node] = sum(count_derivations(packed, counts) for packed in node.packed)
        return counts[self.root]

    def trees(self) -> Iterator[Tree]:
        """Yield the derivations in which no node derives itself."""
        return derivations(self.root, self.cyclic)


class ForestParser:
    """A parser for one grammar that returns forests."""

    def __init__(self, grammar: Grammar) -> None:
        self._parser = ChartParser(grammar)
        self.shapes = Shapes(self._parser.grammar)

    def parse(self, text: str) -> Forest | ParseFailure:
        """Return all derivations of a text, or where and why parsing failed."""
        chart = self._parser.parse(text)
        if isinstance(chart, ParseFailure):
            return chart
        return Forest(chart, self.shapes, self._parser.grammar.start)


def link_layers(shape: Shape, layers: Sequence[Fillings], start: int) -> PackedNode | None:
    """Build intermediate nodes from fillings, first slot first; drop those that do not reach back to `start`."""
    linked: list[tuple[IntermediateNode, ...]] = []
    reached: Mapping[int, IntermediateNode | None] = {start: None}
    for layer in layers:
        by_end: dict[int, IntermediateNode] = {}
        for position, fillings in layer.items():
            splits = [Split(reached[before], filler) for before, filler in fillings if before in reached]
            if splits:
                by_end[position] = IntermediateNode(splits)
        if not by_end:
            return None
        linked.append(tuple(by_end.values()))
        reached = by_end
    return PackedNode(shape, tuple(linked))


def count_derivations(packed: PackedNode, counts: dict[SymbolNode, int]) -> int:
    """Return the number of derivations of a packed node, given the counts of its children."""
    inner: dict[IntermediateNode | None, int] = {None: 1}
    for layer in packed.layers:
        for intermediate in layer:
            inner[intermediate] = sum(
                inner[split.before] * (counts[split.filler] if isinstance(split.filler, SymbolNode) else 1)
                for split in intermediate.splits
            )
    return inner[packed.whole]


class Agenda(NamedTuple):
    """A linked list of what is still to be expanded, leftmost first.

    `ancestors` are the symbol nodes above `first` that have the same span.
    """

    first: SymbolNode | IntermediateNode | str
    ancestors: tuple[SymbolNode, ...]
    rest: "Agenda | None"


class Expanded(NamedTuple):
    """A linked list of the nodes and characters of a derivation in preorder, the last one first."""

    last: tuple[SymbolNode, Shape] | str
    before: "Expanded | None"


def derivations(root: SymbolNode, cyclic: bool) -> Iterator[Tree]:
    """Yield all trees of a node, by backtracking over linked lists that the alternatives share."""
    alternatives: list[tuple[Agenda | None, Expanded | None]] = [(Agenda(root, (), None), None)]
    while alternatives:
        agenda, expanded = alternatives.pop()
        if agenda is None:
            yield tree_of(expanded)
            continue
        first, ancestors, rest = agenda
        if isinstance(first, str):
            alternatives.append((rest, Expanded(first, expanded)))
        elif isinstance(first, IntermediateNode):
            for split in reversed(first.splits):
                after = Agenda(split.filler, ancestors, rest)
                todo = after if split.before is None else Agenda(split.before, ancestors, after)
                alternatives.append((todo, expanded))
        else:
            same_span = tuple(n for n in ancestors if (n.start, n.end) == (first.start, first.end))
            if first not in same_span:
                inside = (*same_span, first) if cyclic else ()
                for packed in reversed(first.packed):
                    below = rest if packed.whole is None else Agenda(packed.whole, inside, rest)
                    alternatives.append((below, Expanded((first, packed.shape), expanded)))


def tree_of(expanded: Expanded | None) -> Tree:
    """Build the tree of a derivation in preorder."""
    done: list[Tree | str] = []
    while expanded is not None:
        if isinstance(expanded.last, str):
            done.append(expanded.last)
        else:
            node, shape = expanded.last
            fillers = [done.pop() for _ in shape.slots]
            done.append(Tree(node, shape, tuple(fillers)))
        expanded = expanded.before
    tree = done.pop()
    assert isinstance(tree, Tree)
    return tree
