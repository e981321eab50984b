"""How a production of one side becomes text of the other: computed once a grammar and direction."""

from collections.abc import Sequence
from typing import NamedTuple

from fewparse.grammar.parsing.forest import Shape
from fewparse.grammar.rules import Chars, Production, Ref, Text
from fewparse.grammar.synchronous import Pairing, Side, SynchronousGrammar
from fewparse.grammar.translation.strings import MOST_STRINGS, ShortStrings


class Free(NamedTuple):
    """A symbol of the target that has no partner: it may be any of these strings, shortest first.

    `more` says that there may be others.
    """

    texts: tuple[str, ...]
    more: bool


Part = str | int | Free
"""A piece of the target: text, the number of a slot of the source, or free."""


class Option(NamedTuple):
    """One counterpart of a production of the source, which is `shape`.

    `places` says for each slot of the source which symbol of the rule's program side it is; None = dropped.
    `length` is what the target has at least, without what fills its slots.
    """

    number: int
    shape: Shape
    rule: int
    parts: tuple[Part, ...]
    places: tuple[int | None, ...]
    length: int


class Transfer:
    """The options of every production of the source side."""

    def __init__(self, grammar: SynchronousGrammar, source: Side, shapes: Sequence[Shape]) -> None:
        self._source = source
        self._free = ShortStrings(grammar.side("program" if source == "utterance" else "utterance"))
        self._count = 0
        by_production: dict[tuple[str, Production], list[tuple[int, Production, Pairing]]] = {}
        for number, rule in enumerate(grammar.rules):
            if rule.program is not None:
                for pairing in rule.pairings:
                    key = rule.name, pairing.utterance if source == "utterance" else rule.program
                    by_production.setdefault(key, []).append((number, rule.program, pairing))
        self.options: list[tuple[Option, ...]] = []
        for shape in shapes:
            pairs = by_production.get((shape.name, shape.production), ())
            options = (self._option(shape, *pair) for pair in pairs)
            self.options.append(tuple(option for option in options if option is not None))

    def _option(self, shape: Shape, rule: int, program: Production, pairing: Pairing) -> Option | None:
        """The target side with the source's slots in it; None if a part of it can be nothing at all."""
        if self._source == "utterance":
            target, partners = program, list(pairing.links)
            places = {u: p for p, u in enumerate(pairing.links) if u is not None}
        else:
            target = pairing.utterance
            inverse = {u: p for p, u in enumerate(pairing.links) if u is not None}
            partners = [inverse.get(at) for at in range(len(target))]
            places = {p: p for p in inverse.values()}
        slots = {slot.at: number for number, slot in enumerate(shape.slots)}
        parts: list[Part] = []
        length = 0
        for symbol, partner in zip(target, partners, strict=True):
            if isinstance(symbol, Text):
                parts.append(symbol.text)
                length += len(symbol.text)
            elif partner is not None:
                parts.append(slots[partner])
                length += isinstance(symbol, Chars)
            else:
                texts = self._free_texts(symbol)
                if not texts:
                    return None
                more = isinstance(symbol, Ref) and len(texts) == MOST_STRINGS
                parts.append(Free(texts, more) if len(texts) > 1 else texts[0])
                length += len(texts[0])
        self._count += 1
        kept = tuple(places.get(slot.at) for slot in shape.slots)
        return Option(self._count, shape, rule, joined(parts), kept, length)

    def _free_texts(self, symbol: Ref | Chars) -> tuple[str, ...]:
        return self._free.of_class(symbol) if isinstance(symbol, Chars) else self._free.of(symbol.name)


def joined(parts: Sequence[Part]) -> tuple[Part, ...]:
    """The same target with neighbouring texts as one; empty ones vanish."""
    result: list[Part] = []
    for part in parts:
        if isinstance(part, str) and result and isinstance(result[-1], str):
            result[-1] += part
        elif part != "":
            result.append(part)
    return tuple(result)
