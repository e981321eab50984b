"""The counterparts of a forest, best first, each text once.

All texts whose value lies within some slack of the best are made together, leaves first; then the slack grows.
Texts that are equal are one wherever they arise, so that many derivations of few texts cost little.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice, product
from math import prod
from typing import TypeVar

from fewparse.grammar.parsing.forest import IntermediateNode, PackedNode, SymbolNode
from fewparse.grammar.translation.inside import Entry, Inside
from fewparse.grammar.translation.scorers import Context
from fewparse.grammar.translation.transfer import Free, Option, Part, joined

MOST_READINGS = 20_000
MOST_COMBINATIONS = 200_000
AFFORDABLE = 50_000
MOST_FAILURES = 2


@dataclass(frozen=True, slots=True)
class Reading:
    """A text of the target for a node, with the derivation that gives it its value.

    `fillers` has one for each slot of the source: a reading, a character, or its own text if it is dropped.
    """

    value: int
    text: str
    node: SymbolNode
    option: Option
    fillers: "tuple[Reading | str, ...]" = field(repr=False)


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A target whose first source slots are filled."""

    value: int
    parts: tuple[Part, ...]
    fillers: tuple[Reading | str, ...]


Key = TypeVar("Key", str, tuple[Part, ...])
Found = TypeVar("Found", Reading, Unfinished)


class TooManyReadings(Exception):
    """More readings than are worth making."""


class Readings:
    """The readings of the root within a slack; `nearest` is the least that was beyond it.

    `cut` says that something may have had more counterparts than were looked at.

    With `most`, the root keeps only so many and every part of it no more, so that there cannot be too many in all.
    """

    def __init__(self, inside: Inside, slack: int, most: int | None = None) -> None:
        self._inside = inside
        self._most = self._most_now = most
        self._more = self._combined = 0
        self.nearest: int | None = None
        self.cut = False
        self._slack: dict[SymbolNode, dict[Context, int]] = {inside.forest.root: {None: slack}}
        self._entry_slack: dict[tuple[SymbolNode, int], int] = {}
        self._partial_slack: dict[tuple[IntermediateNode, int], int] = {}
        self._spread()
        self._readings: dict[tuple[SymbolNode, Context], dict[str, Reading]] = {}

    def of_root(self) -> list[Reading]:
        """Best first: by cost, then by length, then by text."""
        forest = self._inside.forest
        growing = True
        while growing:
            growing = False
            for node in forest.nodes:
                if node in self._slack:
                    growing = self._read(node) or growing
            growing = growing and forest.cyclic
        found = self._readings.get((forest.root, None), {})
        return sorted(found.values(), key=lambda reading: (reading.value, reading.text))

    def _spread(self) -> None:
        """Hand the slack down: what a part may exceed its best by, so that the whole is within its own slack."""
        forest, growing = self._inside.forest, True
        while growing:
            growing = False
            for node in reversed(forest.nodes):
                for context, slack in list(self._slack.get(node, {}).items()):
                    best = self._inside.best(node, context)
                    for entry in self._inside.entries[node] if best is not None else ():
                        left = slack - (entry.value + self._inside.own(entry, context) - (best or 0))
                        if self._within(left) and left > self._entry_slack.get((node, entry.option.number), -1):
                            self._entry_slack[node, entry.option.number] = left
                            self._spread_entry(entry, left)
                            growing = forest.cyclic

    def _within(self, left: int) -> bool:
        if left < 0 and (self.nearest is None or -left < self.nearest):
            self.nearest = -left
        return left >= 0

    def _spread_entry(self, entry: Entry, slack: int) -> None:
        option, known, slacks = entry.option, self._inside.partials, self._partial_slack
        if entry.way.whole is not None:
            slacks[entry.way.whole, option.number] = slack
        for slot in reversed(range(len(entry.way.layers))):
            context = self._inside.context(option, slot)
            for partial in entry.way.layers[slot]:
                key = partial, option.number
                if key not in slacks:
                    continue
                for before, filler in partial.splits:
                    value = self._step_value(before, filler, option, slot)
                    left = -1 if value is None else slacks[key] - (value - known[key])
                    if value is None or not self._within(left):
                        continue
                    if before is not None:
                        slacks[before, option.number] = max(left, slacks.get((before, option.number), 0))
                    if isinstance(filler, SymbolNode) and option.places[slot] is not None:
                        contexts = self._slack.setdefault(filler, {})
                        contexts[context] = max(left, contexts.get(context, 0))

    def _step_value(
        self, before: IntermediateNode | None, filler: SymbolNode | str, option: Option, slot: int
    ) -> int | None:
        value = 0 if before is None else self._inside.partials.get((before, option.number))
        if value is None or isinstance(filler, str) or option.places[slot] is None:
            return value
        inner = self._inside.best(filler, self._inside.context(option, slot))
        return None if inner is None else value + inner

    def _read(self, node: SymbolNode) -> bool:
        """Make the readings of a node; whether that changed any."""
        if self._most is not None:
            affordable = max(1, AFFORDABLE // max(1, self._inside.forest.size))
            self._most_now = self._most if node is self._inside.forest.root else min(self._most, affordable)
        known = {context: self._readings.get((node, context), {}) for context in self._slack[node]}
        made = {context: dict(readings) for context, readings in known.items()}
        for entry in self._inside.entries[node]:
            slack = self._entry_slack.get((node, entry.option.number))
            for whole in self._finish(entry, slack) if slack is not None else ():
                text = "".join(map(str, whole.parts))
                for context, allowed in self._slack[node].items():
                    value = whole.value + self._inside.own(entry, context)
                    best = self._inside.best(node, context)
                    if best is not None and self._within(best + allowed - value):
                        reading = Reading(value, text, node, entry.option, whole.fillers)
                        self._keep(made[context], text, reading)
        for context, readings in made.items():
            self._readings[node, context] = self._cut(readings)
        return any(self._readings[node, context] != readings for context, readings in known.items())

    def _check(self) -> None:
        """Refuse to go on; where each part keeps only so many, there is an end to it anyway."""
        too_many = self._more > MOST_READINGS or self._combined > MOST_COMBINATIONS
        if too_many and self._most is None:
            raise TooManyReadings

    def _keep(self, found: dict[Key, Found], key: Key, new: Found) -> None:
        """Keep the better one of equals."""
        if key not in found:
            self._more += bool(found)
            self._check()
            found[key] = new
        elif new.value < found[key].value:
            found[key] = new

    def _cut(self, found: dict[Key, Found]) -> dict[Key, Found]:
        if self._most_now is None:
            return found
        return dict(sorted(found.items(), key=lambda item: (item[1].value, as_text(item[0])))[: self._most_now])

    def _finish(self, entry: Entry, slack: int) -> Iterator[Unfinished]:
        """All ways to fill an entry's slots within its slack, its free parts included."""
        way, option = entry.way, entry.option
        for whole in self._fill(way, option):
            for value, parts in self._choices(whole.parts):
                if self._within(entry.value + slack - whole.value - value):
                    yield Unfinished(whole.value + value, parts, whole.fillers)

    def _choices(self, parts: tuple[Part, ...]) -> Iterator[tuple[int, tuple[Part, ...]]]:
        """The strings that free parts may be, with what they add to the length."""
        free = [part for part in parts if isinstance(part, Free)]
        self.cut |= any(part.more for part in free) or prod(len(part.texts) for part in free) > MOST_READINGS
        for texts in islice(product(*(part.texts for part in free)), MOST_READINGS):
            chosen = iter(texts)
            added = sum(len(text) - len(part.texts[0]) for text, part in zip(texts, free, strict=True))
            yield added, joined([next(chosen) if isinstance(part, Free) else part for part in parts])

    def _fill(self, way: PackedNode, option: Option) -> list[Unfinished]:
        made: dict[IntermediateNode | None, list[Unfinished]] = {
            None: [Unfinished(option.length, option.parts, ())]
        }
        for slot, layer in enumerate(way.layers):
            for partial in layer:
                slack = self._partial_slack.get((partial, option.number))
                if slack is not None:
                    most = self._inside.partials[partial, option.number] + option.length + slack
                    made[partial] = self._extend(partial, option, slot, made, most)
        return made[way.whole]

    def _extend(
        self,
        partial: IntermediateNode,
        option: Option,
        slot: int,
        made: dict[IntermediateNode | None, list[Unfinished]],
        most: int,
    ) -> list[Unfinished]:
        """Fill one more slot, in every way within the slack; equal targets are one."""
        found: dict[tuple[Part, ...], Unfinished] = {}
        for before, filler in partial.splits:
            fillings = self._fillings(filler, option, slot)
            beginnings = made.get(before, ())
            self._combined += max(0, len(beginnings) * len(fillings) - 1)
            self._check()
            for rank, first in enumerate(beginnings, 1):
                # Both are in order, so that the best few are made of few: the third of one goes with a first.
                for added, text, reading in fillings[: self._most_now and self._most_now // rank]:
                    value = first.value + added
                    if self._within(most - value):
                        parts = joined([text if part == slot else part for part in first.parts])
                        self._keep(found, parts, Unfinished(value, parts, (*first.fillers, reading)))
        return list(self._cut(found).values())

    def _fillings(
        self, filler: SymbolNode | str, option: Option, slot: int
    ) -> list[tuple[int, str, Reading | str]]:
        """What a slot may be filled with: what it adds, its text in the target, and itself."""
        if isinstance(filler, str):
            return [(0, filler, filler)]
        if option.places[slot] is None:
            text = self._inside.forest.text[filler.begin : filler.end]
            return [(0, text, text)]
        readings = self._readings.get((filler, self._inside.context(option, slot)), {})
        return [(reading.value, reading.text, reading) for reading in readings.values()]


def as_text(key: str | tuple[Part, ...]) -> str:
    """What orders texts, and targets that still have open slots."""
    return key if isinstance(key, str) else "".join(part if isinstance(part, str) else "\0" for part in key)


def best_readings(inside: Inside, wanted: int) -> tuple[list[Reading], bool]:
    """The best readings, so many where there are, and whether those are all.

    The slack grows ever faster; where that was too much, it grows again from the least that it must.
    """
    if inside.best(inside.forest.root, None) is None:
        return [], True
    found: list[Reading] = []
    slack = least = step = failures = 0
    while True:
        readings = Readings(inside, slack)
        try:
            found = readings.of_root()
        except TooManyReadings:
            failures += 1
            if slack == least or failures > MOST_FAILURES:
                return found[:wanted] or Readings(inside, 0, wanted).of_root()[:wanted], False
            slack, step = least, 0
            continue
        if readings.nearest is None or len(found) >= wanted:
            all_made = readings.nearest is None and not readings.cut
            return found[:wanted], all_made and len(found) <= wanted
        least = slack + readings.nearest
        slack, step = least + step, max(2 * step, readings.nearest)
