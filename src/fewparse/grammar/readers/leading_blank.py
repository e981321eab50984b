"""A synchronous grammar without the blank that all its texts begin with.

In some grammars every constructor brings its own leading space (`" (Foo"`), so that whole texts begin with one,
and the texts of a dataset do not. The rules at the left edge are written once more, under names of their own and
without the blank; all others stay as they are.
"""

from typing import NamedTuple

from fewparse.grammar.rules import Grammar, Production, Ref, Symbol, Text, deriving_names, fresh_name, trim
from fewparse.grammar.synchronous import SIDES, PairedRule, Pairing, Place, Side, SynchronousGrammar

BLANK = " "
NOTHING = (Text(""),)


class Bare(NamedTuple):
    """A name whose texts have lost their blank on these sides."""

    name: str
    sides: frozenset[Side]


def without_leading_blank(grammar: SynchronousGrammar) -> SynchronousGrammar:
    """The same pairs without the blank; a side on which some text begins otherwise stays as it is."""
    sides = frozenset(side for side in SIDES if begins_with_blank(grammar.side(side)))
    return Stripping(grammar).from_start(sides) if sides else grammar


def begins_with_blank(grammar: Grammar) -> bool:
    """Whether every text begins with a blank, and no name before it can be nothing."""
    rules, nullable = trim(grammar).grammar.rules, deriving_names(grammar, characters=False)
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
            elif not (isinstance(first, Text) and first.text.startswith(BLANK)):
                return False
    return grammar.start in rules


class Stripping:
    """Writes the rules without the blank, beginning with the start."""

    def __init__(self, grammar: SynchronousGrammar) -> None:
        self._grammar = grammar
        self._by_name: dict[str, list[PairedRule]] = {}
        for rule in grammar.rules:
            self._by_name.setdefault(rule.name, []).append(rule)
        self._names: dict[Bare, str] = {}
        self._taken: dict[str, object] = dict(self._by_name)
        self._wanted: list[Bare] = []

    def from_start(self, sides: frozenset[Side]) -> SynchronousGrammar:
        """All rules that the bare start needs, and those that the grammar never needed."""
        start = self._name(Bare(self._grammar.start, sides))
        for name in self._unused():
            self._name(Bare(name, frozenset()))
        groups: dict[tuple[str, Production | None], dict[Pairing, None]] = {}
        places: dict[str, Place] = {}
        for bare in self._wanted:  # grows while rules are written
            name = self._names[bare]
            if bare.name in self._grammar.places:
                places[name] = self._grammar.places[bare.name]
            for rule in self._by_name[bare.name]:
                for pairing in rule.pairings:
                    program, said = self._stripped(rule.program, pairing, bare.sides)
                    groups.setdefault((name, program), {})[said] = None
        rules = (PairedRule(name, program, tuple(ways)) for (name, program), ways in groups.items())
        return SynchronousGrammar(tuple(rules), start, places)

    def _name(self, bare: Bare) -> str:
        """The name under which the rules are written; without productions it stays what it is."""
        if bare.name not in self._by_name:
            return bare.name
        if bare not in self._names:
            self._names[bare] = fresh_name(f"{bare.name}_bare", self._taken) if bare.sides else bare.name
            self._taken[self._names[bare]] = None
            self._wanted.append(bare)
        return self._names[bare]

    def _unused(self) -> list[str]:
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

    def _stripped(
        self, program: Production | None, pairing: Pairing, sides: frozenset[Side]
    ) -> tuple[Production | None, Pairing]:
        """One way to say a program: the blank goes from the first symbol, or from what its name stands for."""
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
            if program[:1] == NOTHING:
                program, links = program[1:], links[1:]
        if utterance[:1] == NOTHING:
            utterance, links = utterance[1:], tuple(None if u is None else u - 1 for u in links)
        return program, Pairing(utterance, links)

    def _symbol(self, symbol: Symbol, sides: frozenset[Side]) -> Symbol:
        if isinstance(symbol, Ref):
            return Ref(self._name(Bare(symbol.name, sides)))
        return Text(symbol.text.removeprefix(BLANK)) if sides and isinstance(symbol, Text) else symbol


def edges(sides: frozenset[Side], utterance: int | None, program: int | None) -> frozenset[Side]:
    """The sides that lose their blank and on which a symbol with these places stands first."""
    first = {side for side, place in zip(SIDES, (utterance, program), strict=True) if place == 0}
    return sides & first
