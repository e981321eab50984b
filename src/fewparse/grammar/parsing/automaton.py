"""The states of a chart parser, built as texts ask for them and kept for the next text.

A state is a set of dotted rules that began at one place. Grouping them so (an LR(0) automaton over an Earley
chart) makes a step over a character one lookup wherever the grammar leaves no choice.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Protocol

from fewparse.grammar.rules import Chars, Grammar, Production, Ref, Text, deriving_names

Step = str | Chars | Ref | None
"""What stands behind the dot: a character, a class, a name, or nothing."""


class State(Protocol):
    """Dotted rules that began at one place."""

    completes: tuple[tuple[str, tuple[int, ...]], ...]
    """The names that end here, each with the numbers of its productions that do."""
    predicts: frozenset[str]
    """The names that may begin here."""

    def move(self, char: str) -> "State | None":
        """The state behind a character."""

    def goto(self, name: str) -> "State | None":
        """The state behind a whole constituent."""

    def steps(self) -> Iterator[int]:
        """The dotted rules."""


def numbered(grammar: Grammar) -> Iterator[tuple[str, Production]]:
    """All productions with their names, in the order that numbers them."""
    return ((name, production) for name, productions in grammar.rules.items() for production in productions)


class Automaton:
    """The dotted rules of a grammar, numbered so that the next number is the dot moved on, and their states."""

    def __init__(self, grammar: Grammar) -> None:
        self.nullable = deriving_names(grammar, characters=False)
        self.behind: list[Step] = []
        self.names: list[str] = []
        self.productions: list[int] = []
        self.rests: list[str] = []
        self._begun: dict[str, list[int]] = {name: [] for name in grammar.rules}
        for number, (name, production) in enumerate(numbered(grammar)):
            self._begun[name].append(len(self.behind))
            self._number(name, production)
            self.productions += [number] * (len(self.behind) - len(self.productions))
        self._firsts: dict[str, tuple[int, ...]] = {}
        self._kernels: dict[frozenset[int], Kernel] = {}
        self._predictions: dict[frozenset[str], Prediction] = {}
        self._corners_by_char: dict[str, list[tuple[str, int]]] = defaultdict(list)
        self._corners_by_name: dict[str, list[tuple[str, int]]] = defaultdict(list)
        self._corners_by_class: list[tuple[Chars, str, int]] = []
        for name in grammar.rules:
            self._index_corners(name)

    def _number(self, name: str, production: Production) -> None:
        for symbol in production:
            if isinstance(symbol, Text):
                self.behind += symbol.text
                self.rests += [symbol.text[k:] for k in range(min(len(symbol.text), 40))]
                self.rests += [""] * (len(symbol.text) - 40)
            else:
                self.behind.append(symbol)
                self.rests.append("")
        self.behind.append(None)
        self.rests.append("")
        self.names += [name] * (len(self.behind) - len(self.names))

    def _index_corners(self, name: str) -> None:
        for item in self.firsts(name):
            step = self.behind[item]
            if isinstance(step, str):
                self._corners_by_char[step].append((name, item + 1))
            elif isinstance(step, Ref):
                self._corners_by_name[step.name].append((name, item + 1))
            elif step is not None:
                self._corners_by_class.append((step, name, item + 1))

    def firsts(self, name: str) -> tuple[int, ...]:
        """The rules of a name with the dot at the beginning, or behind what may be nothing."""
        if name not in self._firsts:
            self._firsts[name] = tuple(self.past_nothing(self._begun.get(name, ())))
        return self._firsts[name]

    def past_nothing(self, items: Iterable[int]) -> Iterator[int]:
        """Dotted rules, also with the dot moved over names that may be nothing."""
        seen: set[int] = set()
        for item in items:
            while item not in seen:
                seen.add(item)
                yield item
                step = self.behind[item]
                if isinstance(step, Ref) and step.name in self.nullable:
                    item += 1

    def kernel(self, items: Iterable[int]) -> "Kernel | None":
        """The state of some dotted rules with the dot moved on; None if there are none."""
        key = frozenset(items)
        if not key:
            return None
        if key not in self._kernels:
            self._kernels[key] = Kernel(self, key)
        return self._kernels[key]

    def prediction(self, names: frozenset[str]) -> "Prediction":
        """The state of all rules that may begin where these names may."""
        if names not in self._predictions:
            self._predictions[names] = Prediction(self, names)
        return self._predictions[names]

    def begun_by(self, names: Iterable[str]) -> frozenset[str]:
        """These names and all that may stand at their left edge."""
        reached: set[str] = set()
        frontier = list(names)
        while frontier:
            name = frontier.pop()
            if name not in reached:
                reached.add(name)
                for item in self.firsts(name):
                    if isinstance(step := self.behind[item], Ref):
                        frontier.append(step.name)
        return frozenset(reached)

    def corners(self, names: frozenset[str], char: str) -> Iterator[int]:
        """The rules of these names behind a first character."""
        for name, item in self._corners_by_char.get(char, ()):
            if name in names:
                yield item
        for chars, name, item in self._corners_by_class:
            if name in names and char in chars:
                yield item

    def corners_by_name(self, names: frozenset[str], first: str) -> Iterator[int]:
        """The rules of these names behind a first constituent."""
        return (item for name, item in self._corners_by_name.get(first, ()) if name in names)

    @property
    def size(self) -> int:
        """How many states there are."""
        return len(self._kernels) + len(self._predictions)

    def forget(self) -> None:
        """Drop all states; those in use stay valid."""
        self._kernels, self._predictions = {}, {}


class Kernel:
    """Dotted rules that have read something."""

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
        self._items = tuple(automaton.past_nothing(sorted(kernel)))
        self._by_char: dict[str, list[int]] = {}
        self._by_class: list[tuple[Chars, int]] = []
        self._by_name: dict[str, list[int]] = {}
        self._moves: dict[str, Kernel | None] = {}
        self._gotos: dict[str, Kernel | None] = {}
        completes: dict[str, list[int]] = {}
        for item in self._items:
            step = automaton.behind[item]
            if step is None:
                completes.setdefault(automaton.names[item], []).append(automaton.productions[item])
            elif isinstance(step, str):
                self._by_char.setdefault(step, []).append(item + 1)
            elif isinstance(step, Ref):
                self._by_name.setdefault(step.name, []).append(item + 1)
            else:
                self._by_class.append((step, item + 1))
        self.completes = tuple((name, tuple(numbers)) for name, numbers in completes.items())
        self.predicts = frozenset(self._by_name)

    def move(self, char: str) -> "Kernel | None":
        """The state behind a character."""
        try:
            return self._moves[char]
        except KeyError:
            items = [*self._by_char.get(char, ()), *(item for chars, item in self._by_class if char in chars)]
            self._moves[char] = found = self._automaton.kernel(items)
            return found

    def goto(self, name: str) -> "Kernel | None":
        """The state behind a whole constituent."""
        try:
            return self._gotos[name]
        except KeyError:
            self._gotos[name] = found = self._automaton.kernel(self._by_name.get(name, ()))
            return found

    def steps(self) -> Iterator[int]:
        """The dotted rules."""
        return iter(self._items)


class Prediction:
    """Rules that may begin here."""

    __slots__ = ("_automaton", "_gotos", "_moves", "_names", "completes", "predicts")

    def __init__(self, automaton: Automaton, names: frozenset[str]) -> None:
        self._automaton = automaton
        self._names = automaton.begun_by(names)
        self._moves: dict[str, Kernel | None] = {}
        self._gotos: dict[str, Kernel | None] = {}
        self.completes: tuple[tuple[str, tuple[int, ...]], ...] = ()
        self.predicts = names

    def move(self, char: str) -> Kernel | None:
        """The state behind a character."""
        try:
            return self._moves[char]
        except KeyError:
            self._moves[char] = found = self._automaton.kernel(self._automaton.corners(self._names, char))
            return found

    def goto(self, name: str) -> Kernel | None:
        """The state behind a whole constituent."""
        try:
            return self._gotos[name]
        except KeyError:
            self._gotos[name] = found = self._automaton.kernel(self._automaton.corners_by_name(self._names, name))
            return found

    def steps(self) -> Iterator[int]:
        """The dotted rules."""
        return (item for name in sorted(self._names) for item in self._automaton.firsts(name))
