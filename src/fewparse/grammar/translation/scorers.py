"""Scorers: the cost of a rule in its context, which decides between the derivations of a text."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Literal, Protocol

from fewparse.grammar.synchronous import SynchronousGrammar

Context = tuple[int, int] | None
"""The parent rule and the node's index among the symbols of its program side; None at the root."""

ScorerName = Literal["shortest", "learned"]

RuleUse = tuple[int, Context]
"""A rule and the context in which it was used."""

COST_PER_NAT = 1000
MAX_COST = 1_000_000


class Scorer(Protocol):
    """Costs of rules in their contexts; ties are broken by the length of the text, then by the text."""

    contextual: bool
    """Whether the cost depends on the context."""

    def cost(self, rule: int, context: Context) -> int:
        """Return the cost of a rule, at least 0."""


class Shortest:
    """All rules are free, so that only the length of the text counts."""

    contextual = False

    def cost(self, rule: int, context: Context) -> int:
        """Return 0."""
        return 0


class FewestRules:
    """Every rule costs 1, so that the smallest derivation is the best."""

    contextual = False

    def cost(self, rule: int, context: Context) -> int:
        """Return 1."""
        return 1


class Learned:
    """Negative log-probability of a rule in its context, in thousandths of a nat, estimated from derivations.

    Witten-Bell smoothing: the probability given the context backs off to the probability given the rule's
    nonterminal, and that to a uniform distribution over the rules of the nonterminal.
    """

    contextual = True

    def __init__(self, grammar: SynchronousGrammar, uses: Iterable[RuleUse]) -> None:
        self._names = [rule.name for rule in grammar.rules]
        self._alternatives = Counter(self._names)
        self._in_context: dict[Context, Counter[int]] = defaultdict(Counter)
        self._by_name: dict[str, Counter[int]] = defaultdict(Counter)
        for rule, context in uses:
            self._in_context[context][rule] += 1
            self._by_name[self._names[rule]][rule] += 1
        self._costs: dict[RuleUse, int] = {}

    def cost(self, rule: int, context: Context) -> int:
        """Return the rounded negative log-probability, between 1 and `MAX_COST`."""
        use = rule, context
        if use not in self._costs:
            cost = round(-COST_PER_NAT * math.log(self.probability(rule, context)))
            self._costs[use] = min(max(cost, 1), MAX_COST)
        return self._costs[use]

    def probability(self, rule: int, context: Context) -> float:
        """Return the smoothed probability of a rule in a context."""
        name = self._names[rule]
        uniform = 1 / self._alternatives[name]
        given_name = witten_bell(self._by_name.get(name), rule, uniform)
        return witten_bell(self._in_context.get(context), rule, given_name)


def witten_bell(counts: Counter[int] | None, rule: int, backoff: float) -> float:
    """Return the relative frequency of a rule, interpolated with the back-off probability."""
    if not counts:
        return backoff
    kinds = len(counts)
    return (counts[rule] + kinds * backoff) / (counts.total() + kinds)
