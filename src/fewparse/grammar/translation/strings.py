"""The shortest strings of a grammar's names: some of each for what must be said and is nowhere given, or one."""

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property

from fewparse.grammar.rules import (
    Chars,
    Grammar,
    Production,
    Ref,
    Symbol,
    Text,
    productive_names,
    productive_rules,
    reachable_names,
)

PRINTABLE = tuple(map(chr, range(32, 127)))
MOST_STRINGS = 60
PREFERRED = "abcdefghijklmnopqrstuvwxyz0123456789"


class ShortStrings:
    """Up to 60 strings a name, shortest first, then by text; characters are printable ASCII."""

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar
        self._found: dict[str, tuple[str, ...]] = {}

    @cached_property
    def _rules(self) -> dict[str, tuple[Production, ...]]:
        """The rules without what derives nothing."""
        return productive_rules(self._grammar, productive_names(self._grammar))

    def of(self, name: str) -> tuple[str, ...]:
        """The shortest strings of a name; none where it derives none."""
        if name not in self._found:
            names = reachable_names(self._rules, name)
            self._found |= dict.fromkeys([name], ()) | Growing(self._rules, names).strings()
        return self._found[name]

    @staticmethod
    def of_class(chars: Chars) -> tuple[str, ...]:
        """The printable characters of a class."""
        return tuple(char for char in PRINTABLE if char in chars)


class Growing:
    """Strings found in order of length and text: a string is final when it is taken from the queue."""

    def __init__(self, rules: Mapping[str, tuple[Production, ...]], names: set[str]) -> None:
        self._found: dict[str, list[str]] = {name: [] for name in names}
        self._queue: list[tuple[int, str, str]] = []
        self._users: dict[str, list[tuple[str, Production, int]]] = {}
        for name in sorted(names):
            for production in rules[name]:
                used = [(at, symbol.name) for at, symbol in enumerate(production) if isinstance(symbol, Ref)]
                for at, inner in used:
                    self._users.setdefault(inner, []).append((name, production, at))
                if not used:
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
        for combined in self._combined(production, at, text):
            heapq.heappush(self._queue, (len(combined), combined, name))

    def _combined(self, production: Production, at: int, text: str) -> list[str]:
        """The shortest combinations: those of the shortest beginnings, for what follows keeps their order."""
        beginnings = [""]
        fixed: list[str] = []
        for place, symbol in enumerate(production):
            pieces: Sequence[str]
            if place == at:
                pieces = (text,)
            elif isinstance(symbol, Text):
                pieces = (symbol.text,)
            else:
                pieces = ShortStrings.of_class(symbol) if isinstance(symbol, Chars) else self._found[symbol.name]
            if not pieces:
                return []
            if len(pieces) == 1:
                fixed += pieces
            else:
                between = "".join(fixed)
                longer = {beginning + between + piece for beginning in beginnings for piece in pieces}
                beginnings = heapq.nsmallest(MOST_STRINGS, longer, key=lambda combined: (len(combined), combined))
                fixed = []
        end = "".join(fixed)
        return [beginning + end for beginning in beginnings]


def shortest_texts(grammar: Grammar) -> dict[str, str]:
    """The shortest text of every name that derives any; of several, the first by its letters."""
    found: dict[str, str] = {}
    users: dict[str, list[tuple[str, Production]]] = defaultdict(list)
    queue: list[tuple[int, str, str]] = []

    def offer(name: str, production: Production) -> None:
        if all(not isinstance(symbol, Ref) or symbol.name in found for symbol in production):
            text = "".join(shortest_text(symbol, found) for symbol in production)
            heapq.heappush(queue, (len(text), text, name))

    for name, productions in grammar.rules.items():
        for production in productions:
            for symbol in production:
                if isinstance(symbol, Ref):
                    users[symbol.name].append((name, production))
            offer(name, production)
    while queue:
        _, text, name = heapq.heappop(queue)
        if name not in found:
            found[name] = text
            for user, production in users[name]:
                offer(user, production)
    return found


def shortest_text(symbol: Symbol, of_names: Mapping[str, str]) -> str:
    """What a symbol can be at least; of a class, a plain character if it has one."""
    match symbol:
        case Text(text=text):
            return text
        case Chars():
            return next((char for char in PREFERRED if char in symbol), chr(symbol.ranges[0][0]))
        case Ref(name=name):
            return of_names[name]
