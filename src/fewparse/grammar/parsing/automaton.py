"""LR(0) states of an Earley parser, built on demand and cached for later texts.

A state is a set of dotted rules (items) with one origin. Grouping the items of an Earley set into LR(0) states
(Aycock & Horspool 2002) makes a step over a character one lookup wherever the grammar is deterministic.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Protocol

from fewparse.grammar.rules import Chars, Grammar, Production, Ref, Text, nullable_names

MAX_LITERAL_SUFFIXES = 40
"""Suffixes of a literal are stored for its first characters only: they take quadratic space."""

NextSymbol = str | Chars | Ref | None
"""The symbol after the dot: a character, a character class, a nonterminal, or None at the end."""


class State(Protocol):
    """Items with the same origin."""

    completes: tuple[tuple[str, tuple[int, ...]], ...]
    """The completed nonterminals, each with the numbers of its completed productions."""
    predicts: frozenset[str]
    """The nonterminals after a dot."""

    def move(self, char: str) -> "State | None":
        """Return the state after a character; None if no item accepts it."""

    def goto(self, name: str) -> "State | None":
        """Return the state after a nonterminal; None if no item expects it."""

    def items(self) -> Iterator[int]:
        """Yield the items."""


def numbered(grammar: Grammar) -> Iterator[tuple[str, Production]]:
    """Yield all productions with their nonterminals, in the order of their numbers."""
    return ((name, production) for name, productions in grammar.rules.items() for production in productions)


def item_count(production: Production) -> int:
    """Return the number of items of a production: one before each character and symbol, and one at the end."""
    return 1 + sum(len(symbol.text) if isinstance(symbol, Text) else 1 for symbol in production)


class Automaton:
    """The items of a grammar and the states made of them. Item `i + 1` is item `i` with the dot moved on.

    Lists indexed by item: `next_symbols` (after the dot), `names` (left-hand side), `productions` (its number),
    `literal_suffixes` (the rest of the literal after the dot, for messages).
    """

    def __init__(self, grammar: Grammar) -> None:
        self.nullable = nullable_names(grammar)
        self._rules = grammar.rules
        self._first: dict[str, tuple[int, int]] = {}
        """The numbers of the first item and the first production of each nonterminal."""
        item = number = 0
        for name, productions in grammar.rules.items():
            self._first[name] = item, number
            item += sum(map(item_count, productions))
            number += len(productions)
        self.next_symbols: list[NextSymbol] = [None] * item
        self.names = [""] * item
        self.productions = [0] * item
        self.literal_suffixes = [""] * item
        self._initial: dict[str, tuple[int, ...]] = {}
        self._kernels: dict[frozenset[int], Kernel] = {}
        self._predictions: dict[frozenset[str], Prediction] = {}
        self._corners_by_char: dict[str, list[tuple[str, int]]] = defaultdict(list)
        self._corners_by_name: dict[str, list[tuple[str, int]]] = defaultdict(list)
        self._corners_by_class: list[tuple[Chars, str, int]] = []

    def _add_items(self, name: str) -> Iterator[int]:
        """Write the items of a nonterminal into the lists; yield the first item of each production."""
        item, number = self._first.get(name, (0, 0))
        for at, production in enumerate(self._rules.get(name, ())):
            yield item
            count = item_count(production)
            self.names[item : item + count] = [name] * count
            self.productions[item : item + count] = [number + at] * count
            for symbol in production:
                if isinstance(symbol, Text):
                    length, stored = len(symbol.text), min(len(symbol.text), MAX_LITERAL_SUFFIXES)
                    self.next_symbols[item : item + length] = symbol.text
                    self.literal_suffixes[item : item + stored] = [symbol.text[k:] for k in range(stored)]
                    item += length
                else:
                    self.next_symbols[item] = symbol
                    item += 1
            item += 1  # the end of the production

    def _index_corners(self, items: Iterable[int], name: str) -> None:
        for item in items:
            symbol = self.next_symbols[item]
            if isinstance(symbol, str):
                self._corners_by_char[symbol].append((name, item + 1))
            elif isinstance(symbol, Ref):
                self._corners_by_name[symbol.name].append((name, item + 1))
            elif symbol is not None:
                self._corners_by_class.append((symbol, name, item + 1))

    def initial_items(self, name: str) -> tuple[int, ...]:
        """Return the items of a nonterminal with the dot at the start or after nullable symbols only.

        The items of a nonterminal are made when they are first asked for: a text reaches few of a large grammar's.
        """
        if name not in self._initial:
            items = tuple(self.skip_nullable([*self._add_items(name)]))
            self._index_corners(items, name)
            self._initial[name] = items
        return self._initial[name]

    def skip_nullable(self, items: Iterable[int]) -> Iterator[int]:
        """Yield the items and those with the dot moved over nullable nonterminals."""
        seen: set[int] = set()
        for item in items:
            while item not in seen:
                seen.add(item)
                yield item
                symbol = self.next_symbols[item]
                if isinstance(symbol, Ref) and symbol.name in self.nullable:
                    item += 1

    def kernel(self, items: Iterable[int]) -> "Kernel | None":
        """Return the state of some kernel items; None if there are none."""
        key = frozenset(items)
        if not key:
            return None
        if key not in self._kernels:
            self._kernels[key] = Kernel(self, key)
        return self._kernels[key]

    def prediction(self, names: frozenset[str]) -> "Prediction":
        """Return the state of all items predicted from these nonterminals."""
        if names not in self._predictions:
            self._predictions[names] = Prediction(self, names)
        return self._predictions[names]

    def left_corner_closure(self, names: Iterable[str]) -> frozenset[str]:
        """Return these nonterminals and all that can be their left corners."""
        reached: set[str] = set()
        frontier = list(names)
        while frontier:
            name = frontier.pop()
            if name not in reached:
                reached.add(name)
                for item in self.initial_items(name):
                    if isinstance(symbol := self.next_symbols[item], Ref):
                        frontier.append(symbol.name)
        return frozenset(reached)

    def after_first_char(self, names: frozenset[str], char: str) -> Iterator[int]:
        """Yield the items of these nonterminals after a first character."""
        for name, item in self._corners_by_char.get(char, ()):
            if name in names:
                yield item
        for chars, name, item in self._corners_by_class:
            if name in names and char in chars:
                yield item

    def after_first_name(self, names: frozenset[str], first: str) -> Iterator[int]:
        """Yield the items of these nonterminals after a first constituent."""
        return (item for name, item in self._corners_by_name.get(first, ()) if name in names)

    @property
    def size(self) -> int:
        """The number of cached states."""
        return len(self._kernels) + len(self._predictions)

    def clear(self) -> None:
        """Drop the cached states; those in use stay valid."""
        self._kernels, self._predictions = {}, {}


class Kernel:
    """A state of items whose dot is not at the start."""

    __slots__ = (
        "_automaton",
        "_by_char",
        "_by_class",
        "_by_name",
        "_gotos",
        "_items",
        "_moves",
        "completes",
        "predicts",
    )

    def __init__(self, automaton: Automaton, kernel: frozenset[int]) -> None:
        self._automaton = automaton
        self._items = tuple(automaton.skip_nullable(sorted(kernel)))
        self._by_char: dict[str, list[int]] = {}
        self._by_class: list[tuple[Chars, int]] = []
        self._by_name: dict[str, list[int]] = {}
        self._moves: dict[str, Kernel | None] = {}
        self._gotos: dict[str, Kernel | None] = {}
        completes: dict[str, list[int]] = {}
        for item in self._items:
            symbol = automaton.next_symbols[item]
            if symbol is None:
                completes.setdefault(automaton.names[item], []).append(automaton.productions[item])
            elif isinstance(symbol, str):
                self._by_char.setdefault(symbol, []).append(item + 1)
            elif isinstance(symbol, Ref):
                self._by_name.setdefault(symbol.name, []).append(item + 1)
            else:
                self._by_class.append((symbol, item + 1))
        self.completes = tuple((name, tuple(numbers)) for name, numbers in completes.items())
        self.predicts = frozenset(self._by_name)

    def move(self, char: str) -> "Kernel | None":
        """Return the state after a character; None if no item accepts it."""
        try:
            return self._moves[char]
        except KeyError:
            items = [*self._by_char.get(char, ()), *(item for chars, item in self._by_class if char in chars)]
            self._moves[char] = state = self._automaton.kernel(items)
            return state

    def goto(self, name: str) -> "Kernel | None":
        """Return the state after a nonterminal; None if no item expects it."""
        try:
            return self._gotos[name]
        except KeyError:
            self._gotos[name] = state = self._automaton.kernel(self._by_name.get(name, ()))
            return state

    def items(self) -> Iterator[int]:
        """Yield the items."""
        return iter(self._items)


class Prediction:
    """A state of predicted items: those of the left-corner closure of some nonterminals."""

    __slots__ = ("_automaton", "_gotos", "_moves", "_names", "completes", "predicts")

    def __init__(self, automaton: Automaton, names: frozenset[str]) -> None:
        self._automaton = automaton
        self._names = automaton.left_corner_closure(names)
        self._moves: dict[str, Kernel | None] = {}
        self._gotos: dict[str, Kernel | None] = {}
        self.completes: tuple[tuple[str, tuple[int, ...]], ...] = ()
        self.predicts = names

    def move(self, char: str) -> Kernel | None:
        """Return the state after a character; None if no item accepts it."""
        try:
            return self._moves[char]
        except KeyError:
            items = self._automaton.after_first_char(self._names, char)
            self._moves[char] = state = self._automaton.kernel(items)
            return state

    def goto(self, name: str) -> Kernel | None:
        """Return the state after a nonterminal; None if no item expects it."""
        try:
            return self._gotos[name]
        except KeyError:
            items = self._automaton.after_first_name(self._names, name)
            self._gotos[name] = state = self._automaton.kernel(items)
            return state

    def items(self) -> Iterator[int]:
        """Yield the items."""
        return (item for name in sorted(self._names) for item in self._automaton.initial_items(name))
