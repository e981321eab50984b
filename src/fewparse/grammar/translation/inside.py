"""The best counterpart of every node of a forest, by dynamic programming: exact with any number of derivations.

A value is one integer, the scorer's cost above the length of the text, so that values add and compare as they are.
"""

from typing import NamedTuple

from fewparse.grammar.parsing.forest import Forest, IntermediateNode, PackedNode, SymbolNode
from fewparse.grammar.translation.scorers import Context, Scorer
from fewparse.grammar.translation.transfer import Option, Transfer

LENGTH_BITS = 32


class Entry(NamedTuple):
    """A production of a node with one of its counterparts, its value without the cost of the rule itself."""

    way: PackedNode
    option: Option
    value: int


class Inside:
    """Best values, from the leaves up; where a node is part of itself, again until nothing improves."""

    def __init__(self, forest: Forest, transfer: Transfer, scorer: Scorer) -> None:
        self.forest = forest
        self.scorer = scorer
        self._transfer = transfer
        self.entries: dict[SymbolNode, list[Entry]] = {}
        self.partials: dict[tuple[IntermediateNode, int], int] = {}
        self._best: dict[tuple[SymbolNode, Context], int | None] = {}
        improving = True
        while improving:
            improving = False
            for node in forest.nodes:
                entries = list(self._entries(node))
                improving = improving or (forest.cyclic and entries != self.entries.get(node))
                self.entries[node] = entries
            if improving:
                self._best.clear()

    def _entries(self, node: SymbolNode) -> list[Entry]:
        entries = []
        for way in node.packed:
            for option in self._transfer.options[way.shape.number]:
                value = self._fill(way, option)
                if value is not None:
                    entries.append(Entry(way, option, value + option.length))
        return entries

    def _fill(self, way: PackedNode, option: Option) -> int | None:
        """The best value of a production's slots."""
        known = self.partials
        number = option.number
        for slot, layer in enumerate(way.layers):
            context = self.context(option, slot)
            dropped = option.places[slot] is None
            for partial in layer:
                best: int | None = None
                for before, filler in partial.splits:
                    value = 0 if before is None else known.get((before, number))
                    if value is not None and isinstance(filler, SymbolNode) and not dropped:
                        inner = self.best(filler, context)
                        value = None if inner is None else value + inner
                    if value is not None and (best is None or value < best):
                        best = value
                if best is not None:
                    known[partial, number] = best
        whole = way.whole
        return 0 if whole is None else known.get((whole, number))

    def context(self, option: Option, slot: int) -> Context:
        """The context of what fills a slot, as far as the scorer cares."""
        place = option.places[slot]
        return (option.rule, place) if self.scorer.contextual and place is not None else None

    def best(self, node: SymbolNode, context: Context) -> int | None:
        """The best value of a node in its place; None if it has no counterpart."""
        key = node, context
        try:
            return self._best[key]
        except KeyError:
            values = [entry.value + self.own(entry, context) for entry in self.entries.get(node, ())]
            self._best[key] = best = min(values, default=None)
            return best

    def own(self, entry: Entry, context: Context) -> int:
        """What the rule of an entry costs in a place, as a value."""
        return self.scorer.cost(entry.option.rule, context) << LENGTH_BITS
