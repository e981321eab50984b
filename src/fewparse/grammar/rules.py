"""A context-free grammar over characters, and trimming it.

No lexer stands between the grammar and the text: blanks are written where they belong, and a string belongs to
the language iff the rules derive it, character by character.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

LAST_CODE_POINT = 0x10FFFF


@dataclass(frozen=True)
class Chars:
    """One character out of a set, kept as sorted disjoint ranges of code points."""

    ranges: tuple[tuple[int, int], ...]

    @staticmethod
    def of(ranges: Iterable[tuple[int, int]]) -> "Chars":
        """Any ranges, in any order."""
        merged: list[tuple[int, int]] = []
        for low, high in sorted(ranges):
            if merged and low <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(merged[-1][1], high))
            else:
                merged.append((low, high))
        return Chars(tuple(merged))

    def negated(self) -> "Chars":
        """All other characters; surrogates are no characters."""
        start, free = 0, []
        for low, high in Chars.of([*self.ranges, *SURROGATES.ranges]).ranges:
            if start < low:
                free.append((start, low - 1))
            start = high + 1
        if start <= LAST_CODE_POINT:
            free.append((start, LAST_CODE_POINT))
        return Chars(tuple(free))

    def without_surrogates(self) -> "Chars":
        """The same set of characters; surrogates are none."""
        return self.negated().negated()

    def __contains__(self, char: str) -> bool:
        return any(low <= ord(char) <= high for low, high in self.ranges)


SURROGATES = Chars(((0xD800, 0xDFFF),))


@dataclass(frozen=True)
class Text:
    """A literal string."""

    text: str


@dataclass(frozen=True)
class Ref:
    """A nonterminal."""

    name: str


Symbol = Text | Chars | Ref
Production = tuple[Symbol, ...]


@dataclass(frozen=True)
class Grammar:
    """Rules by name; a name without productions derives nothing."""

    rules: Mapping[str, tuple[Production, ...]]
    start: str = "start"

    @property
    def size(self) -> int:
        """Symbols on all right-hand sides, counted by characters."""
        return sum(
            1 + sum(len(s.text) if isinstance(s, Text) else 1 for s in production)
            for productions in self.rules.values()
            for production in productions
        )

    def with_rules(self, rules: Mapping[str, tuple[Production, ...]]) -> "Grammar":
        """The same grammar with some rules replaced or added."""
        return replace(self, rules={**self.rules, **rules})

    def led_by(self, lead: str) -> "Grammar":
        """The same language with a fixed string before every sentence."""
        if not lead:
            return self
        name = fresh_name("led", self.rules)
        return Grammar({name: ((Text(lead), Ref(self.start)),), **self.rules}, name)


class Trimmed(NamedTuple):
    """A grammar without useless rules, and the names of those that were dropped."""

    grammar: Grammar
    unproductive: tuple[str, ...]
    unreachable: tuple[str, ...]


def trim(grammar: Grammar) -> Trimmed:
    """Drop what derives no string, then what the start never reaches: either would be a dead end."""
    productive = deriving_names(grammar)
    kept = productive_rules(grammar, productive)
    reachable = reachable_names(kept, grammar.start)
    return Trimmed(
        replace(grammar, rules={name: rules for name, rules in kept.items() if name in reachable}),
        tuple(sorted(undefined(grammar) | set(grammar.rules) - productive)),
        tuple(sorted(set(kept) - reachable)),
    )


def productive_rules(grammar: Grammar, productive: set[str]) -> dict[str, tuple[Production, ...]]:
    """The rules without what derives no string."""
    return {
        name: tuple(p for p in productions if all(derives(s, productive) for s in p))
        for name, productions in grammar.rules.items()
        if name in productive
    }


def derives(symbol: Symbol, productive: set[str]) -> bool:
    """Whether a symbol can become a string."""
    return symbol.name in productive if isinstance(symbol, Ref) else is_readable(symbol, characters=True)


def deriving_names(grammar: Grammar, characters: bool = True) -> set[str]:
    """The nonterminals that derive some string; without characters, those that derive the empty one."""
    waiting: dict[str, list[tuple[str, int]]] = {}
    missing: dict[tuple[str, int], int] = {}
    ready: list[str] = []
    for name, productions in grammar.rules.items():
        for number, production in enumerate(productions):
            needs = {s.name for s in production if isinstance(s, Ref)}
            if all(isinstance(s, Ref) or is_readable(s, characters) for s in production):
                missing[name, number] = len(needs)
                for need in needs:
                    waiting.setdefault(need, []).append((name, number))
                if not needs:
                    ready.append(name)
    found: set[str] = set()
    while ready:
        name = ready.pop()
        if name not in found:
            found.add(name)
            for user, number in waiting.get(name, ()):
                missing[user, number] -= 1
                if not missing[user, number]:
                    ready.append(user)
    return found


def is_readable(symbol: Text | Chars, characters: bool) -> bool:
    """Whether a terminal can become a string, or, without characters, the empty one."""
    if isinstance(symbol, Text):
        return characters or not symbol.text
    return characters and bool(symbol.ranges)


def reachable_names(rules: Mapping[str, tuple[Production, ...]], start: str) -> set[str]:
    """The nonterminals that the start reaches."""
    reached: set[str] = set()
    frontier = [start] if start in rules else []
    while frontier:
        name = frontier.pop()
        if name not in reached:
            reached.add(name)
            frontier += [s.name for p in rules[name] for s in p if isinstance(s, Ref)]
    return reached


def undefined(grammar: Grammar) -> set[str]:
    """Nonterminals that are used and nowhere defined."""
    used = {s.name for ps in grammar.rules.values() for p in ps for s in p if isinstance(s, Ref)}
    return (used | {grammar.start}) - set(grammar.rules)


def fresh_name(wish: str, taken: Mapping[str, object]) -> str:
    """A name like the wish that is not taken."""
    name, count = wish, 1
    while name in taken:
        count += 1
        name = f"{wish}_{count}"
    return name
