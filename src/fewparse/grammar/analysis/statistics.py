"""What there is to know of a grammar at a glance: its size, its shape, and what is probably a mistake in it."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Literal, NamedTuple

from fewparse.errors import ConstraintError
from fewparse.grammar.analysis.sampling import least_depth
from fewparse.grammar.export.left_recursion import corners, cycles, is_nullable
from fewparse.grammar.parsing.chart import ParseFailure
from fewparse.grammar.parsing.forest import ForestParser
from fewparse.grammar.rules import Chars, Grammar, Production, Ref, Symbol, Text, nullable_names, trim, undefined
from fewparse.grammar.synchronous import SIDES, Location, PairedRule, SynchronousGrammar

Recursion = Literal["left", "right", "inner"]


class Named(NamedTuple):
    """A name, and the place where it is defined, or where the first name that uses it is; None if unknown."""

    name: str
    place: Location | None


@dataclass(frozen=True)
class SideStatistics:
    """One side of a grammar, or a plain one.

    `symbols` counts all on right-hand sides, `shortest` and `longest` those on one. `least_depth` is the height of
    the lowest derivation of a sentence; None if there is no sentence. `recursive` names can be part of themselves:
    at the beginning, at the end, or only with something around; `cycles` of names derive themselves with nothing
    around, so that what they derive has derivations without end. What is useless counts for neither.
    """

    productions: int
    names: int
    literals: int
    classes: int
    symbols: int
    shortest: int
    longest: int
    least_depth: int | None
    recursive: Mapping[str, tuple[Recursion, ...]]
    nullable: tuple[str, ...]
    cycles: tuple[tuple[str, ...], ...]
    undefined: tuple[Named, ...]
    unproductive: tuple[Named, ...]
    unreachable: tuple[Named, ...]


class SharedUtterance(NamedTuple):
    """An expansion of a name on the utterance side that stands for several programs."""

    name: str
    utterance: Production
    programs: tuple[Production, ...]
    place: Location | None


@dataclass(frozen=True)
class Statistics:
    """A grammar: `pairings` counts the ways to say all programs, `least_depth` is that of both sides together.

    The sides are called "utterance" and "program"; the only one of a plain grammar is called "text".
    """

    rules: int
    pairings: int
    least_depth: int | None
    sides: Mapping[str, SideStatistics]
    shared_utterances: tuple[SharedUtterance, ...]


def statistics(grammar: Grammar | SynchronousGrammar) -> Statistics:
    """All figures of a grammar."""
    if isinstance(grammar, Grammar):
        side = side_statistics(grammar, {})
        return Statistics(side.productions, 0, side.least_depth, {"text": side}, ())
    return Statistics(
        len(grammar.rules),
        sum(len(rule.pairings) for rule in grammar.rules),
        least_depth(grammar),
        {side: side_statistics(grammar.side(side), grammar.locations) for side in SIDES},
        tuple(shared_utterances(grammar.rules, grammar.locations)),
    )


def side_statistics(grammar: Grammar, places: Mapping[str, Location]) -> SideStatistics:
    """The figures of a plain grammar."""
    productions = [production for found in grammar.rules.values() for production in found]
    terminals = {symbol for production in productions for symbol in production if not isinstance(symbol, Ref)}
    useful, unproductive, unreachable = trim(grammar)
    nowhere = undefined(grammar)
    nullable = nullable_names(useful)
    units = unit_graph(useful, nullable)
    return SideStatistics(
        productions=len(productions),
        names=len(grammar.rules),
        literals=sum(isinstance(symbol, Text) for symbol in terminals),
        classes=sum(isinstance(symbol, Chars) for symbol in terminals),
        symbols=sum(map(len, productions)),
        shortest=min(map(len, productions), default=0),
        longest=max(map(len, productions), default=0),
        least_depth=least_depth(grammar),
        recursive=recursive_names(useful, nullable),
        nullable=tuple(sorted(nullable)),
        cycles=tuple(shortest_circle(names, units) for names in cycles(units)),
        undefined=tuple(used_at(grammar, nowhere, places)),
        unproductive=tuple(Named(name, places.get(name)) for name in unproductive if name not in nowhere),
        unreachable=tuple(Named(name, places.get(name)) for name in unreachable),
    )


def used_at(grammar: Grammar, names: set[str], places: Mapping[str, Location]) -> Iterable[Named]:
    """Names that have no place of their own, with the place of their first user."""
    users: dict[str, str] = {}
    for user, productions in grammar.rules.items():
        for symbol in chain.from_iterable(productions):
            if isinstance(symbol, Ref) and symbol.name in names:
                users.setdefault(symbol.name, user)
    return (Named(name, places.get(users.get(name, ""))) for name in sorted(names))


def recursive_names(grammar: Grammar, nullable: set[str]) -> dict[str, tuple[Recursion, ...]]:
    """The names that can be part of themselves, and where."""
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
    """For each name those that it may be all of, with nothing around."""
    graph: dict[str, dict[str, None]] = {}
    for name, productions in grammar.rules.items():
        graph[name] = {}
        for production in productions:
            needed: list[Symbol] = [symbol for symbol in production if not is_nullable(symbol, nullable)]
            alone = production if not needed else needed if len(needed) == 1 else ()
            graph[name] |= dict.fromkeys(symbol.name for symbol in alone if isinstance(symbol, Ref))
    return graph


def shortest_circle(names: list[str], graph: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """A shortest way from the first of the names back to it, through others of them."""
    start, members = min(names), set(names)
    came_from: dict[str, str] = {}
    frontier = deque([start])
    while start not in came_from:
        name = frontier.popleft()
        for other in graph[name]:
            if other in members and other not in came_from:
                came_from[other] = name
                frontier.append(other)
    path = [came_from[start]]
    while path[-1] != start:
        path.append(came_from[path[-1]])
    return tuple(reversed(path))


def shared_utterances(rules: Iterable[PairedRule], places: Mapping[str, Location]) -> Iterable[SharedUtterance]:
    """What is said in the same words for different programs, or for one whose parts belong together otherwise."""
    meanings: dict[tuple[str, Production], dict[tuple[Production, tuple[int | None, ...]], None]] = {}
    for rule in rules:
        if rule.program is not None:
            for utterance, links in ((pairing.utterance, pairing.links) for pairing in rule.pairings):
                meanings.setdefault((rule.name, utterance), {})[rule.program, links] = None
    for (name, utterance), found in meanings.items():
        if len(found) > 1:
            yield SharedUtterance(name, utterance, tuple(program for program, _ in found), places.get(name))


class Line(NamedTuple):
    """A text with the number of its derivations (None for infinitely many), or why it has none."""

    text: str
    derivations: int | None
    failure: str | None = None


@dataclass(frozen=True)
class Ambiguity:
    """How ambiguous a grammar is on some texts."""

    lines: tuple[Line, ...]

    @property
    def derived(self) -> tuple[Line, ...]:
        """The lines that have derivations, the most ambiguous first."""
        found = (line for line in self.lines if line.failure is None)
        return tuple(sorted(found, key=lambda line: (line.derivations is not None, -(line.derivations or 0))))

    @property
    def refused(self) -> tuple[Line, ...]:
        """The lines that have none."""
        return tuple(line for line in self.lines if line.failure is not None)

    @property
    def mean(self) -> float | None:
        """Derivations a line, of those that have finitely many; None if there are none such."""
        counts = [line.derivations for line in self.derived if line.derivations is not None]
        return sum(counts) / len(counts) if counts else None

    @property
    def most(self) -> Line | None:
        """The most ambiguous line."""
        return next(iter(self.derived), None)


def ambiguity(parser: ForestParser, lines: Iterable[str]) -> Ambiguity:
    """How many derivations each line has; a line that is too much for the parser is refused."""
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
