"""Brute-force oracles: all derivations of a short text, and all its translations with their costs."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter
from heapq import nsmallest
from itertools import product
from typing import NamedTuple

from fewparse.grammar.parsing.forest import Tree
from fewparse.grammar.rules import Chars, Grammar, Production, Ref, Symbol, Text
from fewparse.grammar.synchronous import Pairing, Side, SynchronousGrammar
from fewparse.grammar.translation.scorers import Context
from fewparse.grammar.translation.shortest_strings import MAX_STRINGS

Plain = tuple[str, Production, tuple["Plain | str", ...]]
"""A derivation tree: a nonterminal, its production, and the fillers of its nonterminals and classes."""


class Span(NamedTuple):
    """A nonterminal over a span of the text."""

    name: str
    begin: int
    end: int


class Spans:
    """All spans of a text that a grammar derives, by fixpoint iteration."""

    def __init__(self, grammar: Grammar, text: str) -> None:
        self._grammar, self._text = grammar, text
        self.root = Span(grammar.start, 0, len(text))
        self.found: set[Span] = set()
        growing = True
        while growing:
            new = {
                Span(name, begin, end)
                for name, productions in grammar.rules.items()
                for production in productions
                for begin in range(len(text) + 1)
                for end in self._reached(production, begin)
            }
            growing = new != self.found
            self.found = new

    def _reached(self, production: Production, begin: int) -> set[int]:
        positions = {begin}
        for symbol in production:
            positions = {end for position in positions for end in self._ends(symbol, position)}
        return positions

    def _ends(self, symbol: Symbol, begin: int) -> list[int]:
        if isinstance(symbol, Text):
            return [begin + len(symbol.text)] if self._text.startswith(symbol.text, begin) else []
        if isinstance(symbol, Chars):
            return [begin + 1] if begin < len(self._text) and self._text[begin] in symbol else []
        return [end for end in range(begin, len(self._text) + 1) if (symbol.name, begin, end) in self.found]

    def splits(self, production: Production, begin: int, end: int) -> Iterator[tuple[tuple[int, int], ...]]:
        """The possible begins and ends of the symbols of a production."""
        if not production:
            if begin == end:
                yield ()
            return
        for position in self._ends(production[0], begin):
            for rest in self.splits(production[1:], position, end):
                yield ((begin, position), *rest)

    def expansions(self, span: Span) -> Iterator[tuple[Production, tuple[Span | str | None, ...]]]:
        """The productions of a span with the filler of each symbol: a span, a character, None for text."""
        for production in self._grammar.rules[span.name]:
            for split in self.splits(production, span.begin, span.end):
                yield (
                    production,
                    tuple(
                        Span(symbol.name, *bounds)
                        if isinstance(symbol, Ref)
                        else (self._text[bounds[0]] if isinstance(symbol, Chars) else None)
                        for symbol, bounds in zip(production, split, strict=True)
                    ),
                )

    @property
    def is_cyclic(self) -> bool:
        """Whether a span below the root can derive itself."""
        graph: dict[Span, set[Span]] = {}
        frontier = [self.root]
        while frontier:
            span = frontier.pop()
            if span not in graph:
                graph[span] = {f for _, fillers in self.expansions(span) for f in fillers if isinstance(f, Span)}
                frontier += graph[span]
        try:
            TopologicalSorter(graph).prepare()
        except CycleError:
            return True
        return False

    def count(self) -> int:
        """The number of derivations of the root of an acyclic text."""

        @cache
        def counted(span: Span) -> int:
            total = 0
            for _, fillers in self.expansions(span):
                count = 1
                for filler in fillers:
                    count *= counted(filler) if isinstance(filler, Span) else 1
                total += count
            return total

        return counted(self.root)

    def trees(self) -> Iterator[Plain]:
        """The derivations of the root in which no span derives itself."""
        return self._trees(self.root, ())

    def _trees(self, span: Span, around: tuple[Span, ...]) -> Iterator[Plain]:
        if span not in around:
            for production, fillers in self.expansions(span):
                inner = (*around, span)
                parts: list[list[Plain | str]] = [
                    list(self._trees(filler, inner)) if isinstance(filler, Span) else [filler]
                    for filler in fillers
                    if filler is not None
                ]
                yield from ((span.name, production, chosen) for chosen in product(*parts))


def plain(tree: Tree) -> Plain:
    """Convert a tree of the forest to the oracle's form."""
    fillers = tuple(plain(filler) if isinstance(filler, Tree) else filler for filler in tree.fillers)
    return tree.shape.name, tree.shape.production, fillers


def leaves(tree: Plain) -> str:
    """The text that a tree derives."""
    _, production, fillers = tree
    following = iter(fillers)
    pieces = []
    for symbol in production:
        filler = symbol.text if isinstance(symbol, Text) else next(following)
        pieces.append(filler if isinstance(filler, str) else leaves(filler))
    return "".join(pieces)


def in_order(text: str) -> tuple[int, str]:
    """The sort key of texts: by length, then by text."""
    return len(text), text


def shortest_strings(grammar: Grammar, limit: int) -> dict[str, list[str]]:
    """The shortest strings of every nonterminal, by fixpoint iteration; characters are printable ASCII."""
    found: dict[str, list[str]] = {name: [] for name in grammar.rules}
    while True:
        new = {}
        for name, productions in grammar.rules.items():
            texts: set[str] = set()
            for production in productions:
                prefixes = [""]
                for symbol in production:
                    following = free_strings(symbol, found)
                    prefixes = nsmallest(limit, {a + b for a in prefixes for b in following}, key=in_order)
                texts.update(prefixes)
            new[name] = nsmallest(limit, texts, key=in_order)
        if new == found:
            return found
        found = new


def free_strings(symbol: Symbol, known: dict[str, list[str]]) -> Sequence[str]:
    """The strings of a symbol that has no partner."""
    if isinstance(symbol, Text):
        return [symbol.text]
    if isinstance(symbol, Chars):
        return [char for char in map(chr, range(32, 127)) if char in symbol]
    return known.get(symbol.name, [])


Cost = Callable[[int, Context], int]


class Translations:
    """All translations of a text up to a length, each with its least cost."""

    def __init__(self, grammar: SynchronousGrammar, source: Side, text: str, cost: Cost, max_length: int) -> None:
        self._source, self._cost, self._max_length = source, cost, max_length
        self._rules = grammar.rules
        target: Side = "program" if source == "utterance" else "utterance"
        self._free = shortest_strings(grammar.side(target), MAX_STRINGS)
        self.spans = Spans(grammar.side(source), text)
        self._found: dict[Span, dict[tuple[int, str], int]] = {span: {} for span in self.spans.found}
        while True:
            new = {span: self._texts(span) for span in self.spans.found}
            if new == self._found:
                break
            self._found = new

    def texts(self) -> dict[str, int]:
        """The translations of the whole text with their costs."""
        return self._in_place(self.spans.root, None)

    def best_first(self) -> list[str]:
        """The translations, sorted by cost, length and text."""
        costs = self.texts()
        return sorted(costs, key=lambda text: (costs[text], len(text), text))

    def _in_place(self, span: Span, context: Context) -> dict[str, int]:
        costs: dict[str, int] = {}
        for (rule, text), cost in self._found.get(span, {}).items():
            whole = cost + self._cost(rule, context)
            costs[text] = min(whole, costs.get(text, whole))
        return costs

    def _texts(self, span: Span) -> dict[tuple[int, str], int]:
        costs: dict[tuple[int, str], int] = {}
        for production, fillers in self.spans.expansions(span):
            for number, rule in enumerate(self._rules):
                for pairing in rule.pairings if rule.name == span.name and rule.program is not None else ():
                    if production == (pairing.utterance if self._source == "utterance" else rule.program):
                        for text, cost in self._rendered(number, pairing, fillers).items():
                            costs[number, text] = min(cost, costs.get((number, text), cost))
        return costs

    def _rendered(self, rule: int, pairing: Pairing, fillers: tuple[Span | str | None, ...]) -> dict[str, int]:
        """The texts of a target side with their costs."""
        program = self._rules[rule].program or ()
        target: dict[str, int] = {"": 0}
        program_index = {u: p for p, u in enumerate(pairing.links) if u is not None}
        for at, symbol in enumerate(program if self._source == "utterance" else pairing.utterance):
            source_at = pairing.links[at] if self._source == "utterance" else program_index.get(at)
            filler = None if source_at is None else fillers[source_at]
            if isinstance(filler, Span):
                program_at = at if self._source == "utterance" else source_at
                assert program_at is not None
                choices = self._in_place(filler, (rule, program_at))
            else:
                choices = dict.fromkeys(free_strings(symbol, self._free) if filler is None else [filler], 0)
            longer: dict[str, int] = {}
            for (text, cost), (piece, more) in product(target.items(), choices.items()):
                if len(text + piece) <= self._max_length:
                    longer[text + piece] = min(cost + more, longer.get(text + piece, cost + more))
            target = longer
        return target
