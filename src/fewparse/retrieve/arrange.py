"""From a ranking to the examples of a prompt: how many fit, and in which order they stand."""

import random
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar, get_args

Order = Literal["best-last", "best-first", "shuffled"]
ORDERS: tuple[Order, ...] = get_args(Order)
T = TypeVar("T")


def arrange(best_first: Sequence[T], order: Order, seed: int) -> list[T]:
    """The order of examples in the prompt; the shuffle is the same for the same number of examples."""
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
    """As many of the best as fit, the least similar dropped first."""
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
