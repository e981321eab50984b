"""The packed forest of a parsed text: every derivation, in space that grows slowly with their number."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fewparse.errors import LimitExceeded
from fewparse.grammar.parsing.automaton import numbered
from fewparse.grammar.parsing.chart import Chart, ChartParser, ParseFailure
from fewparse.grammar.rules import Chars, Grammar, Production, Ref, Text

MOST_STEPS = 1_000_000


class Slot(NamedTuple):
    """A symbol that is not text, with the text before it; `at` is its index in the production."""

    before: str
    symbol: Ref | Chars
    at: int


class Shape(NamedTuple):
    """A production as its slots and the text behind the last one."""

    name: str
    number: int
    production: Production
    slots: tuple[Slot, ...]
    tail: str


class Partial:
    """The first slots of a shape, filled up to a place in one or more ways."""

    __slots__ = ("steps",)

    def __init__(self, steps: "list[Step]") -> None:
        self.steps = steps


class Step(NamedTuple):
    """The last slot of a partial, filled by a node or a character, and the partial of the slots before it."""

    before: Partial | None
    filler: "Node | str"


class Way(NamedTuple):
    """One production of a node: the partials of its first slot, of its first two, and so on to the whole."""

    shape: Shape
    layers: tuple[tuple[Partial, ...], ...]

    @property
    def whole(self) -> Partial | None:
        """The partial that fills all slots; None where there are none."""
        return self.layers[-1][0] if self.layers else None


class Node:
    """A name that derives a span of the text."""

    __slots__ = ("begin", "end", "name", "ways")

    def __init__(self, name: str, begin: int, end: int) -> None:
        self.name, self.begin, self.end = name, begin, end
        self.ways: list[Way] = []

    def parts(self) -> Iterator["Node"]:
        """The nodes that this one is directly made of."""
        for way in self.ways:
            for layer in way.layers:
                for step in (step for partial in layer for step in partial.steps):
                    if isinstance(step.filler, Node):
                        yield step.filler


@dataclass(frozen=True)
class Tree:
    """One derivation: a production's slots are filled by trees and characters."""

    node: Node
    shape: Shape
    fillers: tuple["Tree | str", ...] = field(repr=False)


class Shapes:
    """The productions of a grammar in the form that the forest needs."""

    def __init__(self, grammar: Grammar) -> None:
        self.all = [shape_of(name, number, p) for number, (name, p) in enumerate(numbered(grammar))]
        self.by_name: dict[str, list[Shape]] = {}
        for shape in self.all:
            self.by_name.setdefault(shape.name, []).append(shape)


def shape_of(name: str, number: int, production: Production) -> Shape:
    """Text gathered between slots."""
    slots, text = [], ""
    for at, symbol in enumerate(production):
        if isinstance(symbol, Text):
            text += symbol.text
        else:
            slots.append(Slot(text, symbol, at))
            text = ""
    return Shape(name, number, production, tuple(slots), text)


class Forest:
    """All derivations of a text. `nodes` holds parts before wholes, save where a node is part of itself."""

    def __init__(self, chart: Chart, shapes: Shapes, start: str) -> None:
        self._chart, self._shapes = chart, shapes
        self._made: dict[tuple[str, int, int], Node] = {}
        self.steps = 0
        self.nodes: list[Node] = []
        self.cyclic = False
        self.root = self._grow(start)

    @property
    def text(self) -> str:
        """The text that is derived."""
        return self._chart.text

    def _grow(self, start: str) -> Node:
        """Make all nodes below the root, depth first, without recursion."""
        root = self._node(start, 0, len(self.text))
        self._fill(root)
        open_nodes = {root}
        stack = [(root, root.parts())]
        while stack:
            node, parts = stack[-1]
            for part in parts:
                if part in open_nodes:
                    self.cyclic = True
                elif not part.ways:
                    self._fill(part)
                    open_nodes.add(part)
                    stack.append((part, part.parts()))
                    break
            else:
                stack.pop()
                open_nodes.remove(node)
                self.nodes.append(node)
        return root

    def _node(self, name: str, begin: int, end: int) -> Node:
        key = name, begin, end
        if key not in self._made:
            self._made[key] = Node(name, begin, end)
        return self._made[key]

    def _fill(self, node: Node) -> None:
        if node.begin == node.end:
            shapes: Sequence[Shape] = self._shapes.by_name[node.name]
        else:
            numbers = self._chart.ends[node.end][node.name][node.begin]
            shapes = [self._shapes.all[number] for number in sorted(numbers)]
        for shape in shapes:
            way = self._way(shape, node.begin, node.end)
            if way is not None:
                node.ways.append(way)
                self.steps += sum(len(partial.steps) for layer in way.layers for partial in layer)
        if self.steps > MOST_STEPS:
            raise LimitExceeded(
                f"the text is too ambiguous: its derivations have more than {MOST_STEPS} parts",
                "Shorten it, or make the grammar less ambiguous.",
            )

    def _way(self, shape: Shape, begin: int, end: int) -> Way | None:
        """Fill the slots from the last to the first, then drop what has no beginning."""
        text = self.text
        inner = end - len(shape.tail)
        if inner < begin or not text.startswith(shape.tail, inner):
            return None
        if not shape.slots:
            return Way(shape, ()) if inner == begin else None
        layers: list[dict[int, list[tuple[int, Node | str]]]] = []
        ends = [inner]
        for slot in reversed(shape.slots):
            first = slot is shape.slots[0]
            layer: dict[int, list[tuple[int, Node | str]]] = {}
            for place in ends:
                fillings = []
                for origin in self._origins(slot.symbol, begin, place):
                    before = origin - len(slot.before)
                    fits = before == begin if first else before >= begin
                    if fits and text.startswith(slot.before, before):
                        fillings.append((before, self._filler(slot.symbol, origin, place)))
                layer[place] = fillings
            layers.append(layer)
            ends = list(dict.fromkeys(before for fillings in layer.values() for before, _ in fillings))
        return assemble(shape, layers[::-1], begin)

    def _origins(self, symbol: Ref | Chars, begin: int, end: int) -> Sequence[int]:
        """Where something that ends at a place may have begun."""
        if isinstance(symbol, Chars):
            return [end - 1] if end > begin and self.text[end - 1] in symbol else []
        found = [origin for origin in self._chart.ends[end].get(symbol.name, ()) if origin >= begin]
        if symbol.name in self._chart.nullable:
            found.append(end)
        return found

    def _filler(self, symbol: Ref | Chars, begin: int, end: int) -> Node | str:
        return self.text[begin] if isinstance(symbol, Chars) else self._node(symbol.name, begin, end)

    def count(self) -> int | None:
        """How many derivations there are; None for infinitely many."""
        if self.cyclic:
            return None
        counts: dict[Node, int] = {}
        for node in self.nodes:
            counts[node] = sum(count_way(way, counts) for way in node.ways)
        return counts[self.root]

    def trees(self) -> Iterator[Tree]:
        """The derivations, one at a time; none in which a node is part of itself."""
        return derivations(self.root, self.cyclic)


class ForestParser:
    """From a text to its forest, with one grammar."""

    def __init__(self, grammar: Grammar) -> None:
        self._parser = ChartParser(grammar)
        self.shapes = Shapes(self._parser.grammar)

    def parse(self, text: str) -> Forest | ParseFailure:
        """All derivations of a text, or why it has none."""
        chart = self._parser.parse(text)
        if isinstance(chart, ParseFailure):
            return chart
        return Forest(chart, self.shapes, self._parser.grammar.start)


def assemble(shape: Shape, layers: Sequence[dict[int, list[tuple[int, Node | str]]]], begin: int) -> Way | None:
    """Partials out of fillings, first slots first; what leads back to no beginning is left out."""
    kept: list[tuple[Partial, ...]] = []
    reached: Mapping[int, Partial | None] = {begin: None}
    for layer in layers:
        made: dict[int, Partial] = {}
        for place, fillings in layer.items():
            steps = [Step(reached[before], filler) for before, filler in fillings if before in reached]
            if steps:
                made[place] = Partial(steps)
        if not made:
            return None
        kept.append(tuple(made.values()))
        reached = made
    return Way(shape, tuple(kept))


def count_way(way: Way, counts: dict[Node, int]) -> int:
    """How many derivations a production gives, from the counts of its parts."""
    inner: dict[Partial | None, int] = {None: 1}
    for layer in way.layers:
        for partial in layer:
            inner[partial] = sum(
                inner[step.before] * (counts[step.filler] if isinstance(step.filler, Node) else 1)
                for step in partial.steps
            )
    return inner[way.whole]


class Pending(NamedTuple):
    """A linked list of what is still to be derived, leftmost first; `inside`: the nodes around of its span."""

    what: Node | Partial | str
    inside: tuple[Node, ...]
    rest: "Pending | None"


class Chosen(NamedTuple):
    """A linked list of what has been derived, last first."""

    what: tuple[Node, Shape] | str
    before: "Chosen | None"


def derivations(root: Node, cyclic: bool) -> Iterator[Tree]:
    """All trees below a node, by backtracking over linked lists that the branches share."""
    branches: list[tuple[Pending | None, Chosen | None]] = [(Pending(root, (), None), None)]
    while branches:
        pending, chosen = branches.pop()
        if pending is None:
            yield grown(chosen)
            continue
        what, inside, rest = pending
        if isinstance(what, str):
            branches.append((rest, Chosen(what, chosen)))
        elif isinstance(what, Partial):
            for step in reversed(what.steps):
                after = Pending(step.filler, inside, rest)
                branches.append((after if step.before is None else Pending(step.before, inside, after), chosen))
        else:
            around = tuple(n for n in inside if (n.begin, n.end) == (what.begin, what.end))
            if what not in around:
                within = (*around, what) if cyclic else ()
                for way in reversed(what.ways):
                    after_node = rest if way.whole is None else Pending(way.whole, within, rest)
                    branches.append((after_node, Chosen((what, way.shape), chosen)))


def grown(chosen: Chosen | None) -> Tree:
    """The tree of a derivation that is written down from left to right, top first."""
    done: list[Tree | str] = []
    while chosen is not None:
        if isinstance(chosen.what, str):
            done.append(chosen.what)
        else:
            node, shape = chosen.what
            fillers = [done.pop() for _ in shape.slots]
            done.append(Tree(node, shape, tuple(fillers)))
        chosen = chosen.before
    tree = done.pop()
    assert isinstance(tree, Tree)
    return tree
