"""The shortest strings that the nonterminals of a grammar derive.

`ShortestStrings` finds up to `MAX_STRINGS` of a nonterminal, `shortest_texts` a single one of every nonterminal.
Both are best-first searches (Knuth's generalisation of Dijkstra's algorithm).
"""

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
MAX_STRINGS = 60
PREFERRED = "abcdefghijklmnopqrstuvwxyz0123456789"
MAX_LENGTH = 10_000
"""Longer strings are not found: a small grammar with nested repetitions may have enormous shortest strings."""


class ShortestStrings:
    """Up to `MAX_STRINGS` strings per nonterminal, by length, then by text; characters are printable ASCII."""

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar
        self._found: dict[str, tuple[str, ...]] = {}

    @cached_property
    def _rules(self) -> dict[str, tuple[Production, ...]]:
        """The productive rules of the grammar."""
        return productive_rules(self._grammar, productive_names(self._grammar))

    def of(self, name: str) -> tuple[str, ...]:
        """Return the shortest strings of a nonterminal; none if it derives none."""
        if name not in self._found:
            names = reachable_names(self._rules, name)
            self._found |= dict.fromkeys([name], ()) | StringSearch(self._rules, names).strings()
        return self._found[name]

    @staticmethod
    def of_class(chars: Chars) -> tuple[str, ...]:
        """Return the printable characters of a character class."""
        return tuple(char for char in PRINTABLE if char in chars)


class StringSearch:
    """Best-first search for strings, ordered by length and text: a string popped from the queue is final."""

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
        """Return the shortest strings of every nonterminal."""
        while self._queue:
            _, text, name = heapq.heappop(self._queue)
            found = self._found[name]
            if text not in found and len(found) < MAX_STRINGS:
                found.append(text)
                for user, production, at in self._users.get(name, ()):
                    self._push(user, production, at, text)
        return {name: tuple(found) for name, found in self._found.items()}

    def _push(self, name: str, production: Production, at: int, text: str) -> None:
        """Queue the strings of a production with a new string for its symbol at index `at`."""
        for combined in self._combined(production, at, text):
            heapq.heappush(self._queue, (len(combined), combined, name))

    def _combined(self, production: Production, at: int, text: str) -> list[str]:
        """Return the shortest combinations; pruning prefixes is safe because appending preserves their order."""
        prefixes = [""]
        fixed: list[str] = []
        length = 0
        for index, symbol in enumerate(production):
            pieces: Sequence[str]
            if index == at:
                pieces = (text,)
            elif isinstance(symbol, Text):
                pieces = (symbol.text,)
            else:
                pieces = (
                    ShortestStrings.of_class(symbol) if isinstance(symbol, Chars) else self._found[symbol.name]
                )
            length += min(map(len, pieces), default=0)
            if not pieces or length > MAX_LENGTH:
                return []
            if len(pieces) == 1:
                fixed += pieces
            else:
                between = "".join(fixed)
                longer = {prefix + between + piece for prefix in prefixes for piece in pieces}
                prefixes = heapq.nsmallest(MAX_STRINGS, longer, key=lambda combined: (len(combined), combined))
                fixed = []
        end = "".join(fixed)
        return [prefix + end for prefix in prefixes]


def shortest_texts(grammar: Grammar) -> dict[str, str]:
    """Return the shortest text, of at most `MAX_LENGTH` characters, of every nonterminal that derives one.

    Ties are broken by text.
    """
    found: dict[str, str] = {}
    users: dict[str, list[tuple[str, Production]]] = defaultdict(list)
    queue: list[tuple[int, str, str]] = []

    def push_if_complete(name: str, production: Production) -> None:
        text = joined_text(production, found)
        if text is not None:
            heapq.heappush(queue, (len(text), text, name))

    for name, productions in grammar.rules.items():
        for production in productions:
            for used in {symbol.name for symbol in production if isinstance(symbol, Ref)}:
                users[used].append((name, production))
            push_if_complete(name, production)
    while queue:
        _, text, name = heapq.heappop(queue)
        if name not in found:
            found[name] = text
            for user, production in users[name]:
                push_if_complete(user, production)
    return found


def joined_text(symbols: Sequence[Symbol], of_names: Mapping[str, str]) -> str | None:
    """Return the shortest text of a sequence of symbols; None if one has none or it is too long."""
    pieces: list[str] = []
    length = 0
    for symbol in symbols:
        piece = shortest_text(symbol, of_names)
        length += 0 if piece is None else len(piece)
        if piece is None or length > MAX_LENGTH:
            return None
        pieces.append(piece)
    return "".join(pieces)


def shortest_text(symbol: Symbol, of_names: Mapping[str, str]) -> str | None:
    """Return the shortest text of a symbol, None if it has none; of a class, a letter or digit if it has one."""
    match symbol:
        case Text(text=text):
            return text
        case Chars():
            return next((char for char in PREFERRED if char in symbol), chr(symbol.ranges[0][0]))
        case Ref(name=name):
            return of_names.get(name)
