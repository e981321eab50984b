"""The k best derivations of a parse forest with distinct target texts, best first.

This is the k-best problem of Huang & Chiang (2005), but for distinct texts: many derivations may yield the same
text, and their lazy algorithm would enumerate all of them. Instead, all derivations whose value is within a slack
of the best are built bottom-up, where derivations of a node with equal texts are merged and the best one is kept;
the slack then grows until there are k texts.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice, product
from math import prod
from typing import TypeVar

from fewparse.grammar.parsing.forest import IntermediateNode, PackedNode, SymbolNode
from fewparse.grammar.translation.inside import Entry, Inside
from fewparse.grammar.translation.scorers import Context
from fewparse.grammar.translation.transfer import TargetPart, Template, Unlinked, merge_texts

MAX_DERIVATIONS = 20_000
MAX_COMBINATIONS = 200_000
TRUNCATED_BUDGET = 50_000
"""With a limit, the number of derivations stored per node times the size of the forest."""
MAX_FAILURES = 2


@dataclass(frozen=True, slots=True)
class Derivation:
    """A target text of a node, with the derivation that gives it its value.

    `fillers` has one element for each source slot: a derivation, a character, or the source text of a slot that
    the target drops.
    """

    value: int
    text: str
    node: SymbolNode
    template: Template
    fillers: "tuple[Derivation | str, ...]" = field(repr=False)


@dataclass(frozen=True, slots=True)
class PartialDerivation:
    """A target whose first source slots are filled."""

    value: int
    parts: tuple[TargetPart, ...]
    fillers: tuple[Derivation | str, ...]


Key = TypeVar("Key", str, tuple[TargetPart, ...])
Item = TypeVar("Item", Derivation, PartialDerivation)


class TooManyDerivations(Exception):
    """The slack allows more derivations than `MAX_DERIVATIONS` or `MAX_COMBINATIONS`."""


class SlackSearch:
    """Enumerates the derivations of the root whose value is at most the best value plus `slack`.

    `least_excess` is the least amount by which a discarded derivation exceeded the slack; None if there was none.
    `truncated` is set if an unlinked symbol may have more strings than were tried.

    With a `limit`, the root stores at most that many derivations and every other node no more, so that the search
    never raises `TooManyDerivations`.
    """

    def __init__(self, inside: Inside, slack: int, limit: int | None = None) -> None:
        self._inside = inside
        self._limit = self._node_limit = limit
        self._stored = self._combined = 0
        self.least_excess: int | None = None
        self.truncated = False
        self._slack: dict[SymbolNode, dict[Context, int]] = {inside.forest.root: {None: slack}}
        self._entry_slack: dict[tuple[SymbolNode, int], int] = {}
        self._intermediate_slack: dict[tuple[IntermediateNode, int], int] = {}
        self._propagate_slack()
        self._derivations: dict[tuple[SymbolNode, Context], dict[str, Derivation]] = {}

    def run(self) -> list[Derivation]:
        """Return the derivations of the root, ordered by cost, then by length, then by text."""
        forest = self._inside.forest
        growing = True
        while growing:
            growing = False
            for node in forest.nodes:
                if node in self._slack:
                    growing = self._derive(node) or growing
            growing = growing and forest.cyclic
        found = self._derivations.get((forest.root, None), {})
        return sorted(found.values(), key=lambda derivation: (derivation.value, derivation.text))

    def _propagate_slack(self) -> None:
        """Compute top-down by how much each part may exceed its best value for the root to stay in its slack."""
        forest, growing = self._inside.forest, True
        while growing:
            growing = False
            for node in reversed(forest.nodes):
                for context, slack in list(self._slack.get(node, {}).items()):
                    best = self._inside.best(node, context)
                    for entry in self._inside.entries[node] if best is not None else ():
                        left = slack - (entry.value + self._inside.rule_value(entry, context) - (best or 0))
                        if self._is_within(left) and left > self._entry_slack.get(
                            (node, entry.template.number), -1
                        ):
                            self._entry_slack[node, entry.template.number] = left
                            self._propagate_entry_slack(entry, left)
                            growing = forest.cyclic

    def _is_within(self, left: int) -> bool:
        """Return whether the remaining slack is not negative; record the excess if it is."""
        if left < 0 and (self.least_excess is None or -left < self.least_excess):
            self.least_excess = -left
        return left >= 0

    def _propagate_entry_slack(self, entry: Entry, slack: int) -> None:
        template, values, slacks = entry.template, self._inside.intermediate_values, self._intermediate_slack
        if entry.packed.whole is not None:
            slacks[entry.packed.whole, template.number] = slack
        for slot in reversed(range(len(entry.packed.layers))):
            context = self._inside.context(template, slot)
            for intermediate in entry.packed.layers[slot]:
                key = intermediate, template.number
                if key not in slacks:
                    continue
                for before, filler in intermediate.splits:
                    value = self._step_value(before, filler, template, slot)
                    left = -1 if value is None else slacks[key] - (value - values[key])
                    if value is None or not self._is_within(left):
                        continue
                    if before is not None:
                        slacks[before, template.number] = max(left, slacks.get((before, template.number), 0))
                    if isinstance(filler, SymbolNode) and template.program_positions[slot] is not None:
                        contexts = self._slack.setdefault(filler, {})
                        contexts[context] = max(left, contexts.get(context, 0))

    def _step_value(
        self, before: IntermediateNode | None, filler: SymbolNode | str, template: Template, slot: int
    ) -> int | None:
        value = 0 if before is None else self._inside.intermediate_values.get((before, template.number))
        if value is None or isinstance(filler, str) or template.program_positions[slot] is None:
            return value
        inner = self._inside.best(filler, self._inside.context(template, slot))
        return None if inner is None else value + inner

    def _derive(self, node: SymbolNode) -> bool:
        """Build the derivations of a node from those of its parts; return whether any changed."""
        if self._limit is not None:
            affordable = max(1, TRUNCATED_BUDGET // max(1, self._inside.forest.size))
            self._node_limit = self._limit if node is self._inside.forest.root else min(self._limit, affordable)
        known = {context: self._derivations.get((node, context), {}) for context in self._slack[node]}
        made = {context: dict(derivations) for context, derivations in known.items()}
        for entry in self._inside.entries[node]:
            slack = self._entry_slack.get((node, entry.template.number))
            for whole in self._complete(entry, slack) if slack is not None else ():
                text = "".join(map(str, whole.parts))
                for context, allowed in self._slack[node].items():
                    value = whole.value + self._inside.rule_value(entry, context)
                    best = self._inside.best(node, context)
                    if best is not None and self._is_within(best + allowed - value):
                        derivation = Derivation(value, text, node, entry.template, whole.fillers)
                        self._add(made[context], text, derivation)
        for context, derivations in made.items():
            self._derivations[node, context] = self._truncate(derivations)
        return any(self._derivations[node, context] != derivations for context, derivations in known.items())

    def _check_size(self) -> None:
        """Raise `TooManyDerivations` beyond the maximum; a search with a limit is bounded already."""
        too_many = self._stored > MAX_DERIVATIONS or self._combined > MAX_COMBINATIONS
        if too_many and self._limit is None:
            raise TooManyDerivations

    def _add(self, found: dict[Key, Item], key: Key, new: Item) -> None:
        """Store an item unless one with the same key has at most its value."""
        if key not in found:
            self._stored += bool(found)
            self._check_size()
            found[key] = new
        elif new.value < found[key].value:
            found[key] = new

    def _truncate(self, found: dict[Key, Item]) -> dict[Key, Item]:
        if self._node_limit is None:
            return found
        return dict(
            sorted(found.items(), key=lambda item: (item[1].value, sort_text(item[0])))[: self._node_limit]
        )

    def _complete(self, entry: Entry, slack: int) -> Iterator[PartialDerivation]:
        """Yield every way to fill an entry's slots and unlinked symbols within its slack."""
        for whole in self._fill_slots(entry.packed, entry.template):
            for value, parts in self._fill_unlinked(whole.parts):
                if self._is_within(entry.value + slack - whole.value - value):
                    yield PartialDerivation(whole.value + value, parts, whole.fillers)

    def _fill_unlinked(self, parts: tuple[TargetPart, ...]) -> Iterator[tuple[int, tuple[TargetPart, ...]]]:
        """Yield the parts with strings for their unlinked symbols, and the length added to the shortest ones."""
        unlinked = [part for part in parts if isinstance(part, Unlinked)]
        combinations = prod(len(part.texts) for part in unlinked)
        self.truncated |= any(part.truncated for part in unlinked) or combinations > MAX_DERIVATIONS
        for texts in islice(product(*(part.texts for part in unlinked)), MAX_DERIVATIONS):
            following = iter(texts)
            added = sum(len(text) - len(part.texts[0]) for text, part in zip(texts, unlinked, strict=True))
            yield added, merge_texts([next(following) if isinstance(part, Unlinked) else part for part in parts])

    def _fill_slots(self, packed: PackedNode, template: Template) -> list[PartialDerivation]:
        empty = PartialDerivation(template.length, template.parts, ())
        made: dict[IntermediateNode | None, list[PartialDerivation]] = {None: [empty]}
        for slot, layer in enumerate(packed.layers):
            for intermediate in layer:
                key = intermediate, template.number
                slack = self._intermediate_slack.get(key)
                if slack is not None:
                    max_value = self._inside.intermediate_values[key] + template.length + slack
                    made[intermediate] = self._extend(intermediate, template, slot, made, max_value)
        return made[packed.whole]

    def _extend(
        self,
        intermediate: IntermediateNode,
        template: Template,
        slot: int,
        made: dict[IntermediateNode | None, list[PartialDerivation]],
        max_value: int,
    ) -> list[PartialDerivation]:
        """Fill one more slot in every way up to a value; equal targets are merged."""
        found: dict[tuple[TargetPart, ...], PartialDerivation] = {}
        for before, filler in intermediate.splits:
            fillings = self._fillings(filler, template, slot)
            prefixes = made.get(before, ())
            self._combined += max(0, len(prefixes) * len(fillings) - 1)
            self._check_size()
            for rank, prefix in enumerate(prefixes, 1):
                # Both lists are sorted: the i-th of one and the j-th of the other are among the k best pairs only
                # if i * j <= k.
                for added, text, derivation in fillings[: self._node_limit and self._node_limit // rank]:
                    value = prefix.value + added
                    if self._is_within(max_value - value):
                        parts = merge_texts([text if part == slot else part for part in prefix.parts])
                        new = PartialDerivation(value, parts, (*prefix.fillers, derivation))
                        self._add(found, parts, new)
        return list(self._truncate(found).values())

    def _fillings(
        self, filler: SymbolNode | str, template: Template, slot: int
    ) -> list[tuple[int, str, Derivation | str]]:
        """Return what may fill a slot: the value it adds, its target text, and the filler itself."""
        if isinstance(filler, str):
            return [(0, filler, filler)]
        if template.program_positions[slot] is None:
            text = self._inside.forest.text[filler.start : filler.end]
            return [(0, text, text)]
        derivations = self._derivations.get((filler, self._inside.context(template, slot)), {})
        return [(derivation.value, derivation.text, derivation) for derivation in derivations.values()]


def sort_text(key: str | tuple[TargetPart, ...]) -> str:
    """Return the text by which texts, and targets with open slots, are ordered."""
    return key if isinstance(key, str) else "".join(part if isinstance(part, str) else "\0" for part in key)


def k_best(inside: Inside, k: int) -> tuple[list[Derivation], bool]:
    """Return up to k best derivations with distinct texts, and whether there are no others.

    The slack grows by doubled steps; if that allows too many derivations, it restarts with the least slack that
    allows a new one.
    """
    if inside.best(inside.forest.root, None) is None:
        return [], True
    found: list[Derivation] = []
    slack = min_slack = step = failures = 0
    while True:
        search = SlackSearch(inside, slack)
        try:
            found = search.run()
        except TooManyDerivations:
            failures += 1
            if slack == min_slack or failures > MAX_FAILURES:
                return found[:k] or SlackSearch(inside, 0, k).run()[:k], False
            slack, step = min_slack, 0
            continue
        if search.least_excess is None or len(found) >= k:
            exhausted = search.least_excess is None and not search.truncated
            return found[:k], exhausted and len(found) <= k
        min_slack = slack + search.least_excess
        slack, step = min_slack + step, max(2 * step, search.least_excess)
