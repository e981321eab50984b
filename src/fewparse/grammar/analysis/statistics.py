"""Statistics of a grammar (size, recursion, cycles, useless names) and of its ambiguity on texts."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Literal, NamedTuple

from fewparse.errors import ConstraintError
from fewparse.grammar.analysis.sampling import min_depth
from fewparse.grammar.export.left_recursion import corners, cycles, is_nullable
from fewparse.grammar.parsing.chart import ParseFailure
from fewparse.grammar.parsing.forest import ForestParser
from fewparse.grammar.rules import Chars, Grammar, Production, Ref, Symbol, Text, nullable_names, trim, undefined
from fewparse.grammar.synchronous import SIDES, Location, PairedRule, SynchronousGrammar

Recursion = Literal["left", "right", "inner"]


class LocatedName(NamedTuple):
    """A nonterminal with the location of its definition or, if undefined, of its first user; None if unknown."""

    name: str
    location: Location | None


@dataclass(frozen=True)
class SideStatistics:
    """The figures of a plain grammar, or of one side of a synchronous grammar.

    `symbols` counts the symbols of all right-hand sides, `min_symbols` and `max_symbols` those of one. `min_depth`
    is the height of the lowest derivation of a sentence; None if there is no sentence. `recursive` maps each name
    that can contain itself to the kinds of its recursion: left, right, or only inner. `cycles` are names that
    derive themselves alone, so that their texts have infinitely many derivations. `recursive`, `nullable` and
    `cycles` do not include useless names.
    """

    productions: int
    names: int
    literals: int
    classes: int
    symbols: int
    min_symbols: int
    max_symbols: int
    min_depth: int | None
    recursive: Mapping[str, tuple[Recursion, ...]]
    nullable: tuple[str, ...]
    cycles: tuple[tuple[str, ...], ...]
    undefined: tuple[LocatedName, ...]
    unproductive: tuple[LocatedName, ...]
    unreachable: tuple[LocatedName, ...]


class SharedUtterance(NamedTuple):
    """A production of the utterance side that is paired with several programs."""

    name: str
    utterance: Production
    programs: tuple[Production, ...]
    location: Location | None


@dataclass(frozen=True)
class Statistics:
    """The figures of a grammar.

    `pairings` counts the utterance productions of all rules; `min_depth` is the height of the lowest derivation of
    both sides together. The keys of `sides` are "utterance" and "program", or "text" for a plain grammar.
    """

    rules: int
    pairings: int
    min_depth: int | None
    sides: Mapping[str, SideStatistics]
    shared_utterances: tuple[SharedUtterance, ...]


def statistics(grammar: Grammar | SynchronousGrammar) -> Statistics:
    """Return all figures of a grammar."""
    if isinstance(grammar, Grammar):
        side = side_statistics(grammar, {})
        return Statistics(side.productions, 0, side.min_depth, {"text": side}, ())
    return Statistics(
        len(grammar.rules),
        sum(len(rule.pairings) for rule in grammar.rules),
        min_depth(grammar),
        {side: side_statistics(grammar.side(side), grammar.locations) for side in SIDES},
        tuple(shared_utterances(grammar.rules, grammar.locations)),
    )


def side_statistics(grammar: Grammar, locations: Mapping[str, Location]) -> SideStatistics:
    """Return the figures of a plain grammar; `locations` are the locations of its names."""
    productions = [production for found in grammar.rules.values() for production in found]
    terminals = {symbol for production in productions for symbol in production if not isinstance(symbol, Ref)}
    useful, unproductive, unreachable = trim(grammar)
    undefined_names = undefined(grammar)
    nullable = nullable_names(useful)
    units = unit_graph(useful, nullable)
    return SideStatistics(
        productions=len(productions),
        names=len(grammar.rules),
        literals=sum(isinstance(symbol, Text) for symbol in terminals),
        classes=sum(isinstance(symbol, Chars) for symbol in terminals),
        symbols=sum(map(len, productions)),
        min_symbols=min(map(len, productions), default=0),
        max_symbols=max(map(len, productions), default=0),
        min_depth=min_depth(grammar),
        recursive=recursive_names(useful, nullable),
        nullable=tuple(sorted(nullable)),
        cycles=tuple(shortest_cycle(names, units) for names in cycles(units)),
        undefined=tuple(locate_by_use(grammar, undefined_names, locations)),
        unproductive=tuple(
            LocatedName(name, locations.get(name)) for name in unproductive if name not in undefined_names
        ),
        unreachable=tuple(LocatedName(name, locations.get(name)) for name in unreachable),
    )


def locate_by_use(grammar: Grammar, names: set[str], locations: Mapping[str, Location]) -> Iterable[LocatedName]:
    """Return undefined names with the location of their first user."""
    users: dict[str, str] = {}
    for user, productions in grammar.rules.items():
        for symbol in chain.from_iterable(productions):
            if isinstance(symbol, Ref) and symbol.name in names:
                users.setdefault(symbol.name, user)
    return (LocatedName(name, locations.get(users.get(name, ""))) for name in sorted(names))


def recursive_names(grammar: Grammar, nullable: set[str]) -> dict[str, tuple[Recursion, ...]]:
    """Return the names that can contain themselves, and at which end."""
    uses = {
        name: dict.fromkeys(s.name for s in chain.from_iterable(found) if isinstance(s, Ref))
        for name, found in grammar.rules.items()
    }
    at_ends: dict[Recursion, set[str]] = {
        "left": set(chain.from_iterable(cycles(corners(grammar, nullable)))),
        "right": set(chain.from_iterable(cycles(corners(grammar, nullable, last=True)))),
    }
    return {
        name: tuple(kind for kind, names in at_ends.items() if name in names) or ("inner",)
        for name in sorted(chain.from_iterable(cycles(uses)))
    }


def unit_graph(grammar: Grammar, nullable: set[str]) -> dict[str, dict[str, None]]:
    """Return for each name the names that it can derive alone, without other symbols."""
    graph: dict[str, dict[str, None]] = {}
    for name, productions in grammar.rules.items():
        graph[name] = {}
        for production in productions:
            needed: list[Symbol] = [symbol for symbol in production if not is_nullable(symbol, nullable)]
            alone = production if not needed else needed if len(needed) == 1 else ()
            graph[name] |= dict.fromkeys(symbol.name for symbol in alone if isinstance(symbol, Ref))
    return graph


def shortest_cycle(names: list[str], graph: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Return a shortest cycle through the least of the names and others of them, by breadth-first search."""
    start, members = min(names), set(names)
    predecessors: dict[str, str] = {}
    frontier = deque([start])
    while start not in predecessors:
        name = frontier.popleft()
        for other in graph[name]:
            if other in members and other not in predecessors:
                predecessors[other] = name
                frontier.append(other)
    path = [predecessors[start]]
    while path[-1] != start:
        path.append(predecessors[path[-1]])
    return tuple(reversed(path))


def shared_utterances(rules: Iterable[PairedRule], locations: Mapping[str, Location]) -> Iterable[SharedUtterance]:
    """Yield the utterances with different programs, or with different links to the same program."""
    programs_of: dict[tuple[str, Production], dict[tuple[Production, tuple[int | None, ...]], None]] = {}
    for rule in rules:
        if rule.program is not None:
            for utterance, links in ((pairing.utterance, pairing.links) for pairing in rule.pairings):
                programs_of.setdefault((rule.name, utterance), {})[rule.program, links] = None
    for (name, utterance), found in programs_of.items():
        if len(found) > 1:
            yield SharedUtterance(name, utterance, tuple(program for program, _ in found), locations.get(name))


class Line(NamedTuple):
    """A text with the number of its derivations (None for infinitely many), or the reason why it has none."""

    text: str
    derivations: int | None
    failure: str | None = None


@dataclass(frozen=True)
class Ambiguity:
    """The ambiguity of a grammar on a list of texts."""

    lines: tuple[Line, ...]

    @property
    def derived(self) -> tuple[Line, ...]:
        """The lines with derivations, the most ambiguous first."""
        found = (line for line in self.lines if line.failure is None)
        return tuple(sorted(found, key=lambda line: (line.derivations is not None, -(line.derivations or 0))))

    @property
    def rejected(self) -> tuple[Line, ...]:
        """The lines without derivations."""
        return tuple(line for line in self.lines if line.failure is not None)

    @property
    def mean_derivations(self) -> float | None:
        """The mean number of derivations of the lines with finitely many; None if there is no such line."""
        counts = [line.derivations for line in self.derived if line.derivations is not None]
        return sum(counts) / len(counts) if counts else None

    @property
    def most_ambiguous(self) -> Line | None:
        """The line with the most derivations; None if no line has any."""
        return next(iter(self.derived), None)


def ambiguity(parser: ForestParser, lines: Iterable[str]) -> Ambiguity:
    """Count the derivations of each line; a line beyond the limits of the parser is rejected."""
    found = []
    for text in lines:
        try:
            forest = parser.parse(text)
        except ConstraintError as error:
            found.append(Line(text, 0, error.message))
            continue
        if isinstance(forest, ParseFailure):
            found.append(Line(text, 0, forest.reason))
        else:
            found.append(Line(text, forest.count()))
    return Ambiguity(tuple(found))
