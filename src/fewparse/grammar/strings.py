"""The shortest strings of a grammar's names, for what must be said and is nowhere given."""

import heapq
from collections.abc import Iterator
from itertools import product

from fewparse.grammar.rules import Chars, Grammar, Production, Ref, Text, reachable_names

PRINTABLE = tuple(map(chr, range(32, 127)))
MOST_STRINGS = 20
MOST_COMBINATIONS = 1000


class ShortStrings:
    """Up to 20 strings a name, shortest first, then by text; characters are printable ASCII."""

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar
        self._found: dict[str, tuple[str, ...]] = {}

    def of(self, name: str) -> tuple[str, ...]:
        """The shortest strings of a name; none where it derives none."""
        if name not in self._found:
            names = reachable_names(self._grammar.rules, name)
            self._found |= dict.fromkeys([name], ()) | Growing(self._grammar, names).strings()
        return self._found[name]

    @staticmethod
    def of_class(chars: Chars) -> tuple[str, ...]:
        """The printable characters of a class."""
        return tuple(char for char in PRINTABLE if char in chars)


class Growing:
    """Strings found in order of length and text: a string is final when it is taken from the queue."""

    def __init__(self, grammar: Grammar, names: set[str]) -> None:
        self._found: dict[str, list[str]] = {name: [] for name in names}
        self._queue: list[tuple[int, str, str]] = []
        self._users: dict[str, list[tuple[str, Production, int]]] = {}
        for name in sorted(names):
            for production in grammar.rules[name]:
                places = [at for at, symbol in enumerate(production) if isinstance(symbol, Ref)]
                for at in places:
                    self._users.setdefault(production[at].name, []).append((name, production, at))  # type: ignore[union-attr]
                if not places:
                    self._push(name, production, -1, "")

    def strings(self) -> dict[str, tuple[str, ...]]:
        """The shortest strings of every name."""
        while self._queue:
            _, text, name = heapq.heappop(self._queue)
            found = self._found[name]
            if text not in found and len(found) < MOST_STRINGS:
                found.append(text)
                for user, production, at in self._users.get(name, ()):
                    self._push(user, production, at, text)
        return {name: tuple(found) for name, found in self._found.items()}

    def _push(self, name: str, production: Production, at: int, text: str) -> None:
        """Queue what a production can be, with a new string at one of its places."""
        for combined in self._combinations(production, at, text):
            heapq.heappush(self._queue, (len(combined), combined, name))

    def _combinations(self, production: Production, at: int, text: str) -> Iterator[str]:
        open_places = sum(not isinstance(symbol, Text) for symbol in production)
        most = max(2, int(MOST_COMBINATIONS ** (1 / max(1, open_places))))
        pieces: list[tuple[str, ...]] = []
        for place, symbol in enumerate(production):
            if place == at:
                pieces.append((text,))
            elif isinstance(symbol, Text):
                pieces.append((symbol.text,))
            elif isinstance(symbol, Chars):
                pieces.append(ShortStrings.of_class(symbol)[:most])
            else:
                pieces.append(tuple(self._found[symbol.name][:most]) if symbol.name in self._found else ())
        if sum(len(piece) > 1 for piece in pieces) > 12:
            pieces = [piece[:1] for piece in pieces]
        return map("".join, product(*pieces))
