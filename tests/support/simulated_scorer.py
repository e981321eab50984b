"""A scorer whose accuracies are known, and whose parses take simulated time."""

import hashlib
from collections.abc import Callable, Sequence

from fewparse.optimize.budget import Budget
from fewparse.optimize.search import Add, Outcome
from fewparse.optimize.space import EXAMPLES, RETRIEVERS, SEARCHES, WEIGHTS, Configuration, Space
from fewparse.retrieve.retriever import ORDERS

PRESENT = Configuration("program", "embedding", 10, "best-last", "speculative", 5)
Accuracy = Callable[[Configuration, float], float]


def space_around(control: Configuration = PRESENT, rerank: float = 0.0, **axes: Sequence[object]) -> Space:
    """Return the space of a prompted model, or one of these values only."""
    values: dict[str, Sequence[object]] = axes or {
        "retriever": RETRIEVERS,
        "examples": EXAMPLES,
        "order": ORDERS,
    }
    changes = {name: [{}, *({name: value} for value in chosen)] for name, chosen in values.items()}
    if not axes:
        changes["search"] = [{"decoder": decoder, "width": width} for decoder, width in SEARCHES]
    return Space(control, rerank, changes, WEIGHTS)


class SimulatedScorer:
    """Each item is correct with the probability `accuracy(configuration, weight)`, and takes a second."""

    max_concurrency = 1

    def __init__(self, accuracy: Accuracy, seed: int = 0, seconds: float = 1.0) -> None:
        self.now = 0.0
        self.budget: Budget | None = None
        self.scored: list[tuple[Configuration, int]] = []
        self._accuracy = accuracy
        self._seed = seed
        self._seconds = seconds

    def budget_of(self, seconds: float) -> Budget:
        """Return a budget by the simulated clock."""
        self.budget = Budget(seconds, lambda: self.now)
        return self.budget

    def score(self, configurations: Sequence[Configuration], items: Sequence[int], add: Add) -> None:
        """Add an outcome for each item and configuration, until the budget is spent."""
        assert self.budget is not None
        for item in items:
            for configuration in configurations:
                self.budget.check()
                self.now += self._seconds
                self.scored.append((configuration, item))
                add(configuration, item, Outcome(self._correct(configuration, item), self._seconds))

    def _correct(self, configuration: Configuration, item: int) -> tuple[bool, ...]:
        """Return whether the item is correct at each weight: the harder it is, the less often."""
        difficulty, luck = self._uniform(item), self._uniform(item, configuration)
        threshold = 0.6 * difficulty + 0.4 * luck
        return tuple(threshold < self._accuracy(configuration, weight) for weight in WEIGHTS)

    def _uniform(self, *key: object) -> float:
        digest = hashlib.sha256(repr((self._seed, *key)).encode()).digest()
        return int.from_bytes(digest[:6]) / 2**48
