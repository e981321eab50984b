"""A chart parser of finished texts: any context-free grammar, ambiguous and left-recursive ones included."""

from collections.abc import Iterator
from typing import NamedTuple

from fewparse.errors import LimitExceeded
from fewparse.grammar.automaton import Automaton, Kernel, Prediction
from fewparse.grammar.rules import Chars, Grammar, trim

MOST_STEPS = 2_000_000
MOST_STATES = 100_000
SHOWN_EXPECTED = 8


class Chart(NamedTuple):
    """What was found: for each place the names that end there, where each began, and by which productions."""

    text: str
    ends: tuple[dict[str, dict[int, set[int]]], ...]
    nullable: set[str]

    def spans(self, name: str, begin: int, end: int) -> bool:
        """Whether the text between two places is a constituent of this name."""
        if begin == end:
            return name in self.nullable
        return begin in self.ends[end].get(name, ())


class Refusal(NamedTuple):
    """A text that is not derived: how far it is the beginning of one that is, and what could follow there."""

    text: str
    at: int
    expected: tuple[str, ...]

    @property
    def reason(self) -> str:
        """The refusal in words."""
        where = (
            "ends too early" if self.at == len(self.text) else f"is not derived from character {self.at + 1} on"
        )
        return f"{where}; expected {' or '.join(self.expected)}" if self.expected else where


class Row:
    """All states of one place with the places where they began, and what waits there for a constituent."""

    __slots__ = ("_waiters", "items", "prediction")

    def __init__(self, items: list[tuple[Kernel, int]], prediction: Prediction) -> None:
        self.items = items
        self.prediction = prediction
        self._waiters: dict[str, list[tuple[Kernel, int]]] = {}

    def waiters(self, name: str, place: int) -> list[tuple[Kernel, int]]:
        """The states behind a constituent that began here."""
        try:
            return self._waiters[name]
        except KeyError:
            found = [(state, begun) for kernel, begun in self.items if (state := kernel.goto(name)) is not None]
            if (state := self.prediction.goto(name)) is not None:
                found.append((state, place))
            self._waiters[name] = found
            return found


class ChartParser:
    """Parses texts with one grammar; what it learns of the grammar on one text, it keeps for the next."""

    def __init__(self, grammar: Grammar, most_steps: int = MOST_STEPS) -> None:
        self.grammar = trim(grammar).grammar
        self._automaton = Automaton(self.grammar)
        self._most_steps = most_steps

    def accepts(self, text: str) -> bool:
        """Whether the grammar derives the text."""
        return isinstance(self.parse(text), Chart)

    def parse(self, text: str) -> Chart | Refusal:
        """All constituents of a text, or why it has none that spans it."""
        automaton, start = self._automaton, self.grammar.start
        if automaton.size > MOST_STATES:
            automaton.forget()
        ends: list[dict[str, dict[int, set[int]]]] = [{}]
        rows = [Row([], automaton.prediction(frozenset([start])))]
        count = 0
        for place, char in enumerate(text):
            row = rows[place]
            items, found, steps = self._advance(rows, row, place, char)
            if not items:
                return Refusal(text, place, self._expected(row))
            count += steps
            if count > self._most_steps:
                raise LimitExceeded(
                    f"the text takes more than {self._most_steps} steps to parse (at character {place + 1})",
                    "Shorten the text, or make the grammar less ambiguous; left recursion is cheaper than right.",
                )
            predicted = frozenset().union(*(state.predicts for state, _ in items))
            rows.append(Row(items, automaton.prediction(predicted)))
            ends.append(found)
        chart = Chart(text, tuple(ends), automaton.nullable)
        return chart if chart.spans(start, 0, len(text)) else Refusal(text, len(text), self._expected(rows[-1]))

    def _advance(
        self, rows: list[Row], row: Row, place: int, char: str
    ) -> tuple[list[tuple[Kernel, int]], dict[str, dict[int, set[int]]], int]:
        """Read a character, then complete what ends behind it; also how many steps that took."""
        items = [(state, begun) for kernel, begun in row.items if (state := kernel.move(char)) is not None]
        if (state := row.prediction.move(char)) is not None:
            items.append((state, place))
        seen = set(items)
        items = list(dict.fromkeys(items))
        found: dict[str, dict[int, set[int]]] = {}
        steps = 0
        for state, begun in items:
            for name, productions in state.completes:
                origins = found.setdefault(name, {})
                if begun in origins:
                    origins[begun].update(productions)
                else:
                    origins[begun] = set(productions)
                    waiters = rows[begun].waiters(name, begun)
                    steps += len(waiters)
                    for item in waiters:
                        if item not in seen:
                            seen.add(item)
                            items.append(item)
        return items, found, steps + len(items)

    def _expected(self, row: Row) -> tuple[str, ...]:
        """What could follow at a place, for people: literals as far as they go, classes as a word."""
        shown: dict[str, None] = {}
        for item in self._behind(row):
            step = self._automaton.behind[item]
            if isinstance(step, str):
                shown[repr(self._automaton.rests[item] or step)] = None
            elif isinstance(step, Chars):
                shown[describe(step)] = None
            if len(shown) > SHOWN_EXPECTED:
                return (*list(shown)[:SHOWN_EXPECTED], "...")
        return tuple(shown)

    @staticmethod
    def _behind(row: Row) -> Iterator[int]:
        for kernel, _ in row.items:
            yield from kernel.steps()
        yield from row.prediction.steps()


def describe(chars: Chars) -> str:
    """A class of characters, for people."""
    parts = [chr(low) if low == high else f"{chr(low)}-{chr(high)}" for low, high in chars.ranges[:6]]
    more = "..." if len(chars.ranges) > 6 else ""
    return f"one of [{''.join(parts)}{more}]"
