"""Strip the leading space of a synchronous grammar, if all texts of a side start with one.

In some grammars every constructor has its own leading space (`" (Foo"`), so that whole texts start with one while
the texts of the dataset do not. The rules at the left edge are copied under new names without the space; the
others are not changed.
"""

from typing import NamedTuple

from fewparse.grammar.rules import Grammar, Production, Ref, Symbol, Text, fresh_name, nullable_names, trim
from fewparse.grammar.synchronous import SIDES, Location, PairedRule, Pairing, Side, SynchronousGrammar

SPACE = " "
EMPTY = (Text(""),)


class Stripped(NamedTuple):
    """A nonterminal whose leading space is stripped on these sides; `name` is the original one."""

    name: str
    sides: frozenset[Side]


def strip_leading_space(grammar: SynchronousGrammar) -> SynchronousGrammar:
    """Return the same pairs of texts without their leading space.

    A side is unchanged if not all its texts start with a space.
    """
    sides = frozenset(side for side in SIDES if starts_with_space(grammar.side(side)))
    return Stripper(grammar).from_start(sides) if sides else grammar


def starts_with_space(grammar: Grammar) -> bool:
    """Return whether every text starts with a space in a literal, and no nonterminal before it is nullable."""
    rules, nullable = trim(grammar).grammar.rules, nullable_names(grammar)
    reached: set[str] = set()
    frontier = [grammar.start]
    while frontier:
        name = frontier.pop()
        if name in reached:
            continue
        reached.add(name)
        for production in rules.get(name, ()):
            first = production[0] if production else None
            if isinstance(first, Ref) and first.name not in nullable:
                frontier.append(first.name)
            elif not (isinstance(first, Text) and first.text.startswith(SPACE)):
                return False
    return grammar.start in rules


class Stripper:
    """Writes the stripped rules on demand, starting with the start symbol."""

    def __init__(self, grammar: SynchronousGrammar) -> None:
        self._grammar = grammar
        self._by_name: dict[str, list[PairedRule]] = {}
        for rule in grammar.rules:
            self._by_name.setdefault(rule.name, []).append(rule)
        self._names: dict[Stripped, str] = {}
        self._used: dict[str, object] = dict(self._by_name)
        self._requested: list[Stripped] = []

    def from_start(self, sides: frozenset[Side]) -> SynchronousGrammar:
        """Return the rules that the stripped start symbol needs, and the rules that were unreachable before."""
        start = self._name(Stripped(self._grammar.start, sides))
        for name in self._unreachable():
            self._name(Stripped(name, frozenset()))
        groups: dict[tuple[str, Production | None], dict[Pairing, None]] = {}
        locations: dict[str, Location] = {}
        for key in self._requested:  # grows while rules are written
            name = self._names[key]
            if key.name in self._grammar.locations:
                locations[name] = self._grammar.locations[key.name]
            for rule in self._by_name[key.name]:
                for pairing in rule.pairings:
                    program, stripped = self._strip(rule.program, pairing, key.sides)
                    groups.setdefault((name, program), {})[stripped] = None
        rules = (PairedRule(name, program, tuple(pairings)) for (name, program), pairings in groups.items())
        return SynchronousGrammar(tuple(rules), start, locations)

    def _name(self, key: Stripped) -> str:
        """Return the new name of a nonterminal, whose rules will be written; an undefined name is unchanged."""
        if key.name not in self._by_name:
            return key.name
        if key not in self._names:
            self._names[key] = fresh_name(f"{key.name}_bare", self._used) if key.sides else key.name
            self._used[self._names[key]] = None
            self._requested.append(key)
        return self._names[key]

    def _unreachable(self) -> list[str]:
        reached: set[str] = set()
        frontier = [self._grammar.start]
        while frontier:
            name = frontier.pop()
            if name not in reached:
                reached.add(name)
                for rule in self._by_name.get(name, ()):
                    sides = [*(pairing.utterance for pairing in rule.pairings), rule.program or ()]
                    frontier += [s.name for side in sides for s in side if isinstance(s, Ref)]
        return [name for name in self._by_name if name not in reached]

    def _strip(
        self, program: Production | None, pairing: Pairing, sides: frozenset[Side]
    ) -> tuple[Production | None, Pairing]:
        """Strip the first symbols: a literal loses its space, a nonterminal is replaced by its stripped copy."""
        partners = {u: p for p, u in enumerate(pairing.links) if u is not None}
        utterance = tuple(
            self._symbol(symbol, edges(sides, u, partners.get(u))) for u, symbol in enumerate(pairing.utterance)
        )
        links = pairing.links
        if program is not None:
            program = tuple(
                self._symbol(symbol, edges(sides, u, p))
                for p, (symbol, u) in enumerate(zip(program, links, strict=True))
            )
            if program[:1] == EMPTY:
                program, links = program[1:], links[1:]
        if utterance[:1] == EMPTY:
            utterance, links = utterance[1:], tuple(None if u is None else u - 1 for u in links)
        return program, Pairing(utterance, links)

    def _symbol(self, symbol: Symbol, sides: frozenset[Side]) -> Symbol:
        if isinstance(symbol, Ref):
            return Ref(self._name(Stripped(symbol.name, sides)))
        return Text(symbol.text.removeprefix(SPACE)) if sides and isinstance(symbol, Text) else symbol


def edges(sides: frozenset[Side], utterance: int | None, program: int | None) -> frozenset[Side]:
    """Return the sides among `sides` on which a symbol with these indices is the first."""
    first = {side for side, index in zip(SIDES, (utterance, program), strict=True) if index == 0}
    return sides & first
