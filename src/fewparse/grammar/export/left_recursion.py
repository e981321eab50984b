"""Left recursion: where a grammar has it, and the same language with none but plain repetition."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from fewparse.errors import LimitExceeded
from fewparse.grammar.rules import Grammar, Production, Ref, Symbol, Text, deriving_names, fresh_name, trim

MOST_SYMBOLS = 1_000_000

Graph = Mapping[str, Iterable[str]]


def components(graph: Graph) -> list[list[str]]:
    """The sets of names that reach each other; what is reached comes before who reaches it."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_names: dict[str, None] = {}
    found: list[list[str]] = []
    for root in graph:
        if root in order:
            continue
        order[root] = lowest[root] = len(order)
        open_names[root] = None
        stack = [(root, iter(graph[root]))]
        while stack:
            name, following = stack[-1]
            for other in following:
                if other in open_names:
                    lowest[name] = min(lowest[name], order[other])
                elif other not in order and other in graph:
                    order[other] = lowest[other] = len(order)
                    open_names[other] = None
                    stack.append((other, iter(graph[other])))
                    break
            else:
                stack.pop()
                if stack:
                    lowest[stack[-1][0]] = min(lowest[stack[-1][0]], lowest[name])
                if lowest[name] == order[name]:
                    found.append([])
                    while name in open_names:
                        found[-1].append(open_names.popitem()[0])
    return found


def circles(graph: Graph) -> list[list[str]]:
    """The sets of names of which each reaches itself."""
    return [names for names in components(graph) if len(names) > 1 or names[0] in graph[names[0]]]


def begun(production: Production, nullable: set[str]) -> Iterator[tuple[Symbol, Production]]:
    """The symbols that may be the first with characters, each with what follows it."""
    for at, symbol in enumerate(production):
        if symbol != Text(""):
            yield symbol, production[at + 1 :]
        if not is_nullable(symbol, nullable):
            return


def is_nullable(symbol: Symbol, nullable: set[str]) -> bool:
    """Whether a symbol may be nothing."""
    return symbol.name in nullable if isinstance(symbol, Ref) else symbol == Text("")


def corners(grammar: Grammar, nullable: set[str], last: bool = False) -> dict[str, dict[str, None]]:
    """For each name those that may begin what it derives; with `last`, those that may end it."""
    found: dict[str, dict[str, None]] = {}
    for name, productions in grammar.rules.items():
        found[name] = {}
        for production in productions:
            for symbol in production[::-1] if last else production:
                if isinstance(symbol, Ref):
                    found[name][symbol.name] = None
                if not is_nullable(symbol, nullable):
                    break
    return found


class Repetition(NamedTuple):
    """The productions of a name as `(first or ...) (again or ...)*`."""

    first: tuple[Production, ...]
    again: tuple[Production, ...]


def repetition(name: str, productions: Iterable[Production]) -> Repetition:
    """What a name begins with, and what it appends to itself."""
    own = [(production[:1] == (Ref(name),), production) for production in productions]
    return Repetition(
        tuple(production for recursive, production in own if not recursive),
        tuple(production[1:] for recursive, production in own if recursive),
    )


def only_repetition(grammar: Grammar) -> Grammar:
    """The same language, left-recursive only in `a: b | a c`, where `c` is never empty.

    Other left recursion is taken apart: first how the names begin otherwise, then any of what may follow.
    """
    grammar = trim(grammar).grammar
    nullable = deriving_names(grammar, characters=False)
    twisted = [names for names in circles(corners(grammar, nullable)) if not is_plain(grammar, names, nullable)]
    return Untwisting(grammar, nullable, twisted).untwisted() if twisted else grammar


def is_plain(grammar: Grammar, names: list[str], nullable: set[str]) -> bool:
    """Whether a circle is one name that only repeats itself."""
    if len(names) > 1:
        return False
    own = Ref(names[0])
    for production in grammar.rules[names[0]]:
        corner = [symbol for symbol, _ in begun(production, nullable)]
        if own in corner[1:] or (corner[:1] == [own] and production[0] != own):
            return False
        if own in corner and all(is_nullable(symbol, nullable) for symbol in production[1:]):
            return False
    return True


class Circle(NamedTuple):
    """Names that begin each other: how they begin otherwise, and what each may become, with what follows it."""

    seeds: list[tuple[str, Production]]
    steps: dict[str, list[tuple[str, Production]]]
    units: dict[str, dict[str, None]]


Key = tuple[str, ...]
"""A name; with "some", what it derives but nothing; with "after" and another, what is behind that one in it."""


class Untwisting:
    """The rules made so far, and those that they need."""

    def __init__(self, grammar: Grammar, nullable: set[str], twisted: list[list[str]]) -> None:
        self._grammar, self._nullable = grammar, nullable
        self._circles: dict[str, Circle] = {}
        self._names: dict[Key, str] = {}
        self._taken: dict[str, None] = dict.fromkeys(grammar.rules)
        self._wanted: list[Key] = []
        for names in twisted:
            self._circles |= dict.fromkeys(names, self._circle(names))

    def untwisted(self) -> Grammar:
        """All rules that the start needs."""
        rules: dict[str, tuple[Production, ...]] = {}
        size = 0
        self._want((self._grammar.start,))
        for key in self._wanted:
            rules[self._names[key]] = made = tuple(dict.fromkeys(self._productions(key)))
            for symbol in (symbol for production in made for symbol in production):
                if isinstance(symbol, Ref) and symbol.name in self._grammar.rules:
                    self._want((symbol.name,))
            size += sum(map(len, made))
            if size > MOST_SYMBOLS:
                message = f"without left recursion the grammar has more than {MOST_SYMBOLS:,} symbols"
                raise LimitExceeded(message, f"Write `{key[0]}` without left recursion.")
        return trim(Grammar(rules, self._grammar.start)).grammar

    def _want(self, key: Key) -> Ref:
        if key not in self._names:
            name = "_".join(key)
            self._names[key] = name if len(key) == 1 else fresh_name(name, self._taken)
            self._taken[self._names[key]] = None
            self._wanted.append(key)
        return Ref(self._names[key])

    def _circle(self, names: list[str]) -> Circle:
        members = set(names)
        circle = Circle([], {name: [] for name in names}, {name: {} for name in names})
        for name in names:
            for production in self._grammar.rules[name]:
                for first, rest in begun(production, self._nullable):
                    if not (isinstance(first, Ref) and first.name in members):
                        circle.seeds.append((name, (self._filled(first), *rest)))
                        continue
                    circle.steps[first.name] += [(name, filled) for filled in self._some(rest)]
                    if all(is_nullable(symbol, self._nullable) for symbol in rest):
                        circle.units[first.name][name] = None
        return circle

    def _some(self, production: Production) -> Iterator[Production]:
        """A production's ways to be something."""
        for first, rest in begun(production, self._nullable):
            yield (self._filled(first), *rest)

    def _filled(self, symbol: Symbol) -> Symbol:
        if isinstance(symbol, Ref) and symbol.name in self._nullable:
            return self._want((symbol.name, "some"))
        return symbol

    def _productions(self, key: Key) -> Iterator[Production]:
        name, *kind = key
        circle = self._circles.get(name)
        if len(key) == 3:
            yield from self._behind(name, key[2])
        elif circle is None:
            for production in self._grammar.rules[name]:
                yield from self._some(production) if kind else [production]
        elif not kind and name in self._nullable:
            yield from ((), (self._want((name, "some")),))
        elif len(circle.steps) == 1:
            yield from (seed for _, seed in circle.seeds)
            yield from ((self._want(key), *step) for _, step in circle.steps[name])
        else:
            yield from ((*seed, self._want((name, "after", seen))) for seen, seed in circle.seeds)

    def _behind(self, name: str, seen: str) -> Iterator[Production]:
        """What may follow one name of a circle until it has become another."""
        circle = self._circles[name]
        reached = {seen: None}
        frontier = [seen]
        for other in frontier:
            frontier += [new for new in circle.units[other] if new not in reached]
            reached |= circle.units[other]
        if name in reached:
            yield ()
        for other in reached:
            yield from ((*step, self._want((name, "after", after))) for after, step in circle.steps[other])
