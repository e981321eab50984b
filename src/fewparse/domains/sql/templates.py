"""The rules of `select.scfg` and `literals.scfg`, and their instances for the tables and joins of a schema.

A name in a template ends with parameters, single capital letters after `_`: `where_S` is a rule for each scope S.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from fewparse.grammar.readers.scfg import read_scfg
from fewparse.grammar.rules import Production, Ref, Symbol, Text
from fewparse.grammar.synchronous import PairedRule, Pairing, Side

ITEM = "ITEM"
"""Stands for the name of a derived table's column in the templates."""
MIN_SHARED = 4
"""Literals of at least this length are shared by the instances of a template."""

Binding = Mapping[str, str]
"""Values of parameters: identifiers of scopes, tables, types ..."""


class Template(NamedTuple):
    """A rule with parameters."""

    rule: PairedRule
    parameters: frozenset[str]

    @property
    def base(self) -> str:
        """The name without parameters."""
        return self.rule.name.split("_")[0]


@cache
def templates(item: str = "item") -> tuple[Template, ...]:
    """Return all templates; `item` names the column of derived tables."""
    sources = []
    for name in ("select.scfg", "literals.scfg"):
        text = (files(__package__) / name).read_text(encoding="utf-8")
        sources.append((name, text.replace(ITEM, item.replace("\\", "\\\\").replace('"', '\\"'))))
    return tuple(Template(rule, frozenset(parameters(rule))) for rule in read_scfg(sources).rules)


def parameters(rule: PairedRule) -> Iterator[str]:
    """Yield the parameters in the names of a rule."""
    productions = [*(pairing.utterance for pairing in rule.pairings), rule.program or ()]
    names = [rule.name, *(s.name for production in productions for s in production if isinstance(s, Ref))]
    for name in names:
        yield from (part for part in name.split("_")[1:] if part.isupper())


@cache
def english_words() -> frozenset[str]:
    """Return all words in the English of the templates."""
    literals = (
        symbol.text
        for template in templates()
        for pairing in template.rule.pairings
        for symbol in pairing.utterance
        if isinstance(symbol, Text)
    )
    return frozenset(word for literal in literals for word in re.findall(r"[a-z]+", literal))


class Instances:
    """Instances of templates; names and symbols are shared between them."""

    def __init__(self) -> None:
        self._refs: dict[str, Ref] = {}
        self._literals: dict[Side, dict[str, Ref]] = {"utterance": {}, "program": {}}
        """Shared literals of each side, and the names of their rules."""

    def ref(self, name: str) -> Ref:
        """Return the symbol of a nonterminal."""
        found = self._refs.get(name)
        if found is None:
            found = self._refs[name] = Ref(name)
        return found

    def of(self, template: Template, bindings: Iterable[Binding]) -> Iterator[PairedRule]:
        """Yield an instance of a template for each binding of its parameters."""
        rule = template.rule
        for binding in bindings:
            program = None if rule.program is None else self._production(rule.program, binding, "program")
            pairings = tuple(
                [
                    Pairing(self._production(pairing.utterance, binding, "utterance"), pairing.links)
                    for pairing in rule.pairings
                ]
            )
            yield PairedRule(instance_name(rule.name, binding), program, pairings)

    def _production(self, production: Production, binding: Binding, side: Side) -> Production:
        return tuple([self._symbol(symbol, binding, side) for symbol in production])

    def _symbol(self, symbol: Symbol, binding: Binding, side: Side) -> Symbol:
        if isinstance(symbol, Ref):
            return self.ref(instance_name(symbol.name, binding))
        if isinstance(symbol, Text) and len(symbol.text) >= MIN_SHARED and binding:
            literals = self._literals[side]
            if symbol.text not in literals:
                literals[symbol.text] = self.ref(f"{side}_literal_{len(literals)}")
            return literals[symbol.text]
        return symbol

    def literal_rules(self) -> Iterator[PairedRule]:
        """Yield the rules of the shared literals, each for the side that uses it."""
        for literal, ref in self._literals["utterance"].items():
            yield PairedRule(ref.name, None, (Pairing((Text(literal),), ()),))
        for literal, ref in self._literals["program"].items():
            yield PairedRule(ref.name, (Text(literal),), ())


def instance_name(name: str, binding: Binding) -> str:
    """Return a name with its parameters replaced."""
    return "_".join([binding.get(part, part) for part in name.split("_")]) if binding else name
