"""One KV cache for a prompt and the tree of all tokens that are tried behind it.

A token sees the prompt, its ancestors and itself, which a mask says; so all new tokens of all paths are evaluated
in one pass, and what paths share is there once and never copied. A new prompt keeps what it shares with the last
one, and a question about the bare prompt begins a new search: a search gives the same scores whatever was asked
before it.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fewparse.errors import ContextOverflow
from fewparse.lm.paths import ROWS_A_BATCH, Logits, Path, batches, common
from fewparse.lm.usage import Usage

TOKENS_A_PASS = 512
ROOM_FOR_TAILS = 2048
REMEMBERED = 256


class Cells(Protocol):
    """A model with a KV cache of cells, one a token."""

    @property
    def context_length(self) -> int:
        """How many tokens it can take."""

    def evaluate(
        self,
        tokens: Sequence[int],
        positions: Sequence[int],
        seen: NDArray[np.bool_] | None,
        wanted: Sequence[int],
    ) -> list[Logits]:
        """Append tokens, each seeing these cells (None: all before it); the logits after those wanted."""

    def crop(self, length: int) -> None:
        """Forget all cells but the first."""


@dataclass(eq=False)
class Node:
    """A token behind the prompt: where it lies in the cache, and the logits after it, where they are known."""

    token: int
    depth: int
    parent: "Node | None"
    cell: int | None = None
    logits: Logits | None = None
    children: dict[int, "Node"] = field(default_factory=dict)


class TokenTree:
    """Logits after any token path, evaluating each shared part once."""

    def __init__(self, model: Cells) -> None:
        self._model = model
        self.context_length = model.context_length
        self._prompt: Path = ()
        self._root = Node(-1, 0, None)
        self._used = 0
        self._remembered: deque[Node] = deque()

    def after(self, prompt: Path, tails: Sequence[Path], usage: Usage) -> list[Logits]:
        """The logits after prompt + tail for each tail; all that is new is evaluated together."""
        self._set_prompt(prompt, tails, usage)
        found: dict[Path, Logits] = {}
        for tail in tails:
            logits = self._line(tail)[-1].logits
            if logits is not None:
                found[tail] = logits
        missing = [tail for tail in dict.fromkeys(tails) if tail not in found]
        for group in batches(missing, len, ROOM_FOR_TAILS):
            rows = self._rows([(tail, len(tail)) for tail in group], usage)
            found |= {tail: row for tail, (row,) in zip(group, rows, strict=True)}
        return [found[tail] for tail in tails]

    def along(
        self, prompt: Path, pairs: Sequence[tuple[Path, Path]], usage: Usage
    ) -> Iterator[tuple[tuple[Path, Path], list[Logits]]]:
        """For each distinct pair of a path and what follows it, the logits before each following token."""
        self._set_prompt(prompt, [before + following for before, following in pairs], usage)
        if any(not before for before, _ in pairs):
            self._forget_tails()
        distinct = [pair for pair in dict.fromkeys(pairs) if pair[1]]
        for group in batches(distinct, lambda pair: len(pair[1]), ROWS_A_BATCH):
            asked = [(before + following, len(before)) for before, following in group]
            for pair, rows in zip(group, self._rows(asked, usage), strict=True):
                yield pair, rows[:-1]

    def _set_prompt(self, prompt: Path, tails: Sequence[Path], usage: Usage) -> None:
        longest = len(prompt) + max(map(len, tails), default=0)
        if longest > self.context_length:
            raise ContextOverflow(longest, self.context_length)
        if prompt != self._prompt:
            self._begin_prompt(prompt, usage)
        elif () in tails:
            self._forget_tails()

    def _begin_prompt(self, prompt: Path, usage: Usage) -> None:
        """Evaluate a new prompt, keeping only what it shares with the present one."""
        shared = min(common(self._prompt, prompt), len(prompt) - 1)
        self._model.crop(shared)
        self._prompt = ()
        rows: list[Logits] = []
        for start in range(shared, len(prompt), TOKENS_A_PASS):
            chunk = prompt[start : start + TOKENS_A_PASS]
            rows = self._model.evaluate(chunk, range(start, start + len(chunk)), None, [len(chunk) - 1])
            usage.prefill_tokens += len(chunk)
            usage.forward_passes += 1
        self._prompt = prompt
        self._root = Node(prompt[-1], 0, None, len(prompt) - 1, rows[0])
        self._used = len(prompt)
        self._remembered.clear()

    def _forget_tails(self) -> None:
        self._model.crop(len(self._prompt))
        self._used = len(self._prompt)
        self._root.children.clear()
        self._remembered.clear()

    def _line(self, tail: Path) -> list[Node]:
        """The nodes of a path from the prompt's end on; those that are not there yet are made."""
        node = self._root
        line = [node]
        for token in tail:
            if token not in node.children:
                node.children[token] = Node(token, node.depth + 1, node)
            node = node.children[token]
            line.append(node)
        return line

    def _rows(self, asked: Sequence[tuple[Path, int]], usage: Usage) -> list[list[Logits]]:
        """For each path, the logits after so many of its tokens and after every one beyond them."""
        while len(self._remembered) > REMEMBERED:
            self._remembered.popleft().logits = None
        lines = [self._line(tail) for tail, _ in asked]
        wanted = [line[start:] for line, (_, start) in zip(lines, asked, strict=True)]
        unknown = {node for nodes in wanted for node in nodes if node.logits is None}
        new = list(dict.fromkeys(node for line in lines for node in line if node.cell is None or node in unknown))
        room = len(self._prompt) + ROOM_FOR_TAILS
        if self._used + len(new) > room and self._used > len(self._prompt):
            self._forget_tails()
            return self._rows(asked, usage)
        for start in range(0, len(new), TOKENS_A_PASS):
            self._evaluate(new[start : start + TOKENS_A_PASS], unknown, usage)
        return [[node.logits for node in nodes if node.logits is not None] for nodes in wanted]

    def _evaluate(self, nodes: Sequence[Node], unknown: set[Node], usage: Usage) -> None:
        """Evaluate nodes, parents before children, as one pass."""
        # Should the pass be interrupted, nothing in the cache counts any more.
        prompt, self._prompt = self._prompt, ()
        first = self._used
        seen = np.zeros((len(nodes), first + len(nodes)), dtype=np.bool_)
        for row, node in enumerate(nodes):
            node.cell = first + row
            look(seen, row, node, first, len(prompt))
        asking = [i for i, node in enumerate(nodes) if node in unknown]
        positions = [len(prompt) + node.depth - 1 for node in nodes]
        rows = self._model.evaluate([node.token for node in nodes], positions, seen, asking)
        for i, logits in zip(asking, rows, strict=True):
            nodes[i].logits = logits
            self._remembered.append(nodes[i])
        usage.forward_tokens += len(nodes)
        usage.forward_passes += 1
        self._used += len(nodes)
        self._prompt = prompt


def look(seen: NDArray[np.bool_], row: int, node: Node, first: int, prompt: int) -> None:
    """Let a node see the prompt, its ancestors and itself; rows from cell `first` on are those of this pass."""
    above = node.parent
    seen[row, row + first] = True
    while above is not None and above.parent is not None and above.cell is not None:
        if above.cell >= first:
            seen[row] |= seen[above.cell - first]
            return
        seen[row, above.cell] = True
        above = above.parent
    seen[row, :prompt] = True
