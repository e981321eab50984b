"""From a ranking to the examples of a prompt: how many fit into the context, and their order."""

import random
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar, get_args

Order = Literal["best-last", "best-first", "shuffled"]
ORDERS: tuple[Order, ...] = get_args(Order)
T = TypeVar("T")


def ordered(best_first: Sequence[T], order: Order, seed: int) -> list[T]:
    """Put ranked examples into the order of the prompt; the shuffle depends on the seed and their number."""
    match order:
        case "best-first":
            return list(best_first)
        case "best-last":
            return list(reversed(best_first))
        case "shuffled":
            shuffled = list(best_first)
            random.Random(seed).shuffle(shuffled)
            return shuffled


def fit(best_first: Sequence[T], fits: Callable[[Sequence[T]], bool]) -> list[T]:
    """Return as many of the best examples as fit, by binary search; the least similar are dropped first."""
    if fits(best_first):
        return list(best_first)
    low, high = 0, len(best_first) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if fits(best_first[:middle]):
            low = middle
        else:
            high = middle - 1
    return list(best_first[:low])
