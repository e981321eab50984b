"""A byte-level Earley recogniser as an independent oracle for sentences and viable prefixes.

It shares nothing with the package except the plain rules. Rows are interned by content, so that the recogniser is
a lazily built automaton if the language is regular.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from fewparse.grammar.rules import Chars, Grammar, Production, Ref

Part = str | tuple[tuple[int, int], ...]
"""A nonterminal's name, or the code points of a character class."""


class Item(NamedTuple):
    """A dotted production, the bytes read of the character after the dot, and the row of its origin."""

    name: str
    body: tuple[Part, ...]
    dot: int
    partial: bytes
    origin: "Row | None"  # None is the row of the item itself

    @property
    def next(self) -> Part | None:
        return self.body[self.dot] if self.dot < len(self.body) else None


@dataclass(eq=False)
class Row:
    """All items after a prefix; prefixes with the same items share their row."""

    items: list[Item] = field(default_factory=list)
    waiting: dict[str, list[Item]] = field(default_factory=dict)
    moves: dict[int, "Row | None"] = field(default_factory=dict)
    accepts: bool = False


class Recogniser:
    """Recognises sentences and viable prefixes of one grammar."""

    def __init__(self, grammar: Grammar) -> None:
        self._rules: dict[str, list[tuple[Part, ...]]] = {
            name: [tuple(flat(production)) for production in productions]
            for name, productions in grammar.rules.items()
        }
        self._start = grammar.start
        productive = self._deriving(characters_count=True)
        for name, bodies in self._rules.items():
            self._rules[name] = [b for b in bodies if all(p in productive if isinstance(p, str) else p for p in b)]
        self._nullable = self._deriving(characters_count=False)
        self._rows: dict[frozenset[Item], Row] = {}
        self.root = self._close(frozenset(Item(self._start, b, 0, b"", None) for b in self._rules[self._start]))
        self.root.accepts = self._start in self._nullable

    def _deriving(self, characters_count: bool) -> set[str]:
        """The nonterminals that derive some string or, without characters, the empty one."""
        found: set[str] = set()
        while True:
            new = {
                name
                for name, bodies in self._rules.items()
                if any(
                    all(p in found if isinstance(p, str) else characters_count and bool(p) for p in body)
                    for body in bodies
                )
            }
            if new == found:
                return found
            found = new

    def row(self, prefix: bytes) -> Row | None:
        """The row after a prefix; None if no sentence begins with it."""
        row: Row | None = self.root
        for byte in prefix:
            row = self.move(row, byte) if row else None
        return row

    def viable(self, prefix: bytes) -> bool:
        """Whether some sentence begins with these bytes."""
        return self.row(prefix) is not None

    def accepts(self, text: bytes | str) -> bool:
        """Whether this is a sentence."""
        row = self.row(text.encode() if isinstance(text, str) else text)
        return row is not None and row.accepts

    def move(self, row: Row, byte: int) -> Row | None:
        """The row after one more byte."""
        if byte not in row.moves:
            kernel = frozenset(scanned(row, byte))
            row.moves[byte] = self._rows.get(kernel) or self._close(kernel) if kernel else None
        return row.moves[byte]

    def _close(self, kernel: frozenset[Item]) -> Row:
        row = self._rows[kernel] = Row()
        agenda, seen = list(kernel), set(kernel)

        def add(item: Item) -> None:
            if item not in seen:
                seen.add(item)
                agenda.append(item)

        while agenda:
            item = agenda.pop()
            row.items.append(item)
            part = item.next
            if isinstance(part, str):
                row.waiting.setdefault(part, []).append(item)
                for body in self._rules[part]:
                    add(Item(part, body, 0, b"", None))
                if part in self._nullable:
                    add(item._replace(dot=item.dot + 1))
            elif part is None and item.origin is not None:
                row.accepts |= item.name == self._start and item.origin is self.root
                for parent in item.origin.waiting.get(item.name, ()):
                    add(parent._replace(dot=parent.dot + 1, origin=parent.origin or item.origin))
        return row


def flat(production: Production) -> Iterator[Part]:
    """The parts of a production, literals character by character."""
    for symbol in production:
        if isinstance(symbol, Ref):
            yield symbol.name
        elif isinstance(symbol, Chars):
            yield symbol.ranges
        else:
            yield from (((ord(char), ord(char)),) for char in symbol.text)


def scanned(row: Row, byte: int) -> Iterator[Item]:
    """The items of a row that accept a byte, advanced over it."""
    for item in row.items:
        if isinstance(item.next, tuple):
            partial = item.partial + bytes([byte])
            low, high, missing = characters(partial)
            if any(low <= last and first <= high for first, last in item.next):
                origin = item.origin or row
                if missing:
                    yield item._replace(partial=partial, origin=origin)
                else:
                    yield item._replace(dot=item.dot + 1, partial=b"", origin=origin)


def characters(partial: bytes) -> tuple[int, int, int]:
    """The first and last code point whose UTF-8 begins with these bytes, and how many bytes are missing."""
    lead = partial[0]
    if lead < 0x80:
        return lead, lead, 0
    length, floor, ceiling = (2, 0x80, 0x7FF) if lead < 0xE0 else (3, 0x800, 0xFFFF)
    if lead >= 0xF0:
        length, floor, ceiling = 4, 0x10000, 0x10FFFF
    if lead < 0xC0 or lead >= 0xF8 or any(byte & 0xC0 != 0x80 for byte in partial[1:]):
        return 0, -1, 0
    bits = lead & (0x7F >> length)
    for byte in partial[1:]:
        bits = bits << 6 | byte & 0x3F
    missing = length - len(partial)
    low, high = max(bits << 6 * missing, floor), min(((bits + 1) << 6 * missing) - 1, ceiling)
    if low > high or (low >= 0xD800 and high <= 0xDFFF):
        return 0, -1, 0
    return low, high, missing
