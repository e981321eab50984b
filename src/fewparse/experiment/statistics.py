"""Statistics of an experiment: figures of a cell, paired comparisons, averages over domains, breakdowns.

An item that failed counts as wrong, and one that is not finished is left out. All intervals are of 95%.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from fewparse.errors import UsageError
from fewparse.evaluate.metrics import Paired, Proportion, count
from fewparse.evaluate.summary import Summary, summarise
from fewparse.experiment.folder import Item
from fewparse.experiment.results import CellResult, Results

Interval = tuple[float, float]
Z = NormalDist().inv_cdf(0.975)
BISECTIONS = 60


def summary(cell: CellResult) -> Summary:
    """Return the figures of a cell."""
    return summarise(cell.records)


@dataclass(frozen=True)
class Comparison:
    """Two cells on the items that both have finished, item by item.

    `only_first` and `only_second` are the items that only the first or only the second cell has correct, `both`
    and `neither` the numbers of the others.
    """

    first: CellResult
    second: CellResult
    both: int
    neither: int
    only_first: tuple[Item, ...]
    only_second: tuple[Item, ...]

    @property
    def items(self) -> int:
        """The number of compared items."""
        return self.both + self.neither + len(self.only_first) + len(self.only_second)

    @property
    def difference(self) -> float:
        """The accuracy of the first cell minus that of the second; 0 without items."""
        return (len(self.only_first) - len(self.only_second)) / max(1, self.items)

    @property
    def p_value(self) -> float:
        """The p-value of McNemar's test: exact and two-sided."""
        return Paired(len(self.only_first), len(self.only_second)).p_value

    @property
    def interval(self) -> Interval:
        """Tango's score interval of the difference."""
        return paired_interval(len(self.only_first), len(self.only_second), self.items)


def compare(first: CellResult, second: CellResult) -> Comparison:
    """Compare two cells on the items that both have; raise `UsageError` if they are of different domains."""
    if first.domain != second.domain:
        raise UsageError(
            f"cells of different domains cannot be compared item by item: {first.domain} and {second.domain}",
            "Compare cells of one domain.",
        )
    correct = {item.id: record.correct_within(1) for item, record in second.finished()}
    flags = [
        (item, record.correct_within(1), correct[item.id])
        for item, record in first.finished()
        if item.id in correct
    ]
    return Comparison(
        first,
        second,
        both=sum(a and b for _, a, b in flags),
        neither=sum(not (a or b) for _, a, b in flags),
        only_first=tuple(item for item, a, b in flags if a and not b),
        only_second=tuple(item for item, a, b in flags if b and not a),
    )


def comparisons_with_best(results: Results) -> dict[str, tuple[Comparison, ...]]:
    """Return, for each domain, comparisons of its most accurate cell with the others; none for a single cell.

    Of several cells with the same accuracy, the one with the fewest requests counts as the most accurate.
    """
    found = {}
    for domain in results.domains:
        cells = [cell for cell in results.cell_results if cell.domain == domain]
        figures = [summary(cell) for cell in cells]
        order = sorted(range(len(cells)), key=lambda i: (-figures[i].accuracy.value, figures[i].requests))
        best = cells[order[0]]
        if others := [cell for cell in cells if cell is not best]:
            found[domain] = tuple(compare(best, other) for other in others)
    return found


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number by Holm's step-down method."""
    adjusted = [1.0] * len(p_values)
    largest = 0.0
    for rank, i in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = largest
    return adjusted


def paired_interval(only_first: int, only_second: int, items: int) -> Interval:
    """Return Tango's score interval of a difference of paired proportions (Statistics in Medicine 17, 1998).

    It consists of the differences that a score test does not reject; the test of the difference 0 is McNemar's.
    """
    if not items:
        return -1.0, 1.0

    def bound(b: int, c: int) -> float:
        """Return the largest difference that is not rejected, by bisection: the statistic falls with it."""
        low, high = (b - c) / items, 1.0
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            low, high = (middle, high) if tango_statistic(b, c, items, middle) >= -Z else (low, middle)
        return low

    return -bound(only_second, only_first), bound(only_first, only_second)


def tango_statistic(b: int, c: int, n: int, difference: float) -> float:
    """Return the score statistic of a difference of (b - c) / n, if the true difference is another."""
    linear = (2 * n - b + c) * difference - b - c
    root = math.sqrt(max(0.0, linear**2 + 8 * n * c * difference * (1 - difference)))
    discordant = 2 * (root - linear) / (4 * n) + difference * (1 - difference)
    excess = b - c - n * difference
    return (
        excess / math.sqrt(n * discordant)
        if discordant > 0
        else math.copysign(math.inf, excess)
        if excess
        else 0.0
    )


@dataclass(frozen=True)
class Average:
    """Cells that differ only in the domain: the accuracy in each, and over all domains.

    `label` names the options of the cells without the domain.
    """

    label: str
    cells: tuple[CellResult, ...]
    accuracies: tuple[Proportion, ...]

    @property
    def macro(self) -> float:
        """The simple average: the mean of the accuracies of the domains."""
        return sum(each.value for each in self.accuracies) / len(self.accuracies)

    @property
    def interval(self) -> Interval:
        """The interval of the simple average."""
        return mean_interval(self.accuracies)

    @property
    def micro(self) -> Proportion:
        """The share of all items, so that a domain counts by its number of items."""
        return Proportion(
            sum(each.correct for each in self.accuracies), sum(each.items for each in self.accuracies)
        )


def average(cells: Sequence[CellResult], label: str = "") -> Average:
    """Return the average over domains; raise `UsageError` unless there is one cell per domain."""
    domains = [cell.domain for cell in cells]
    if not cells or len(set(domains)) < len(domains):
        raise UsageError("an average needs cells of different domains", "Give one cell per domain.")
    return Average(label, tuple(cells), tuple(summary(cell).accuracy for cell in cells))


def averages(results: Results) -> tuple[Average, ...]:
    """Return an average for all cells that differ only in the domain; none if there is a single domain."""
    groups = cells_without(results, "domain")
    return tuple(average(group, label) for label, group in groups if len(group) > 1)


def mean_interval(proportions: Sequence[Proportion]) -> Interval:
    """Return an interval of the mean of proportions of independent samples: strata of equal weight.

    The limits of each proportion (Wilson's) stand for its variance below and above it (Zou and Donner, Statistics
    in Medicine 27, 2008). Unlike variances that are estimated from the proportions alone, they are not 0 if
    nothing or everything is correct.
    """
    mean = sum(each.value for each in proportions) / len(proportions)
    limits = [(each.value, *each.interval()) for each in proportions]
    below = math.sqrt(sum((value - low) ** 2 for value, low, _ in limits)) / len(limits)
    above = math.sqrt(sum((high - value) ** 2 for value, _, high in limits)) / len(limits)
    return max(0.0, mean - below), min(1.0, mean + above)


def canonical_minus_program(results: Results) -> tuple[Comparison, ...]:
    """Return comparisons of the target `canonical` with `program`, for cells that differ only in the target."""
    pairs = []
    for _, group in cells_without(results, "target"):
        by_target = {cell.options.get("target"): cell for cell in group}
        if "canonical" in by_target and "program" in by_target:
            pairs.append(compare(by_target["canonical"], by_target["program"]))
    return tuple(pairs)


def cells_without(results: Results, option: str) -> list[tuple[str, list[CellResult]]]:
    """Return the cells that are equal but for an option, with the label that they share."""
    groups: dict[str, list[CellResult]] = {}
    for cell in results.cell_results:
        key = {name: value for name, value in cell.options.items() if name != option}
        groups.setdefault(json.dumps(key, sort_keys=True), []).append(cell)
    return [(results.label(group[0], without=option), group) for group in groups.values()]


@dataclass(frozen=True)
class LengthBin:
    """The accuracy on items of the lengths from `low` to `high`, both included."""

    low: int
    high: int
    accuracy: Proportion


@dataclass(frozen=True)
class ByLength:
    """The accuracy by number of words of the utterance, and by number of characters of the gold program."""

    utterance_words: tuple[LengthBin, ...]
    gold_characters: tuple[LengthBin, ...]


def by_length(cell: CellResult, bins: int = 4) -> ByLength:
    """Return the accuracy by length, in at most `bins` quantile bins.

    The bins depend on the items of the domain only, so that they are the same for all of its cells. Items of one
    length are in one bin.
    """
    return ByLength(
        length_bins(cell, lambda item: len(item.utterance.split()), bins),
        length_bins(cell, lambda item: len(item.gold), bins),
    )


def length_bins(cell: CellResult, length: Callable[[Item], int], bins: int) -> tuple[LengthBin, ...]:
    """Return the accuracy in quantile bins of a length."""
    lengths = sorted(map(length, cell.items))
    uppers = (
        sorted({lengths[math.ceil(len(lengths) * i / bins) - 1] for i in range(1, bins + 1)}) if lengths else []
    )
    found = []
    low = lengths[0] if lengths else 0
    for high in uppers:
        inside = [record for item, record in cell.finished() if low <= length(item) <= high]
        found.append(LengthBin(low, high, count([record.correct_within(1) for record in inside])))
        low = min((each for each in lengths if each > high), default=high)
    return tuple(found)


@dataclass(frozen=True)
class ByGoldSeen:
    """The accuracy on items whose gold program a training example of the pool has, and on the others."""

    seen: Proportion
    unseen: Proportion


def by_gold_seen(cell: CellResult) -> ByGoldSeen:
    """Return the accuracy on items whose gold program is in the pool or not."""
    flags = [(cell.gold_seen(item), record.correct_within(1)) for item, record in cell.finished()]
    return ByGoldSeen(count([ok for seen, ok in flags if seen]), count([ok for seen, ok in flags if not seen]))
