"""Which derivation is the best: the shortest one, or the one whose rules are usual where they stand."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Literal, Protocol

from fewparse.grammar.synchronous import SynchronousGrammar

Context = tuple[int, int] | None
"""The rule around a node and the symbol of its program side that the node is; None at the root."""

ScorerName = Literal["shortest", "learned"]

Use = tuple[int, Context]
"""A rule and where it was used."""

NAT = 1000
MOST_COST = 1_000_000


class Scorer(Protocol):
    """Says what a rule costs in its place; among equals, the shorter text wins, then the smaller one."""

    contextual: bool
    """Whether the place matters."""

    def cost(self, rule: int, context: Context) -> int:
        """The cost of a rule, at least 0."""


class Shortest:
    """Only the length of the text counts."""

    contextual = False

    def cost(self, rule: int, context: Context) -> int:
        """Nothing."""
        return 0


class FewestRules:
    """The smallest derivation."""

    contextual = False

    def cost(self, rule: int, context: Context) -> int:
        """One each."""
        return 1


class Learned:
    """How unusual a rule is in its place, in thousandths of a nat, learned from derivations of programs.

    The probability of a rule given the place backs off to its probability given its name, and that to an even
    chance, as Witten and Bell do: the more different rules a place has shown, the more it expects new ones.
    """

    contextual = True

    def __init__(self, grammar: SynchronousGrammar, uses: Iterable[Use]) -> None:
        self._names = [rule.name for rule in grammar.rules]
        self._alternatives = Counter(self._names)
        self._in_place: dict[Context, Counter[int]] = defaultdict(Counter)
        self._by_name: dict[str, Counter[int]] = defaultdict(Counter)
        for rule, context in uses:
            self._in_place[context][rule] += 1
            self._by_name[self._names[rule]][rule] += 1
        self._costs: dict[Use, int] = {}

    def cost(self, rule: int, context: Context) -> int:
        """Minus the logarithm of its probability."""
        use = rule, context
        if use not in self._costs:
            cost = round(-NAT * math.log(self.probability(rule, context)))
            self._costs[use] = min(max(cost, 1), MOST_COST)
        return self._costs[use]

    def probability(self, rule: int, context: Context) -> float:
        """How likely a rule is in a place."""
        name = self._names[rule]
        even = 1 / self._alternatives[name]
        usual = interpolated(self._by_name.get(name), rule, even)
        return interpolated(self._in_place.get(context), rule, usual)


def interpolated(counts: Counter[int] | None, rule: int, otherwise: float) -> float:
    """A relative frequency, mixed with what is expected otherwise."""
    if not counts:
        return otherwise
    kinds = len(counts)
    return (counts[rule] + kinds * otherwise) / (counts.total() + kinds)
