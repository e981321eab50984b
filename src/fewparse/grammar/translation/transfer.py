"""Target templates: how each production of the source side is written on the target side.

They depend only on the grammar and the direction, so that they are computed once.
"""

from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

from fewparse.grammar.parsing.forest import Shape
from fewparse.grammar.rules import Chars, Production, Ref, Text
from fewparse.grammar.synchronous import PairedRule, Pairing, Side, SynchronousGrammar
from fewparse.grammar.translation.shortest_strings import MAX_STRINGS, ShortestStrings


class Unlinked(NamedTuple):
    """A target symbol without a link to the source: any of these strings, shortest first.

    `truncated` is set if the symbol may have more strings than are listed.
    """

    texts: tuple[str, ...]
    truncated: bool


TargetPart = str | int | Unlinked
"""A piece of the target: text, the index of a source slot, or an unlinked symbol."""


class Template(NamedTuple):
    """One target side of a source production, with the source's slots in it.

    `number` identifies the template, `shape` is the source production and `rule` the index of the paired rule.
    `program_positions` gives for each source slot its symbol on the rule's program side; None if the target drops
    the slot. `length` is the least length of the target without its slots.
    """

    number: int
    shape: Shape
    rule: int
    parts: tuple[TargetPart, ...]
    program_positions: tuple[int | None, ...]
    length: int


class Transfer:
    """The templates of the productions of the source side, each made when its production is first used."""

    def __init__(self, grammar: SynchronousGrammar, source: Side) -> None:
        self._source = source
        self._strings = ShortestStrings(grammar.side("program" if source == "utterance" else "utterance"))
        self._numbers = count(1)
        self._rules: dict[str, list[tuple[int, PairedRule]]] = {}
        for number, rule in enumerate(grammar.rules):
            self._rules.setdefault(rule.name, []).append((number, rule))
        self._pairs: dict[str, dict[Production, list[tuple[int, Production, Pairing]]]] = {}
        self._made: dict[int, tuple[Template, ...]] = {}

    def templates(self, shape: Shape) -> tuple[Template, ...]:
        """Return the templates of a production."""
        found = self._made.get(shape.number)
        if found is None:
            pairs = self._pairs_of(shape.name).get(shape.production, ())
            made = (self._template(shape, *pair) for pair in pairs)
            # threads that make the same templates must use the same ones
            found = self._made.setdefault(shape.number, tuple(t for t in made if t is not None))
        return found

    def _pairs_of(self, name: str) -> dict[Production, list[tuple[int, Production, Pairing]]]:
        """Return the rules of a nonterminal with their program sides and pairings, by production of the source."""
        if name not in self._pairs:
            pairs: dict[Production, list[tuple[int, Production, Pairing]]] = {}
            for number, rule in self._rules.get(name, ()):
                if (program := rule.program) is not None:
                    for pairing in rule.pairings:
                        production = pairing.utterance if self._source == "utterance" else program
                        pairs.setdefault(production, []).append((number, program, pairing))
            self._pairs[name] = pairs
        return self._pairs[name]

    def _template(self, shape: Shape, rule: int, program: Production, pairing: Pairing) -> Template | None:
        """Return the target side with the source's slots; None if an unlinked symbol of it derives no string."""
        if self._source == "utterance":
            target, partners = program, list(pairing.links)
            positions = {u: p for p, u in enumerate(pairing.links) if u is not None}
        else:
            target = pairing.utterance
            inverse = {u: p for p, u in enumerate(pairing.links) if u is not None}
            partners = [inverse.get(at) for at in range(len(target))]
            positions = {p: p for p in inverse.values()}
        slots = {slot.at: number for number, slot in enumerate(shape.slots)}
        parts: list[TargetPart] = []
        length = 0
        for symbol, partner in zip(target, partners, strict=True):
            if isinstance(symbol, Text):
                parts.append(symbol.text)
                length += len(symbol.text)
            elif partner is not None:
                parts.append(slots[partner])
                length += isinstance(symbol, Chars)
            else:
                texts = self._strings_of(symbol)
                if not texts:
                    return None
                truncated = isinstance(symbol, Ref) and len(texts) == MAX_STRINGS
                parts.append(Unlinked(texts, truncated) if len(texts) > 1 else texts[0])
                length += len(texts[0])
        program_positions = tuple(positions.get(slot.at) for slot in shape.slots)
        return Template(next(self._numbers), shape, rule, merge_texts(parts), program_positions, length)

    def _strings_of(self, symbol: Ref | Chars) -> tuple[str, ...]:
        return self._strings.of_class(symbol) if isinstance(symbol, Chars) else self._strings.of(symbol.name)


def merge_texts(parts: Sequence[TargetPart]) -> tuple[TargetPart, ...]:
    """Concatenate adjacent texts and drop empty ones."""
    result: list[TargetPart] = []
    for part in parts:
        if isinstance(part, str) and result and isinstance(result[-1], str):
            result[-1] += part
        elif part != "":
            result.append(part)
    return tuple(result)
