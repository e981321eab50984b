"""The spans of an utterance that a rule can copy, as positions in its encoded bytes; linear in the utterance."""

from collections import defaultdict
from functools import cached_property

from fewparse.constrain.copy_spans import FreeText, ends_word, starts_word

Positions = tuple[int, ...]
UNUSABLE = -1


class SpanTable:
    """All spans of an utterance that consist of a rule's characters, from the start to the end of a word.

    A prefix of a span is represented by its end positions in the encoded utterance: several if it occurs there
    several times. Every position can be continued to the end of a span.
    """

    def __init__(self, characters: FreeText, utterance: str) -> None:
        encoded = [characters.encoded(char) for char in utterance]
        usable = False
        for i in range(len(utterance) - 1, -1, -1):
            # A character from which no end of a word can be reached cannot be copied.
            usable = encoded[i] is not None and (usable or ends_word(utterance, i))
            if not usable:
                encoded[i] = None
        self._bytes: list[int] = []
        self._ends: set[int] = set()
        self._starts: defaultdict[int, list[int]] = defaultdict(list)
        for i, written in enumerate(encoded):
            data = b"" if written is None else written.encode()
            if data and starts_word(utterance, i):
                self._starts[data[0]].append(len(self._bytes) + 1)
            self._bytes += data or (UNUSABLE,)
            if data and ends_word(utterance, i):
                self._ends.add(len(self._bytes))
        self._bytes.append(UNUSABLE)

    @property
    def first_bytes(self) -> frozenset[int]:
        """The bytes with which spans start; none if there are no spans."""
        return frozenset(self._starts)

    def following(self, positions: Positions | None) -> dict[int, Positions]:
        """Return the positions after each byte that may follow; None is the position before a span."""
        if positions is None:
            return self._after_start
        found: defaultdict[int, list[int]] = defaultdict(list)
        for position in positions:
            if (byte := self._bytes[position]) != UNUSABLE:
                found[byte].append(position + 1)
        return {byte: tuple(ends) for byte, ends in found.items()}

    @cached_property
    def _after_start(self) -> dict[int, Positions]:
        return {byte: tuple(ends) for byte, ends in self._starts.items()}

    def step(self, positions: Positions | None, byte: int) -> Positions:
        """Return the positions after one byte; none if it may not follow."""
        if positions is None:
            return self._after_start.get(byte, ())
        data = self._bytes
        return tuple(position + 1 for position in positions if data[position] == byte)

    def may_end(self, positions: Positions | None) -> bool:
        """Return whether a span may end at one of these positions."""
        return positions is not None and not self._ends.isdisjoint(positions)

    def shortest_rest(self, positions: Positions | None) -> bytes:
        """Return the shortest continuation to the end of a span, ties by byte order."""
        starts = self._starts_with_bytes if positions is None else [(b"", position) for position in positions]
        return min((before + self._rest(position) for before, position in starts), key=lambda r: (len(r), r))

    @property
    def _starts_with_bytes(self) -> list[tuple[bytes, int]]:
        return [(bytes([byte]), end) for byte, ends in self._starts.items() for end in ends]

    def _rest(self, position: int) -> bytes:
        end = position
        while end not in self._ends:
            end += 1
        return bytes(self._bytes[position:end])
