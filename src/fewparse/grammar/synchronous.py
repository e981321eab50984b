"""Synchronous context-free grammars (SCFG): rules that derive an utterance and a program together."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from fewparse.grammar.rules import Grammar, Production

Side = Literal["utterance", "program"]
SIDES: tuple[Side, ...] = ("utterance", "program")


@dataclass(frozen=True)
class Pairing:
    """One utterance side of a rule, aligned with the rule's program side.

    `links` has an entry for each symbol of the program side: the index of its partner among the symbols of the
    utterance side, or None for text and for a symbol that has no partner.
    """

    utterance: Production
    links: tuple[int | None, ...]


@dataclass(frozen=True)
class PairedRule:
    """A program side of a nonterminal with all its utterance sides; `program` is None for utterance-only rules."""

    name: str
    program: Production | None
    pairings: tuple[Pairing, ...]


class Location(NamedTuple):
    """The file and line of a rule."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True)
class SynchronousGrammar:
    """Paired rules; `locations` has the first definition of each nonterminal that was read from a file."""

    rules: tuple[PairedRule, ...]
    start: str = "start"
    locations: Mapping[str, Location] = field(default_factory=dict, compare=False, repr=False)

    def side(self, side: Side) -> Grammar:
        """Return one side as a plain grammar."""
        return self._utterances if side == "utterance" else self._programs

    @cached_property
    def _utterances(self) -> Grammar:
        pairs = ((rule.name, pairing.utterance) for rule in self.rules for pairing in rule.pairings)
        return Grammar(group_productions(pairs), self.start)

    @cached_property
    def _programs(self) -> Grammar:
        pairs = ((rule.name, rule.program) for rule in self.rules if rule.program is not None)
        return Grammar(group_productions(pairs), self.start)


def group_productions(pairs: Iterable[tuple[str, Production]]) -> dict[str, tuple[Production, ...]]:
    """Group productions by nonterminal, without duplicates, in order of first appearance."""
    rules: dict[str, dict[Production, None]] = {}
    for name, production in pairs:
        rules.setdefault(name, {})[production] = None
    return {name: tuple(productions) for name, productions in rules.items()}
