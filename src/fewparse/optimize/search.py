"""Successive halving over configurations, and the comparison of the best one with the present settings.

All configurations are scored on a few items; the better half, and the present one, on twice as many, and so on
until the time is spent. Which half is better is estimated from all results so far (see `effects`): a promising
combination may enter that was not tried yet. Then the best one and the present one are compared on fresh items.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from statistics import median_low
from typing import NamedTuple, Protocol

from fewparse.evaluate.metrics import Paired, pair
from fewparse.optimize.budget import Budget, OutOfTime
from fewparse.optimize.effects import Observation, estimate
from fewparse.optimize.space import Configuration, Space

FIRST_ITEMS = 6
SEARCH_SHARE = 0.8
"""The share of the time for the search; the rest is for the comparison on fresh items."""
TIE = 0.005
"""Configurations with estimates that differ by less are level: the fastest of them is preferred."""
P_FRESH, P_SAME = 0.2, 0.05
"""The largest p-value of the sign test at which settings are replaced: with fresh items, and with none."""


class Outcome(NamedTuple):
    """The result of a configuration on an item: is it correct at each weight of reranking; its seconds."""

    correct: tuple[bool, ...]
    seconds: float


Add = Callable[[Configuration, int, Outcome], None]


class Scorer(Protocol):
    """Parses items."""

    @property
    def max_concurrency(self) -> int:
        """How many items are parsed at the same time."""

    def score(self, configurations: Sequence[Configuration], items: Sequence[int], add: Add) -> None:
        """Call `add` for each item and configuration, item by item; raise `OutOfTime` once the budget is spent."""


class Choice(NamedTuple):
    """A configuration and a weight of reranking."""

    configuration: Configuration
    rerank: float


@dataclass(frozen=True)
class Comparison:
    """A choice and the present settings on the same items: all that both have parsed, and the fresh ones of them.

    `correct` and `control_correct` are of the fresh items, or of all if none is fresh.
    """

    all: Paired
    fresh: Paired
    items: int
    fresh_items: int
    correct: int
    control_correct: int

    @property
    def adopted(self) -> bool:
        """Whether the choice replaces the present settings.

        It must be better, by the sign test over all items; and not worse on the fresh items. Without fresh items,
        on which the choice does not depend, the test is stricter.
        """
        if self.all.only_first <= self.all.only_second or self.fresh.only_first < self.fresh.only_second:
            return False
        return self.all.p_value <= (P_FRESH if self.fresh_items else P_SAME)


class Rung(NamedTuple):
    """A step of the search: how many configurations were parsed on how many items."""

    configurations: int
    items: int


@dataclass
class Found:
    """The result of a search.

    `best` is the most accurate choice, `comparison` compares it with the present settings; both are None if there
    was no time to parse anything. `outcomes` are by configuration and item.
    """

    control: Choice
    outcomes: dict[Configuration, dict[int, Outcome]]
    rungs: list[Rung] = field(default_factory=list)
    best: Choice | None = None
    comparison: Comparison | None = None
    completed: bool = False

    @property
    def chosen(self) -> Choice:
        """The settings to use."""
        adopted = self.comparison is not None and self.comparison.adopted
        return self.best if adopted and self.best is not None else self.control


class Search:
    """A search over a space: `items` are searched on, in order, `fresh` are kept for the comparison."""

    def __init__(
        self,
        space: Space,
        scorer: Scorer,
        items: Sequence[int],
        fresh: Sequence[int],
        budget: Budget,
        seed: int = 0,
        report: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._space = space
        self._scorer = scorer
        self._items = list(items)
        self._fresh = list(fresh)
        self._budget = budget
        self._seed = seed
        self._report = report
        self._outcomes: dict[Configuration, dict[int, Outcome]] = {}
        self._live: list[Configuration] = []

    def run(self) -> Found:
        """Search until the time or the items are spent; compare the best configuration with the present one."""
        control = Choice(self._space.control, self._space.rerank)
        found = Found(control, self._outcomes)
        completed = True
        try:
            with self._budget.limited_to(SEARCH_SHARE if self._fresh else 1.0):
                self._halve(found)
        except OutOfTime:
            completed = False
        if not self._outcomes.get(control.configuration):
            return found
        alternatives = [self._best(), Choice(control.configuration, self._weight(control.configuration))]
        parsed = list(dict.fromkeys([control.configuration, *(each.configuration for each in alternatives)]))
        if self._fresh:
            self._report(f"the best and the present settings on up to {len(self._fresh)} fresh examples")
        try:
            self._score(parsed, self._fresh)
        except OutOfTime:
            completed = False
        for choice in dict.fromkeys(alternatives):
            if choice != control and (found.best is None or found.chosen != found.best):
                comparison = self._compare(choice, control)
                if found.best is None or comparison.adopted:
                    found.best, found.comparison = choice, comparison
        found.completed = completed
        return found

    def _halve(self, found: Found) -> None:
        """Run the rungs of successive halving."""
        control = self._space.control
        count = min(FIRST_ITEMS, len(self._items))
        self._report(f"the present settings on {count} examples")
        self._score([control], self._items[:count])
        candidates = self._space.candidates(self._seed)
        live = candidates[: self._affordable(len(candidates))]
        if not live:  # only the weight of reranking is searched
            count = len(self._items)
        while True:
            self._live = [control, *live]
            found.rungs.append(Rung(len(self._live), count))
            self._report(f"{len(self._live)} configurations on {count} examples")
            self._score(self._live, self._items[:count])
            if count == len(self._items):
                return
            estimates = self._estimates()
            ranked = sorted(self._space.configurations[1:], key=lambda each: -estimates[each])
            count = min(2 * count, len(self._items))
            live = ranked[: self._survivors(len(live), ranked, count)]

    def _affordable(self, most: int) -> int:
        """Return how many configurations the time allows to start with, if each takes as long as the present one.

        A rung takes about as long as the first: half of the configurations on twice as many items. The clock is
        not read, so that a resumed run starts with the same ones.
        """
        seconds = self._seconds(self._space.control)
        parses = self._budget.allowed / seconds if seconds else float("inf")
        count = 1
        while count < most and (count + 2) * FIRST_ITEMS * (count + 1).bit_length() <= parses:
            count += 1
        return min(count, most)

    def _survivors(self, before: int, ranked: Sequence[Configuration], items: int) -> int:
        """Return how many configurations go on: half, or as many as can be scored on these items in the time."""
        count = (before + 1) // 2
        while count > 1:
            missing = sum(
                (items - len(self._outcomes.get(each, {}))) * self._seconds(each)
                for each in [self._space.control, *ranked[:count]]
            )
            if missing <= self._budget.left:
                break
            count -= 1
        return count

    def _seconds(self, configuration: Configuration) -> float:
        """Return the mean time of an item; of a configuration that was not tried, that of all."""
        outcomes = self._outcomes.get(configuration) or {
            key: outcome for each in self._outcomes.values() for key, outcome in enumerate(each.values())
        }
        return sum(outcome.seconds for outcome in outcomes.values()) / max(1, len(outcomes))

    def _score(self, configurations: Sequence[Configuration], items: Sequence[int]) -> None:
        """Score configurations on those of the items that they miss, item by item."""

        def add(configuration: Configuration, item: int, outcome: Outcome) -> None:
            self._outcomes.setdefault(configuration, {})[item] = outcome

        def missing(item: int) -> tuple[Configuration, ...]:
            return tuple(each for each in configurations if item not in self._outcomes.get(each, {}))

        for wanted, group in groupby(items, missing):
            same = list(group)
            for start in range(0, len(same), self._scorer.max_concurrency):
                if wanted:
                    self._scorer.score(wanted, same[start : start + self._scorer.max_concurrency], add)

    def _estimates(self) -> dict[Configuration, float]:
        """Return the estimated accuracy of all configurations, each at the best common weight of its target."""
        observations = []
        for configuration, outcomes in self._outcomes.items():
            weight = self._space.weights.index(self._weight(configuration))
            observations += [
                Observation(configuration, item, outcome.correct[weight]) for item, outcome in outcomes.items()
            ]
        return estimate(observations, self._space.configurations)

    def _weight(self, configuration: Configuration) -> float:
        """Return the best weight over all results with the target of a configuration.

        Of level weights, it is the present one or, if that is not among them, the middle.
        """
        correct = [0] * len(self._space.weights)
        for each, outcomes in self._outcomes.items():
            if each.target == configuration.target:
                for outcome in outcomes.values():
                    correct = [total + flag for total, flag in zip(correct, outcome.correct, strict=True)]
        best = max(correct)
        level = [w for w, total in zip(self._space.weights, correct, strict=True) if total == best]
        return self._space.rerank if self._space.rerank in level else median_low(level)

    def _best(self) -> Choice:
        """Return the best configuration of the last rung, the fastest of those that are level, and its weight."""
        estimates = self._estimates()
        parsed = [each for each in self._live if each in self._outcomes] or [self._space.control]
        highest = max(estimates[each] for each in parsed)
        level = [each for each in parsed if estimates[each] > highest - TIE]
        best = self._space.control if self._space.control in level else min(level, key=self._seconds)
        return Choice(best, self._weight(best))

    def _compare(self, choice: Choice, control: Choice) -> Comparison:
        """Compare a choice with the present settings on all items that both have parsed."""
        fresh = set(self._fresh)
        first, second = self._flags(choice), self._flags(control)
        common = [item for item in first if item in second]
        kept = [item for item in common if item in fresh]
        counted = kept or common
        return Comparison(
            all=pair([first[i] for i in common], [second[i] for i in common]),
            fresh=pair([first[i] for i in kept], [second[i] for i in kept]),
            items=len(common),
            fresh_items=len(kept),
            correct=sum(first[i] for i in counted),
            control_correct=sum(second[i] for i in counted),
        )

    def _flags(self, choice: Choice) -> dict[int, bool]:
        """Return whether each item that a choice has parsed is correct."""
        weight = self._space.weights.index(choice.rerank)
        return {i: outcome.correct[weight] for i, outcome in self._outcomes[choice.configuration].items()}
