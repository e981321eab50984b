"""Order the tokens of many spans as a tree, in batches in which no token is evaluated twice.

Each path of a batch has its own sequence in the KV cache, and a token that several paths have in common belongs
to all of their sequences. The paths are sorted: what a path has in common with any earlier path, it has in common
with the one directly before it. A batch therefore only needs the last path of the previous batch.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from fewparse.lm.evaluator import Span, TokenIds, common_prefix_length

NextIds = Mapping[TokenIds, Sequence[int]]
"""The token ids whose log-probabilities are needed, by the path that they follow."""


@dataclass
class TreeBatch:
    """The new tokens of some paths, parents before children.

    `paths[i]` has its first `shared[i]` tokens in common with the last path of the previous batch. The other
    tokens are new: `owners` has, for each path to a new token, the indices of the paths that start with it. `rows`
    of the new tokens need logits.
    """

    paths: list[TokenIds] = field(default_factory=list)
    shared: list[int] = field(default_factory=list)
    owners: dict[TokenIds, list[int]] = field(default_factory=dict)
    rows: int = 0

    def add(self, path: TokenIds, shared: int) -> None:
        """Add a path of which `shared` tokens are in the cache."""
        for node in prefixes(path, shared):
            self.owners.setdefault(node, []).append(len(self.paths))
        self.paths.append(path)
        self.shared.append(shared)


def next_ids(spans: Iterable[Span]) -> dict[TokenIds, list[int]]:
    """Return which log-probabilities the spans need."""
    needed: dict[TokenIds, dict[int, None]] = {}
    for before, following in spans:
        for i, token in enumerate(following):
            needed.setdefault(before + following[:i], {})[token] = None
    return {path: list(ids) for path, ids in needed.items()}


def tree_batches(needed: NextIds, max_tokens: int, max_rows: int, max_paths: int) -> Iterator[TreeBatch]:
    """Yield the batches after which the logits are known that are needed, except those of the empty path.

    A batch has at most `max_tokens` tokens, `max_rows` of them with logits, and `max_paths` paths, or one path.
    """
    batch, last, previous = TreeBatch(), TokenIds(), TokenIds()
    for path in longest(needed):
        new = list(prefixes(path, common_prefix_length(previous, path)))
        rows = sum(node in needed for node in new)
        if batch.paths and (
            len(batch.owners) + len(new) > max_tokens
            or batch.rows + rows > max_rows
            or len(batch.paths) == max_paths
        ):
            yield batch
            batch, last = TreeBatch(), previous
        batch.add(path, common_prefix_length(last, path))
        batch.rows += rows
        previous = path
    if batch.paths:
        yield batch


def longest(paths: Iterable[TokenIds]) -> Iterator[TokenIds]:
    """Yield the paths in order, except the empty one and those that are the start of another."""
    for path, following in pairwise([*sorted(paths), TokenIds()]):
        if path and following[: len(path)] != path:
            yield path


def prefixes(path: TokenIds, start: int) -> Iterator[TokenIds]:
    """Yield the prefixes of a path that are longer than `start`, shortest first."""
    return (path[:length] for length in range(start + 1, len(path) + 1))
