"""Context-free grammars over characters, and removal of their useless rules.

Grammars are scannerless: there is no lexer and nothing is ignored, so rules contain their spaces, and a string
belongs to the language iff the rules derive it character by character.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

LAST_CODE_POINT = 0x10FFFF


@dataclass(frozen=True)
class Chars:
    """A character class: one character of a set, stored as sorted disjoint ranges of code points."""

    ranges: tuple[tuple[int, int], ...]

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.ranges)  # a class may have thousands of ranges, and is hashed often

    @staticmethod
    def of(ranges: Iterable[tuple[int, int]]) -> "Chars":
        """Return the class of these ranges, which may overlap and come in any order."""
        merged: list[tuple[int, int]] = []
        for low, high in sorted(ranges):
            if merged and low <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(merged[-1][1], high))
            else:
                merged.append((low, high))
        return Chars(tuple(merged))

    def negated(self) -> "Chars":
        """Return the complement; surrogates are not characters, so they are never part of it."""
        start, complement = 0, []
        for low, high in Chars.of([*self.ranges, *SURROGATES.ranges]).ranges:
            if start < low:
                complement.append((start, low - 1))
            start = high + 1
        if start <= LAST_CODE_POINT:
            complement.append((start, LAST_CODE_POINT))
        return Chars(tuple(complement))

    def without(self, other: "Chars") -> "Chars":
        """Return the class without the characters of another class."""
        return Chars.of([*self.negated().ranges, *other.ranges]).negated()

    def without_surrogates(self) -> "Chars":
        """Return the class without surrogates."""
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
    """Productions by nonterminal; a nonterminal without productions derives no string."""

    rules: Mapping[str, tuple[Production, ...]]
    start: str = "start"

    @property
    def size(self) -> int:
        """The number of productions plus symbols; a literal counts one for each character."""
        return sum(
            1 + sum(len(s.text) if isinstance(s, Text) else 1 for s in production)
            for productions in self.rules.values()
            for production in productions
        )

    @cached_property
    def nullable(self) -> set[str]:
        """The nonterminals that derive the empty string."""
        return deriving_names(self, matches_empty)

    @cached_property
    def trimmed(self) -> "Trimmed":
        """The grammar without unproductive nonterminals, and then without unreachable ones."""
        productive = productive_names(self)
        remaining = productive_rules(self, productive)
        reachable = reachable_names(remaining, self.start)
        return Trimmed(
            replace(self, rules={name: rules for name, rules in remaining.items() if name in reachable}),
            tuple(sorted(undefined(self) | set(self.rules) - productive)),
            tuple(sorted(set(remaining) - reachable)),
        )

    def with_rules(self, rules: Mapping[str, tuple[Production, ...]]) -> "Grammar":
        """Return a copy with some rules replaced or added."""
        return replace(self, rules={**self.rules, **rules})

    def with_prefix(self, prefix: str) -> "Grammar":
        """Return the grammar of the same language with a fixed string before every sentence."""
        if not prefix:
            return self
        name = fresh_name("prefixed", self.rules)
        return Grammar({name: ((Text(prefix), Ref(self.start)),), **self.rules}, name)


class Trimmed(NamedTuple):
    """A grammar without useless nonterminals, and the names of the removed ones."""

    grammar: Grammar
    unproductive: tuple[str, ...]
    unreachable: tuple[str, ...]


def trim(grammar: Grammar) -> Trimmed:
    """Remove unproductive nonterminals, then unreachable ones."""
    return grammar.trimmed


def productive_rules(grammar: Grammar, productive: set[str]) -> dict[str, tuple[Production, ...]]:
    """Return the rules without unproductive nonterminals and the productions that use them."""
    found = {}
    for name, productions in grammar.rules.items():
        if name in productive:
            kept = [p for p in productions if uses_productive(p, productive)]
            found[name] = productions if len(kept) == len(productions) else tuple(kept)
    return found


def uses_productive(production: Production, productive: set[str]) -> bool:
    """Return whether all symbols of a production derive a string, given the productive nonterminals."""
    for symbol in production:
        if symbol.name not in productive if isinstance(symbol, Ref) else not matches_some(symbol):
            return False
    return True


def matches_some(terminal: Text | Chars) -> bool:
    """Return whether a terminal matches any string at all; an empty class does not."""
    return isinstance(terminal, Text) or bool(terminal.ranges)


def matches_empty(terminal: Text | Chars) -> bool:
    """Return whether a terminal matches the empty string."""
    return isinstance(terminal, Text) and not terminal.text


def productive_names(grammar: Grammar) -> set[str]:
    """Return the nonterminals that derive some string."""
    return deriving_names(grammar, matches_some)


def nullable_names(grammar: Grammar) -> set[str]:
    """Return the nonterminals that derive the empty string."""
    return grammar.nullable


def deriving_names(grammar: Grammar, usable: Callable[[Text | Chars], bool]) -> set[str]:
    """Return the nonterminals with a derivation whose terminals are all usable, in linear time."""
    if not has_usable_production(grammar, usable):
        return set()
    users: dict[str, list[int]] = {}
    heads: list[str] = []
    missing: list[int] = []
    agenda: list[str] = []
    for name, productions in grammar.rules.items():
        for production in productions:
            needs = []
            for symbol in production:
                if isinstance(symbol, Ref):
                    needs.append(symbol.name)
                elif not usable(symbol):
                    break
            else:
                for need in needs:
                    users.setdefault(need, []).append(len(heads))
                if not needs:
                    agenda.append(name)
                heads.append(name)
                missing.append(len(needs))
    found: set[str] = set()
    while agenda:
        name = agenda.pop()
        if name not in found:
            found.add(name)
            for number in users.get(name, ()):
                missing[number] -= 1
                if not missing[number]:
                    agenda.append(heads[number])
    return found


def has_usable_production(grammar: Grammar, usable: Callable[[Text | Chars], bool]) -> bool:
    """Return whether some production consists of usable terminals alone, without which there is no derivation."""
    return any(
        all(not isinstance(symbol, Ref) and usable(symbol) for symbol in production)
        for productions in grammar.rules.values()
        for production in productions
    )


def reachable_names(rules: Mapping[str, tuple[Production, ...]], start: str) -> set[str]:
    """Return the nonterminals that the start symbol reaches."""
    reached: set[str] = set()
    frontier = [start] if start in rules else []
    while frontier:
        name = frontier.pop()
        if name not in reached:
            reached.add(name)
            frontier += [s.name for p in rules[name] for s in p if isinstance(s, Ref)]
    return reached


def undefined(grammar: Grammar) -> set[str]:
    """Return the nonterminals that are used, or are the start, and have no rule."""
    used = {s.name for ps in grammar.rules.values() for p in ps for s in p if isinstance(s, Ref)}
    return (used | {grammar.start}) - set(grammar.rules)


def fresh_name(base: str, used: Mapping[str, object]) -> str:
    """Return the base name, with a number appended if it is already used."""
    name, count = base, 1
    while name in used:
        count += 1
        name = f"{base}_{count}"
    return name
