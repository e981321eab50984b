"""The best value of every node of a parse forest, by dynamic programming (Viterbi inside values).

A value is one integer: the scorer's cost in the high bits, the length of the target text in the low `LENGTH_BITS`.
Values therefore add and compare as plain integers. The result is exact for any number of derivations.
"""

from typing import NamedTuple

from fewparse.grammar.parsing.forest import Forest, IntermediateNode, PackedNode, SymbolNode
from fewparse.grammar.translation.scorers import Context, Scorer
from fewparse.grammar.translation.transfer import Template, Transfer

LENGTH_BITS = 32


class Entry(NamedTuple):
    """A packed node with one of its target templates and the best value of both, without the rule's own cost."""

    packed: PackedNode
    template: Template
    value: int


class Inside:
    """Best values, computed bottom-up; in a cyclic forest the pass is repeated until nothing improves.

    `entries` holds the entries of each node; `intermediate_values` the best value of an intermediate node with the
    template of the given number.
    """

    def __init__(self, forest: Forest, transfer: Transfer, scorer: Scorer) -> None:
        self.forest = forest
        self.scorer = scorer
        self._transfer = transfer
        self.entries: dict[SymbolNode, list[Entry]] = {}
        self.intermediate_values: dict[tuple[IntermediateNode, int], int] = {}
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
        for packed in node.packed:
            for template in self._transfer.templates(packed.shape):
                value = self._slots_value(packed, template)
                if value is not None:
                    entries.append(Entry(packed, template, value + template.length))
        return entries

    def _slots_value(self, packed: PackedNode, template: Template) -> int | None:
        """Return the best value of a packed node's slots; None if a slot has no translation."""
        values = self.intermediate_values
        number = template.number
        for slot, layer in enumerate(packed.layers):
            context = self.context(template, slot)
            dropped = template.program_positions[slot] is None
            for intermediate in layer:
                best: int | None = None
                for before, filler in intermediate.splits:
                    value = 0 if before is None else values.get((before, number))
                    if value is not None and isinstance(filler, SymbolNode) and not dropped:
                        inner = self.best(filler, context)
                        value = None if inner is None else value + inner
                    if value is not None and (best is None or value < best):
                        best = value
                if best is not None:
                    values[intermediate, number] = best
        whole = packed.whole
        return 0 if whole is None else values.get((whole, number))

    def context(self, template: Template, slot: int) -> Context:
        """Return the context of a slot's filler; always None for a scorer that ignores contexts."""
        position = template.program_positions[slot]
        return (template.rule, position) if self.scorer.contextual and position is not None else None

    def best(self, node: SymbolNode, context: Context) -> int | None:
        """Return the best value of a node in a context; None if it has no translation."""
        key = node, context
        try:
            return self._best[key]
        except KeyError:
            values = [entry.value + self.rule_value(entry, context) for entry in self.entries.get(node, ())]
            self._best[key] = best = min(values, default=None)
            return best

    def rule_value(self, entry: Entry, context: Context) -> int:
        """Return the cost of an entry's rule in a context, as a value."""
        return self.scorer.cost(entry.template.rule, context) << LENGTH_BITS
