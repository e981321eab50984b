"""How the examples of a domain can be varied, so that a model learns what stays the same."""

from typing import Protocol

import numpy as np

from fewparse.constrain.cfg import CfgConstraint
from fewparse.domains.domain import Domain
from fewparse.example import TARGETS, Example, Target
from fewparse.retrieve.folding import words_of_rules
from fewparse.tune.names import Names
from fewparse.tune.quotations import Quotations
from fewparse.vocabulary import BYTES


class Variation(Protocol):
    """Makes examples of examples."""

    def vary(self, example: Example, random: np.random.Generator) -> Example:
        """Another example that is as true, or the same one."""


def variation(domain: Domain) -> Variation | None:
    """By the kinds of words that the domain folds, else by what its programs quote; not without a grammar."""
    if domain.language is None:
        return None
    targets: tuple[Target, ...] = TARGETS if domain.translator else ("program",)
    sides = {target: CfgConstraint(domain.side(target), BYTES, "", (), "") for target in targets}

    def admits(example: Example) -> bool:
        said = ((side, example.output(target).encode()) for target, side in sides.items())
        return all(side.accepts(text) for side, text in said if text)

    if fold := domain.table.retrieve.fold:
        return Names(words_of_rules(domain.grammar, fold), admits)
    return Quotations(domain.examples, admits)
