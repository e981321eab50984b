"""The settings to choose among, and the values that are tried."""

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from fewparse.example import Target
from fewparse.grammar.induction.induce import MergeLevel
from fewparse.retrieve.retriever import Order

SEARCHES = (("greedy", 1), ("beam", 5), ("beam", 10), ("speculative", 5), ("speculative", 10))
SAMPLING = (("sampling", 5), ("sampling", 10), ("sampling", 20))
EXAMPLES = (5, 10, 20)
RETRIEVERS = ("embedding", "bm25")
WEIGHTS = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)
"""The values that are tried besides the present ones.

Models without log-probabilities have searches of their own. Weights of reranking cost no calls of the model.
"""


@dataclass(frozen=True)
class Configuration:
    """A value of each setting on which the candidates of a parse depend; `merge` is for induced grammars only."""

    target: Target
    retriever: str
    examples: int
    order: Order
    decoder: str
    width: int
    merge: MergeLevel | None = None

    @property
    def features(self) -> tuple[tuple[str, object], ...]:
        """The settings whose effects on accuracy are estimated; decoder and width are one."""
        search = self.decoder if self.decoder == "greedy" else (self.decoder, self.width)
        shown = self.examples > 0
        return (
            ("target", self.target),
            ("retriever", self.retriever if shown else None),
            ("examples", self.examples),
            ("order", self.order if shown else None),
            ("search", search),
            ("merge", self.merge),
        )

    @property
    def label(self) -> str:
        """The values in a few words."""
        merge = "" if self.merge is None else f", merge {self.merge}"
        examples = f"{self.examples} by {self.retriever}, {self.order}" if self.examples else "no examples"
        search = self.decoder if self.decoder == "greedy" else f"{self.decoder} {self.width}"
        return f"{self.target}, {examples}, {search}{merge}"

    @property
    def prompt_key(self) -> tuple[object, ...]:
        """Equal for configurations with the same prompts."""
        return self.target, self.retriever, self.examples, self.order


@dataclass(frozen=True)
class Space:
    """The configurations: all combinations of the values of `axes`, and the present one, `control`.

    The values of an axis are changes of one setting or, for the search, of two. `rerank` is the present weight of
    reranking, `weights` are those that are tried. `left` says what is not tried, and why.
    """

    control: Configuration
    rerank: float
    axes: Mapping[str, Sequence[Mapping[str, Any]]]
    weights: tuple[float, ...]
    left: tuple[str, ...] = field(default=())

    @cached_property
    def configurations(self) -> tuple[Configuration, ...]:
        """All configurations, those that differ only in settings without effect once; the present one is first."""
        distinct = {self.control.features: self.control}
        for changes in itertools.product(*self.axes.values()):
            changed = self.control
            for change in changes:
                changed = replace(changed, **change)
            distinct.setdefault(changed.features, changed)
        return tuple(distinct.values())

    def candidates(self, seed: int) -> list[Configuration]:
        """Return all configurations but the present one, those that differ from it in one axis among the first.

        The first ones alternate between changes of one axis and random combinations: effects of single settings
        and of combinations can be estimated from any number of them.
        """
        single = [replace(self.control, **change) for changes in self.axes.values() for change in changes]
        known = {configuration.features: configuration for configuration in self.configurations}
        near = dict.fromkeys(known[each.features] for each in single if each.features in known)
        near.pop(self.control, None)
        rng = random.Random(seed)
        ones = list(near)
        others = [each for each in self.configurations[1:] if each not in near]
        rng.shuffle(ones)
        rng.shuffle(others)
        pairs = itertools.zip_longest(ones, others[: len(ones)])
        alternating = [each for pair in pairs for each in pair if each is not None]
        return alternating + others[len(ones) :]
