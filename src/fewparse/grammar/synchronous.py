"""A synchronous grammar: rules that derive an utterance and a program together."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from fewparse.grammar.rules import Grammar, Production

Side = Literal["utterance", "program"]
SIDES: tuple[Side, ...] = ("utterance", "program")


@dataclass(frozen=True)
class Pairing:
    """One way to say a rule's program.

    `links` has an entry for each symbol of the program side: the index of its partner among the symbols of the
    utterance side, or None for text and for a symbol that has no partner.
    """

    utterance: Production
    links: tuple[int | None, ...]


@dataclass(frozen=True)
class PairedRule:
    """All ways to say one expansion of a name; `program` is None for a rule of the utterance side alone."""

    name: str
    program: Production | None
    pairings: tuple[Pairing, ...]


class Place(NamedTuple):
    """Where a rule is written."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True)
class SynchronousGrammar:
    """Paired rules; `places` says where each name is first defined."""

    rules: tuple[PairedRule, ...]
    start: str = "start"
    places: Mapping[str, Place] = field(default_factory=dict, compare=False, repr=False)

    def side(self, side: Side) -> Grammar:
        """One side as a plain grammar."""
        return self._utterances if side == "utterance" else self._programs

    @cached_property
    def _utterances(self) -> Grammar:
        pairs = ((rule.name, pairing.utterance) for rule in self.rules for pairing in rule.pairings)
        return Grammar(collect(pairs), self.start)

    @cached_property
    def _programs(self) -> Grammar:
        pairs = ((rule.name, rule.program) for rule in self.rules if rule.program is not None)
        return Grammar(collect(pairs), self.start)


def collect(pairs: Iterable[tuple[str, Production]]) -> dict[str, tuple[Production, ...]]:
    """Productions by name, each once, in the order in which they come."""
    rules: dict[str, dict[Production, None]] = {}
    for name, production in pairs:
        rules.setdefault(name, {})[production] = None
    return {name: tuple(productions) for name, productions in rules.items()}
