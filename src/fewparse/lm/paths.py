"""Token paths behind a prompt: what every cache of them needs."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Logits = NDArray[np.float32]
Path = tuple[int, ...]
T = TypeVar("T")
PATHS_A_BATCH = 96
ROWS_A_BATCH = 128


def common(one: Path, other: Path) -> int:
    """The length of the longest common prefix."""
    for i, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return i
    return min(len(one), len(other))


def batches(items: Sequence[T], size: Callable[[T], int], limit: int) -> Iterator[list[T]]:
    """Groups of items whose sizes together stay within the limit (one alone may exceed it)."""
    group: list[T] = []
    total = 0
    for item in items:
        if group and (total + size(item) > limit or len(group) == PATHS_A_BATCH):
            yield group
            group, total = [], 0
        group.append(item)
        total += size(item)
    if group:
        yield group
