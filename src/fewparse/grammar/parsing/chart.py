"""A chart parser of finished texts: any context-free grammar, ambiguous and left-recursive ones included."""

import re
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from typing import NamedTuple

from fewparse.errors import LimitExceeded
from fewparse.grammar.parsing.automaton import Automaton, Kernel, Prediction
from fewparse.grammar.rules import LAST_CODE_POINT, Chars, Grammar, trim

MOST_STEPS = 2_000_000
MOST_STATES = 100_000
SHOWN_EXPECTED = 8
LONGEST_SHOWN = 40
MOST_COMPARED = 2_000
LAST_CHARACTER = chr(LAST_CODE_POINT)
FIRST_WORD = re.compile(r"\W{0,2}(\w{0,40})")
LAST_WORD = re.compile(r"\w{0,40}$")
GOES_ON = re.compile(r"['\"]\w")


Ends = dict[str, dict[int, set[int]]]
"""The names that end at a place, where each began, and by which productions."""


class Chart(NamedTuple):
    """What was found: for each place what ends there."""

    text: str
    ends: tuple[Ends, ...]
    nullable: set[str]

    def spans(self, name: str, begin: int, end: int) -> bool:
        """Whether the text between two places is a constituent of this name."""
        if begin == end:
            return name in self.nullable
        return begin in self.ends[end].get(name, ())


class ParseFailure(NamedTuple):
    """A text that is not derived: how far it is the beginning of one that is, and what could follow there.

    What is `expected` is what comes nearest to the text; `others` says how much else could follow.
    """

    text: str
    at: int
    expected: tuple[str, ...]
    others: int = 0

    @property
    def reason(self) -> str:
        """The failure in words; a word that has begun is shown whole."""
        where = (
            "ends too early" if self.at == len(self.text) else f"is not derived from character {self.at + 1} on"
        )
        if not self.expected:
            return where
        begun = LAST_WORD.findall(self.text, 0, self.at)[0]
        shown = [f"{e[0]}{begun}{e[1:]}" if GOES_ON.match(e) else e for e in self.expected]
        return f"{where}; expected {' or '.join(shown)}{f' or {self.others} others' if self.others else ''}"


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
        self.automaton = Automaton(self.grammar)
        self._most_steps = most_steps

    def accepts(self, text: str) -> bool:
        """Whether the grammar derives the text."""
        return isinstance(self.parse(text), Chart)

    def parse(self, text: str) -> Chart | ParseFailure:
        """All constituents of a text, or why it has none that spans it."""
        read = self.read(text)
        if isinstance(read, ParseFailure):
            return read
        rows, ends = read
        chart = Chart(text, tuple(ends), self.automaton.nullable)
        spanned = chart.spans(self.grammar.start, 0, len(text))
        return chart if spanned else self._refusal(text, len(text), rows[-1])

    def read(self, text: str) -> tuple[list[Row], list[Ends]] | ParseFailure:
        """The states at each place of a text that begins a sentence, and what ends there."""
        automaton, start = self.automaton, self.grammar.start
        if automaton.size > MOST_STATES:
            automaton.forget()
        ends: list[Ends] = [{}]
        rows = [Row([], automaton.prediction(frozenset([start])))]
        count = 0
        for place, char in enumerate(text):
            row = rows[place]
            items, found, steps = self._advance(rows, row, place, char)
            if not items:
                return self._refusal(text, place, row)
            count += steps
            if count > self._most_steps:
                raise LimitExceeded(
                    f"the text takes more than {self._most_steps} steps to parse (at character {place + 1})",
                    "Shorten the text, or make the grammar less ambiguous; left recursion is cheaper than right.",
                )
            predicted = frozenset().union(*(state.predicts for state, _ in items))
            rows.append(Row(items, automaton.prediction(predicted)))
            ends.append(found)
        return rows, ends

    def _advance(
        self, rows: list[Row], row: Row, place: int, char: str
    ) -> tuple[list[tuple[Kernel, int]], Ends, int]:
        """Read a character, then complete what ends behind it; also how many steps that took."""
        items = [(state, begun) for kernel, begun in row.items if (state := kernel.move(char)) is not None]
        if (state := row.prediction.move(char)) is not None:
            items.append((state, place))
        seen = set(items)
        items = list(dict.fromkeys(items))
        found: Ends = {}
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

    def _refusal(self, text: str, at: int, row: Row) -> ParseFailure:
        """What could follow at a place, for people: literals as far as they go, classes as a word."""
        literals: dict[str, None] = {}
        classes: dict[str, None] = {}
        for item in self._behind(row):
            step = self.automaton.behind[item]
            if isinstance(step, str):
                literals[self.automaton.rests[item] or step] = None
            elif isinstance(step, Chars):
                classes[describe(step)] = None
        shown = [*(repr(shortened(literal)) for literal in without_longer(literals)), *classes]
        expected = nearest(FIRST_WORD.findall(text, at)[0], list(dict.fromkeys(shown)))
        return ParseFailure(text, at, tuple(expected[:SHOWN_EXPECTED]), max(0, len(expected) - SHOWN_EXPECTED))

    @staticmethod
    def _behind(row: Row) -> Iterator[int]:
        for kernel, _ in row.items:
            yield from kernel.steps()
        yield from row.prediction.steps()


def without_longer(literals: Iterable[str]) -> list[str]:
    """The literals that do not begin with another one, in their order."""
    kept: list[str] = []
    for literal in sorted(literals):
        if not (kept and literal.startswith(kept[-1])):
            kept.append(literal)
    shortest = set(kept)
    return [literal for literal in literals if literal in shortest]


def nearest(word: str, expected: list[str]) -> list[str]:
    """What is like the word that stands there first, unless that is too much to compare."""
    if not word or len(expected) > MOST_COMPARED:
        return expected
    matcher = SequenceMatcher(b=word.casefold(), autojunk=False)

    def unlike(shown: str) -> float:
        matcher.set_seq1(shown[1:-1].casefold())
        return -matcher.ratio()

    return sorted(expected, key=unlike)


def shortened(text: str) -> str:
    """As much of a literal as is worth showing."""
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"


def describe(chars: Chars) -> str:
    """A class of characters, for people: by those it has, or by those that it lacks."""
    open_ended = LAST_CHARACTER in chars
    ranges = chars.negated().ranges if open_ended else chars.ranges
    parts = [plain(low) if low == high else f"{plain(low)}-{plain(high)}" for low, high in ranges[:6]]
    listed = f"[{''.join(parts)}{'...' if len(ranges) > 6 else ''}]"
    if open_ended:
        return f"anything but {listed}" if ranges else "anything"
    return f"one of {listed}"


def plain(code: int) -> str:
    """A character that can be seen."""
    return chr(code) if chr(code).isprintable() else repr(chr(code))[1:-1]
