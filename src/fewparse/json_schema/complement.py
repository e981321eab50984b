"""The complement of a regular expression: the texts in which it is not found.

The expression becomes a nondeterministic automaton (Thompson), that a deterministic one (subset construction),
whose complement becomes an expression again (state elimination).
"""

import re
from collections.abc import Iterable
from itertools import pairwise
from re import _constants as op
from typing import Any

from fewparse.grammar.rules import LAST_CODE_POINT, SURROGATES, Chars
from fewparse.json_schema.patterns import CHARACTERS, Item, PatternError, Writer, character_class, parse

MAX_NFA_STATES = 3_000
MAX_DFA_STATES = 150
MAX_LENGTH = 100_000
EVERYTHING = Chars.of([]).negated()
NEWLINE = Chars.of([(10, 10)])


def complement(pattern: str) -> str | None:
    """Return a pattern of the engine for the texts in which a pattern of a schema is not found.

    None means that it is found in all texts. Raises `PatternError` if the pattern is not valid or not regular, or
    if its complement is too large.
    """
    tree, flags = parse(pattern)
    if flags & re.IGNORECASE:
        raise PatternError("the negation of a pattern without regard to case cannot be enforced")
    nfa = Nfa(Writer(flags, either=True))
    for items, at_start, at_end in Writer(flags).searched(tree):
        nfa.add_search(items, at_start, at_end)
    written = Dfa(nfa).complement()
    return None if written is None else f"^(?:{written})$"


class Nfa:
    """An automaton over characters; state 0 is the start, state 1 accepts, and a step may have no character."""

    def __init__(self, writer: Writer) -> None:
        self.steps: list[list[tuple[Chars | None, int]]] = [[], []]
        self._writer = writer

    def add_search(self, items: Iterable[Item], at_start: bool, at_end: bool) -> None:
        """Add the texts in which items are found, at the start or at the end if these are demanded."""
        start = self._state()
        self._step(0, None, start)
        if not at_start:
            self._step(start, EVERYTHING, start)
        end = self._add(items, start)
        self._step(end, None, 1)
        if at_end:  # Python finds a dollar also before a line break at the end
            self._step(end, NEWLINE, 1)
        else:
            rest = self._state()
            self._step(end, None, rest)
            self._step(rest, EVERYTHING, rest)
            self._step(rest, None, 1)

    def _state(self) -> int:
        self.steps.append([])
        if len(self.steps) > MAX_NFA_STATES:
            raise PatternError("its negation is too large to be enforced")
        return len(self.steps) - 1

    def _step(self, source: int, chars: Chars | None, target: int) -> None:
        self.steps[source].append((chars, target))

    def _add(self, items: Iterable[Item], state: int) -> int:
        """Add items in sequence after a state; return the state after them."""
        for operation, value in items:
            state = self._add_item(operation, value, state)
        return state

    def _add_item(self, operation: Any, value: Any, state: int) -> int:
        end = self._state()
        if operation in CHARACTERS:
            self._step(state, self._writer.characters(operation, value), end)
        elif operation in (op.MAX_REPEAT, op.MIN_REPEAT):
            low, high, inner = value
            for _ in range(low):
                state = self._add(inner, state)
            if high is op.MAXREPEAT:
                loop = self._state()
                self._step(state, None, loop)
                self._step(self._add(inner, loop), None, loop)
                state = loop
            else:
                for _ in range(high - low):
                    self._step(state, None, end)
                    state = self._add(inner, state)
            self._step(state, None, end)
        elif operation is op.BRANCH:
            for branch in value[1]:
                self._step(self._add(branch, state), None, end)
        else:
            assert operation is op.SUBPATTERN, operation  # others were refused before
            self._step(self._add(value[3], state), None, end)
        return end

    def closure(self, states: Iterable[int]) -> frozenset[int]:
        """Return the states that are reached without a character."""
        agenda, found = list(states), set(states)
        while agenda:
            for chars, target in self.steps[agenda.pop()]:
                if chars is None and target not in found:
                    found.add(target)
                    agenda.append(target)
        return frozenset(found)


class Dfa:
    """The deterministic automaton of a nondeterministic one."""

    def __init__(self, nfa: Nfa) -> None:
        used = {chars for steps in nfa.steps for chars, _ in steps if chars is not None}
        self._classes = partition(used)
        firsts = [chr(part.ranges[0][0]) for part in self._classes]
        members = {chars: [i for i, first in enumerate(firsts) if first in chars] for chars in used}
        start = nfa.closure([0])
        self._numbers = {start: 0}
        self._steps: list[dict[int, int]] = []
        agenda = [start]
        for states in agenda:
            targets: dict[int, set[int]] = {}
            for state in states:
                for chars, target in nfa.steps[state]:
                    for i in members[chars] if chars is not None else ():
                        targets.setdefault(i, set()).add(target)
            row = {}
            for i in range(len(self._classes)):
                following = nfa.closure(targets.get(i, ()))
                if following not in self._numbers:
                    self._numbers[following] = len(self._numbers)
                    agenda.append(following)
                    if len(agenda) > MAX_DFA_STATES:
                        raise PatternError("its negation is too large to be enforced")
                row[i] = self._numbers[following]
            self._steps.append(row)
        self._accepting = {number for states, number in self._numbers.items() if 1 in states}

    def complement(self) -> str | None:
        """Return an expression for the texts that are not accepted, None if there are none."""
        count = len(self._steps)
        start, end = count, count + 1
        edges: dict[tuple[int, int], str] = {(start, 0): ""}
        for source, row in enumerate(self._steps):
            targets: dict[int, list[tuple[int, int]]] = {}
            for i, target in row.items():
                targets.setdefault(target, []).extend(self._classes[i].ranges)
            for target, ranges in targets.items():
                edges[source, target] = character_class(Chars.of(ranges))
            if source not in self._accepting:
                edges[source, end] = ""
        left = set(range(count))
        while left:
            state = min(left, key=lambda s: (sum(s in edge for edge in edges), s))
            left.remove(state)
            eliminate(state, edges)
        return edges.get((start, end))


def eliminate(state: int, edges: dict[tuple[int, int], str]) -> None:
    """Replace the paths through a state by direct edges."""
    loop = edges.pop((state, state), None)
    before = [(source, edges.pop((source, target))) for source, target in list(edges) if target == state]
    after = [(target, edges.pop((source, target))) for source, target in list(edges) if source == state]
    repeated = "" if loop is None else f"(?:{loop})*"
    for source, first in before:
        for target, last in after:
            path = f"{first}{repeated}{last}"
            known = edges.get((source, target))
            edges[source, target] = path if known is None else f"(?:{known}|{path})"
            if len(edges[source, target]) > MAX_LENGTH:
                raise PatternError("its negation is too large to be enforced")


def partition(classes: set[Chars]) -> list[Chars]:
    """Return disjoint classes that together have all characters, so that each class is a union of some."""
    cuts = {0, LAST_CODE_POINT + 1}
    for chars in [*classes, SURROGATES]:
        for low, high in chars.ranges:
            cuts |= {low, high + 1}
    ordered = sorted(cuts)
    groups: dict[frozenset[int], list[tuple[int, int]]] = {}
    numbered = list(classes)
    for low, following in pairwise(ordered):
        if chr(low) not in SURROGATES:
            key = frozenset(i for i, chars in enumerate(numbered) if chr(low) in chars)
            groups.setdefault(key, []).append((low, following - 1))
    return [Chars.of(ranges) for ranges in groups.values()]
