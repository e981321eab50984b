"""Left-recursive cycles of a grammar, and their removal except for plain repetition (`a: b | a c`).

The removal is a left-corner transform (Rosenkrantz & Lewis 1970), applied to left-recursive cycles only (Moore
2000): a nonterminal derives a left corner from outside its cycle, then what completes this corner step by step.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from fewparse.errors import LimitExceeded
from fewparse.grammar.rules import Grammar, Production, Ref, Symbol, Text, fresh_name, nullable_names, trim

MAX_SYMBOLS = 1_000_000
MAX_STEPS = 5_000_000

Graph = Mapping[str, Iterable[str]]


def strongly_connected_components(graph: Graph) -> list[list[str]]:
    """Return the strongly connected components by Tarjan's algorithm, in reverse topological order."""
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


def cycles(graph: Graph) -> list[list[str]]:
    """Return the strongly connected components that contain a cycle."""
    return [
        names for names in strongly_connected_components(graph) if len(names) > 1 or names[0] in graph[names[0]]
    ]


def possible_firsts(production: Production, nullable: set[str]) -> Iterator[tuple[Symbol, Production]]:
    """Yield the symbols that can derive the first character, each with the symbols after it."""
    for at, symbol in enumerate(production):
        if symbol != Text(""):
            yield symbol, production[at + 1 :]
        if not is_nullable(symbol, nullable):
            return


def is_nullable(symbol: Symbol, nullable: set[str]) -> bool:
    """Return whether a symbol derives the empty string."""
    return symbol.name in nullable if isinstance(symbol, Ref) else symbol == Text("")


def corners(grammar: Grammar, nullable: set[str], last: bool = False) -> dict[str, dict[str, None]]:
    """Return the left corners of each nonterminal; with `last`, its right corners."""
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
    """The productions of a nonterminal as `(initial | ...) (repeated | ...)*`."""

    initial: tuple[Production, ...]
    repeated: tuple[Production, ...]


def split_repetition(name: str, productions: Iterable[Production]) -> Repetition:
    """Separate the productions of a nonterminal that start with itself from the others."""
    marked = [(production[:1] == (Ref(name),), production) for production in productions]
    return Repetition(
        tuple(production for recursive, production in marked if not recursive),
        tuple(production[1:] for recursive, production in marked if recursive),
    )


def reduce_left_recursion(grammar: Grammar) -> Grammar:
    """Return an equivalent grammar that is left-recursive only in `a: b | a c`, where `c` is not nullable.

    Raises LimitExceeded if the result is too large.
    """
    grammar = trim(grammar).grammar
    nullable = nullable_names(grammar)
    complex_cycles = [
        names for names in cycles(corners(grammar, nullable)) if not is_plain(grammar, names, nullable)
    ]
    return Elimination(grammar, nullable, complex_cycles).result() if complex_cycles else grammar


def is_plain(grammar: Grammar, names: list[str], nullable: set[str]) -> bool:
    """Return whether a cycle is one nonterminal that is only a plain repetition."""
    if len(names) > 1:
        return False
    own = Ref(names[0])
    for production in grammar.rules[names[0]]:
        firsts = [symbol for symbol, _ in possible_firsts(production, nullable)]
        if own in firsts[1:] or (firsts[:1] == [own] and production[0] != own):
            return False
        if own in firsts and all(is_nullable(symbol, nullable) for symbol in production[1:]):
            return False
    return True


class Cycle(NamedTuple):
    """Nonterminals that are left corners of each other.

    `seeds`: their productions that start otherwise. `steps`: for each member, the members that start with it, each
    with the non-empty rest of the production. `units`: for each member, the members that can derive it alone.
    """

    seeds: list[tuple[str, Production]]
    steps: dict[str, list[tuple[str, Production]]]
    units: dict[str, dict[str, None]]


Key = tuple[str, ...]
"""A new nonterminal: (name,) derives what `name` does; (name, "some") the same without the empty string;
(name, "after", other) derives what can follow `other` when it is the left corner of `name`."""


class Elimination:
    """The removal of some left-recursive cycles; rules are made on demand, starting with the start symbol."""

    def __init__(self, grammar: Grammar, nullable: set[str], complex_cycles: list[list[str]]) -> None:
        self._grammar, self._nullable = grammar, nullable
        self._cycles: dict[str, Cycle] = {}
        self._names: dict[Key, str] = {}
        self._used: dict[str, None] = dict.fromkeys(grammar.rules)
        self._requested: list[Key] = []
        self._steps = 0
        for names in complex_cycles:
            self._cycles |= dict.fromkeys(names, self._cycle(names))

    def result(self) -> Grammar:
        """Return the grammar of all rules that the start symbol needs."""
        rules: dict[str, tuple[Production, ...]] = {}
        size = 0
        self._request((self._grammar.start,))
        for key in self._requested:  # grows while rules are made
            rules[self._names[key]] = made = tuple(dict.fromkeys(self._productions(key)))
            for symbol in (symbol for production in made for symbol in production):
                if isinstance(symbol, Ref) and symbol.name in self._grammar.rules:
                    self._request((symbol.name,))
            size += sum(map(len, made))
            if size > MAX_SYMBOLS:
                message = f"without left recursion the grammar has more than {MAX_SYMBOLS:,} symbols"
                raise LimitExceeded(message, f"Write `{key[0]}` without left recursion.")
        return trim(Grammar(rules, self._grammar.start)).grammar

    def _request(self, key: Key) -> Ref:
        """Return the nonterminal of a key, whose rule will be made."""
        if key not in self._names:
            name = "_".join(key)
            self._names[key] = name if len(key) == 1 else fresh_name(name, self._used)
            self._used[self._names[key]] = None
            self._requested.append(key)
        return Ref(self._names[key])

    def _count(self, steps: int, name: str) -> None:
        """Count the work; raise LimitExceeded if it takes too long."""
        self._steps += steps
        if self._steps > MAX_STEPS:
            message = f"the removal of left recursion takes more than {MAX_STEPS:,} steps"
            raise LimitExceeded(message, f"Write `{name}` without left recursion.")

    def _cycle(self, names: list[str]) -> Cycle:
        members = set(names)
        cycle = Cycle([], {name: [] for name in names}, {name: {} for name in names})
        for name in names:
            for production in self._grammar.rules[name]:
                for first, rest in possible_firsts(production, self._nullable):
                    self._count(1 + len(rest), name)
                    if not (isinstance(first, Ref) and first.name in members):
                        cycle.seeds.append((name, (self._non_empty(first), *rest)))
                        continue
                    cycle.steps[first.name] += [(name, step) for step in self._non_empty_productions(rest)]
                    if all(is_nullable(symbol, self._nullable) for symbol in rest):
                        cycle.units[first.name][name] = None
        return cycle

    def _non_empty_productions(self, production: Production) -> Iterator[Production]:
        """Yield productions that together derive what this one does, except the empty string."""
        for first, rest in possible_firsts(production, self._nullable):
            self._count(1 + len(rest), self._grammar.start)
            yield (self._non_empty(first), *rest)

    def _non_empty(self, symbol: Symbol) -> Symbol:
        if isinstance(symbol, Ref) and symbol.name in self._nullable:
            return self._request((symbol.name, "some"))
        return symbol

    def _productions(self, key: Key) -> Iterator[Production]:
        name, *kind = key
        cycle = self._cycles.get(name)
        if len(key) == 3:
            yield from self._after(name, key[2])
        elif cycle is None:
            for production in self._grammar.rules[name]:
                yield from self._non_empty_productions(production) if kind else [production]
        elif not kind and name in self._nullable:
            yield from ((), (self._request((name, "some")),))
        elif len(cycle.steps) == 1:
            yield from (seed for _, seed in cycle.seeds)
            yield from ((self._request(key), *step) for _, step in cycle.steps[name])
        else:
            yield from ((*seed, self._request((name, "after", corner))) for corner, seed in cycle.seeds)

    def _after(self, name: str, corner: str) -> Iterator[Production]:
        """Yield the productions of what can follow a left corner within a member of its cycle."""
        cycle = self._cycles[name]
        reached = {corner: None}
        frontier = [corner]
        for other in frontier:
            frontier += [new for new in cycle.units[other] if new not in reached]
            reached |= cycle.units[other]
            self._count(1, name)
        if name in reached:
            yield ()
        for other in reached:
            yield from ((*step, self._request((name, "after", next_))) for next_, step in cycle.steps[other])
