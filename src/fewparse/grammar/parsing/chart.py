"""Earley parser for any context-free grammar, including ambiguous, left-recursive and cyclic ones."""

import re
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from typing import NamedTuple

from fewparse.errors import LimitExceeded
from fewparse.grammar.parsing.automaton import Automaton, Kernel, Prediction
from fewparse.grammar.rules import LAST_CODE_POINT, Chars, Grammar, trim

MAX_STEPS = 2_000_000
MAX_STATES = 100_000
MAX_EXPECTED = 8
MAX_SHOWN_LENGTH = 40
MAX_COMPARED = 2_000
LAST_CHARACTER = chr(LAST_CODE_POINT)
FIRST_WORD = re.compile(r"\W{0,2}(\w{0,40})")
LAST_WORD = re.compile(r"\w{0,40}$")
WORD_CONTINUES = re.compile(r"['\"]\w")


Ends = dict[str, dict[int, set[int]]]
"""The nonterminals completed at one position: name -> origin -> numbers of the completed productions."""


class Chart(NamedTuple):
    """The constituents of a text, by the position of their end."""

    text: str
    ends: tuple[Ends, ...]
    nullable: set[str]

    def spans(self, name: str, start: int, end: int) -> bool:
        """Return whether the text between two positions is a constituent of this nonterminal."""
        if start == end:
            return name in self.nullable
        return start in self.ends[end].get(name, ())


class ParseFailure(NamedTuple):
    """A text that the grammar does not derive.

    `text[:at]` is its longest prefix that starts a sentence. `expected` describes what can follow this prefix,
    the most similar to the text first; `others` counts the omitted descriptions.
    """

    text: str
    at: int
    expected: tuple[str, ...]
    others: int = 0

    @property
    def reason(self) -> str:
        """The position and the expected continuations in words; a partly matched word is shown whole."""
        where = (
            "ends too early" if self.at == len(self.text) else f"is not derived from character {self.at + 1} on"
        )
        if not self.expected:
            return where
        word_start = LAST_WORD.findall(self.text, 0, self.at)[0]
        shown = [f"{e[0]}{word_start}{e[1:]}" if WORD_CONTINUES.match(e) else e for e in self.expected]
        return f"{where}; expected {' or '.join(shown)}{f' or {self.others} others' if self.others else ''}"


class EarleySet:
    """The states of one position with their origins, and the predicted items."""

    __slots__ = ("_advanced", "prediction", "states")

    def __init__(self, states: list[tuple[Kernel, int]], prediction: Prediction) -> None:
        self.states = states
        self.prediction = prediction
        self._advanced: dict[str, list[tuple[Kernel, int]]] = {}

    def advanced(self, name: str, position: int) -> list[tuple[Kernel, int]]:
        """Return the states after a constituent that starts at this position, with their origins."""
        try:
            return self._advanced[name]
        except KeyError:
            found = [(state, origin) for kernel, origin in self.states if (state := kernel.goto(name)) is not None]
            if (state := self.prediction.goto(name)) is not None:
                found.append((state, position))
            self._advanced[name] = found
            return found

    def items(self, position: int) -> Iterator[tuple[int, int]]:
        """Yield the items with their origins, given the position of this set."""
        for kernel, origin in self.states:
            for item in kernel.items():
                yield item, origin
        for item in self.prediction.items():
            yield item, position


class ChartParser:
    """A parser for one grammar; its states are cached from one text to the next."""

    def __init__(self, grammar: Grammar, max_steps: int = MAX_STEPS) -> None:
        self.grammar = trim(grammar).grammar
        self.automaton = Automaton(self.grammar)
        self._max_steps = max_steps

    def accepts(self, text: str) -> bool:
        """Return whether the grammar derives the text."""
        return isinstance(self.parse(text), Chart)

    def parse(self, text: str) -> Chart | ParseFailure:
        """Return all constituents of a text that the grammar derives, or where and why parsing failed."""
        result = self.parse_prefix(text)
        if isinstance(result, ParseFailure):
            return result
        sets, ends = result
        chart = Chart(text, tuple(ends), self.automaton.nullable)
        complete = chart.spans(self.grammar.start, 0, len(text))
        return chart if complete else self._failure(text, len(text), sets[-1])

    def parse_prefix(self, text: str) -> tuple[list[EarleySet], list[Ends]] | ParseFailure:
        """Return the Earley sets and completed nonterminals at each position of a prefix of some sentence.

        Raises LimitExceeded after `max_steps` steps.
        """
        automaton, start = self.automaton, self.grammar.start
        if automaton.size > MAX_STATES:
            automaton.clear()
        ends: list[Ends] = [{}]
        sets = [EarleySet([], automaton.prediction(frozenset([start])))]
        count = 0
        for position, char in enumerate(text):
            current = sets[position]
            states, completed, steps = self._advance(sets, current, position, char)
            if not states:
                return self._failure(text, position, current)
            count += steps
            if count > self._max_steps:
                raise LimitExceeded(
                    f"the text takes more than {self._max_steps} steps to parse (at character {position + 1})",
                    "Shorten the text, or make the grammar less ambiguous; left recursion is cheaper than right.",
                )
            predicted = frozenset().union(*(state.predicts for state, _ in states))
            sets.append(EarleySet(states, automaton.prediction(predicted)))
            ends.append(completed)
        return sets, ends

    def _advance(
        self, sets: list[EarleySet], current: EarleySet, position: int, char: str
    ) -> tuple[list[tuple[Kernel, int]], Ends, int]:
        """Scan a character and complete; return the next states, what is completed, and the number of steps."""
        states = [(state, origin) for kernel, origin in current.states if (state := kernel.move(char)) is not None]
        if (state := current.prediction.move(char)) is not None:
            states.append((state, position))
        seen = set(states)
        states = list(dict.fromkeys(states))
        completed: Ends = {}
        steps = 0
        for state, origin in states:
            for name, productions in state.completes:
                origins = completed.setdefault(name, {})
                if origin in origins:
                    origins[origin].update(productions)
                else:
                    origins[origin] = set(productions)
                    advanced = sets[origin].advanced(name, origin)
                    steps += len(advanced)
                    for pair in advanced:
                        if pair not in seen:
                            seen.add(pair)
                            states.append(pair)
        return states, completed, steps + len(states)

    def _failure(self, text: str, at: int, current: EarleySet) -> ParseFailure:
        """Describe what can follow at a position: literals by their rest, classes by their characters."""
        literals: dict[str, None] = {}
        classes: dict[str, None] = {}
        for item, _ in current.items(at):
            symbol = self.automaton.next_symbols[item]
            if isinstance(symbol, str):
                literals[self.automaton.literal_suffixes[item] or symbol] = None
            elif isinstance(symbol, Chars):
                classes[describe(symbol)] = None
        shown = [*(repr(shortened(literal)) for literal in without_extensions(literals)), *classes]
        expected = by_similarity(FIRST_WORD.findall(text, at)[0], list(dict.fromkeys(shown)))
        return ParseFailure(text, at, tuple(expected[:MAX_EXPECTED]), max(0, len(expected) - MAX_EXPECTED))


def without_extensions(literals: Iterable[str]) -> list[str]:
    """Return the literals that do not start with another one, in their order."""
    shortest: list[str] = []
    for literal in sorted(literals):
        if not (shortest and literal.startswith(shortest[-1])):
            shortest.append(literal)
    selected = set(shortest)
    return [literal for literal in literals if literal in selected]


def by_similarity(word: str, expected: list[str]) -> list[str]:
    """Sort descriptions by similarity to a word; unchanged without a word or if there are too many to compare."""
    if not word or len(expected) > MAX_COMPARED:
        return expected
    matcher = SequenceMatcher(b=word.casefold(), autojunk=False)

    def distance(shown: str) -> float:
        matcher.set_seq1(shown[1:-1].casefold())
        return -matcher.ratio()

    return sorted(expected, key=distance)


def shortened(text: str) -> str:
    """Return a literal for a message, truncated if it is long."""
    return text if len(text) <= MAX_SHOWN_LENGTH else f"{text[: MAX_SHOWN_LENGTH - 1]}…"


def describe(chars: Chars) -> str:
    """Describe a character class for a message, by its characters or, if it is open-ended, by its complement."""
    open_ended = LAST_CHARACTER in chars
    ranges = chars.negated().ranges if open_ended else chars.ranges
    parts = [printable(low) if low == high else f"{printable(low)}-{printable(high)}" for low, high in ranges[:6]]
    listed = f"[{''.join(parts)}{'...' if len(ranges) > 6 else ''}]"
    if open_ended:
        return f"anything but {listed}" if ranges else "anything"
    return f"one of {listed}"


def printable(code: int) -> str:
    """Return a character, escaped if it is not printable."""
    return chr(code) if chr(code).isprintable() else repr(chr(code))[1:-1]
