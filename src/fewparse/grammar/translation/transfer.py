"""Target templates: how each production of the source side is written on the target side.

They depend only on the grammar and the direction, so that they are computed once and used for every text.
"""

from collections.abc import Sequence
from typing import NamedTuple

from fewparse.grammar.parsing.forest import Shape
from fewparse.grammar.rules import Chars, Production, Ref, Text
from fewparse.grammar.synchronous import Pairing, Side, SynchronousGrammar
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
    """The templates of every production of the source side, indexed by the production's number."""

    def __init__(self, grammar: SynchronousGrammar, source: Side, shapes: Sequence[Shape]) -> None:
        self._source = source
        self._strings = ShortestStrings(grammar.side("program" if source == "utterance" else "utterance"))
        self._count = 0
        by_production: dict[tuple[str, Production], list[tuple[int, Production, Pairing]]] = {}
        for number, rule in enumerate(grammar.rules):
            if rule.program is not None:
                for pairing in rule.pairings:
                    key = rule.name, pairing.utterance if source == "utterance" else rule.program
                    by_production.setdefault(key, []).append((number, rule.program, pairing))
        self.templates: list[tuple[Template, ...]] = []
        for shape in shapes:
            pairs = by_production.get((shape.name, shape.production), ())
            templates = (self._template(shape, *pair) for pair in pairs)
            self.templates.append(tuple(template for template in templates if template is not None))

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
        self._count += 1
        program_positions = tuple(positions.get(slot.at) for slot in shape.slots)
        return Template(self._count, shape, rule, merge_texts(parts), program_positions, length)

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
