"""An evaluator by tree attention: one KV cache for a prompt and the tree of all tokens tried after it.

The attention mask lets a token see the prompt, its ancestors and itself. All new tokens of all paths are therefore
evaluated in one pass, and shared prefixes are stored once and never copied. A new prompt keeps only the tokens it
shares with the previous one, and a query for the empty path starts a new search and drops the tree: a search gets
the same logits regardless of what was evaluated before it.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fewparse.lm.evaluator import (
    MAX_ROWS_PER_BATCH,
    Logits,
    Span,
    TokenIds,
    batches,
    check_context,
    common_prefix_length,
    logprobs_along,
)
from fewparse.lm.usage import Usage

MAX_TOKENS_PER_PASS = 512
MAX_TREE_TOKENS = 2048
MAX_STORED_LOGITS = 256


class CachedModel(Protocol):
    """A model with a KV cache of one cell per token."""

    @property
    def context_length(self) -> int:
        """The maximum number of tokens of a sequence."""

    def evaluate(
        self,
        tokens: Sequence[int],
        positions: Sequence[int],
        attention: NDArray[np.bool_] | None,
        wanted: Sequence[int],
    ) -> list[Logits]:
        """Append tokens to the cache and return the logits after those whose indices are `wanted`.

        `attention` is the mask of the cells, including new ones, that each new token sees; None is causal.
        """

    def crop(self, length: int) -> None:
        """Drop all cells but the first `length`."""


@dataclass(eq=False)
class Node:
    """A token after the prompt: its cell in the cache and the logits after it, if they are there."""

    token: int
    depth: int
    parent: "Node | None"
    cell: int | None = None
    logits: Logits | None = None
    children: dict[int, "Node"] = field(default_factory=dict)


class TokenTree:
    """Logits after token paths, evaluating each shared prefix once."""

    def __init__(self, model: CachedModel) -> None:
        self._model = model
        self.context_length = model.context_length
        self._prompt: TokenIds = ()
        self._root = Node(-1, 0, None)
        self._used_cells = 0
        self._with_logits: deque[Node] = deque()

    def next_logits(self, prompt: TokenIds, paths: Sequence[TokenIds], usage: Usage) -> list[Logits]:
        """Return the logits after prompt + path for each path."""
        self._set_prompt(prompt, paths, usage)
        found: dict[TokenIds, Logits] = {}
        for path in paths:
            logits = self._nodes(path)[-1].logits
            if logits is not None:
                found[path] = logits
        missing = [path for path in dict.fromkeys(paths) if path not in found]
        for batch in batches(missing, len, MAX_TREE_TOKENS):
            rows = self._rows([(path, len(path)) for path in batch], usage)
            found |= {path: row for path, (row,) in zip(batch, rows, strict=True)}
        return [found[path] for path in paths]

    def logits_along(
        self, prompt: TokenIds, spans: Sequence[Span], usage: Usage
    ) -> Iterator[tuple[Span, list[Logits]]]:
        """Yield each distinct span with the logits before each of its following tokens."""
        self._set_prompt(prompt, [before + following for before, following in spans], usage)
        if any(not before for before, _ in spans):
            self._drop_tree()
        distinct = [span for span in dict.fromkeys(spans) if span[1]]
        for batch in batches(distinct, lambda span: len(span[1]), MAX_ROWS_PER_BATCH):
            queries = [(before + following, len(before)) for before, following in batch]
            for span, rows in zip(batch, self._rows(queries, usage), strict=True):
                yield span, rows[:-1]

    def span_logprobs(
        self, prompt: TokenIds, spans: Sequence[Span], usage: Usage
    ) -> dict[Span, tuple[float, ...]]:
        """Return the log-probability of each following token of each span."""
        return logprobs_along(self.logits_along(prompt, spans, usage))

    def _set_prompt(self, prompt: TokenIds, paths: Sequence[TokenIds], usage: Usage) -> None:
        check_context(prompt, paths, self.context_length)
        if prompt != self._prompt:
            self._evaluate_prompt(prompt, usage)
        elif () in paths:
            self._drop_tree()

    def _evaluate_prompt(self, prompt: TokenIds, usage: Usage) -> None:
        """Evaluate a new prompt, except for the prefix it shares with the current one."""
        shared = min(common_prefix_length(self._prompt, prompt), len(prompt) - 1)
        self._model.crop(shared)
        self._prompt = ()
        rows: list[Logits] = []
        for start in range(shared, len(prompt), MAX_TOKENS_PER_PASS):
            chunk = prompt[start : start + MAX_TOKENS_PER_PASS]
            rows = self._model.evaluate(chunk, range(start, start + len(chunk)), None, [len(chunk) - 1])
            usage.prefill_tokens += len(chunk)
            usage.forward_passes += 1
        self._prompt = prompt
        self._root = Node(prompt[-1], 0, None, len(prompt) - 1, rows[0])
        self._used_cells = len(prompt)
        self._with_logits.clear()

    def _drop_tree(self) -> None:
        self._model.crop(len(self._prompt))
        self._used_cells = len(self._prompt)
        self._root.children.clear()
        self._with_logits.clear()

    def _nodes(self, path: TokenIds) -> list[Node]:
        """Return the nodes of a path, from the root on, adding those that are missing to the tree."""
        node = self._root
        nodes = [node]
        for token in path:
            if token not in node.children:
                node.children[token] = Node(token, node.depth + 1, node)
            node = node.children[token]
            nodes.append(node)
        return nodes

    def _rows(self, queries: Sequence[tuple[TokenIds, int]], usage: Usage) -> list[list[Logits]]:
        """For each query, a path and a start, return the logits after path[:start] and after each later token."""
        while len(self._with_logits) > MAX_STORED_LOGITS:
            self._with_logits.popleft().logits = None
        paths = [self._nodes(path) for path, _ in queries]
        wanted = [nodes[start:] for nodes, (_, start) in zip(paths, queries, strict=True)]
        without = {node for nodes in wanted for node in nodes if node.logits is None}
        new = list(
            dict.fromkeys(node for nodes in paths for node in nodes if node.cell is None or node in without)
        )
        available = len(self._prompt) + MAX_TREE_TOKENS
        if self._used_cells + len(new) > available and self._used_cells > len(self._prompt):
            self._drop_tree()
            return self._rows(queries, usage)
        for start in range(0, len(new), MAX_TOKENS_PER_PASS):
            self._evaluate(new[start : start + MAX_TOKENS_PER_PASS], without, usage)
        return [[node.logits for node in nodes if node.logits is not None] for nodes in wanted]

    def _evaluate(self, nodes: Sequence[Node], wanted: set[Node], usage: Usage) -> None:
        """Evaluate nodes in one pass, parents before children, and store the logits of the wanted ones."""
        # If the pass is interrupted, the cache is in an unknown state: the empty prompt invalidates it.
        prompt, self._prompt = self._prompt, ()
        first = self._used_cells
        attention = np.zeros((len(nodes), first + len(nodes)), dtype=np.bool_)
        for row, node in enumerate(nodes):
            node.cell = first + row
            set_attention(attention, row, node, first, len(prompt))
        indices = [i for i, node in enumerate(nodes) if node in wanted]
        positions = [len(prompt) + node.depth - 1 for node in nodes]
        rows = self._model.evaluate([node.token for node in nodes], positions, attention, indices)
        for i, logits in zip(indices, rows, strict=True):
            nodes[i].logits = logits
            self._with_logits.append(nodes[i])
        usage.forward_tokens += len(nodes)
        usage.forward_passes += 1
        self._used_cells += len(nodes)
        self._prompt = prompt


def set_attention(attention: NDArray[np.bool_], row: int, node: Node, first: int, prompt_length: int) -> None:
    """Let a node attend to the prompt, its ancestors and itself.

    Row i of the mask is the node in cell first + i.
    """
    ancestor = node.parent
    attention[row, row + first] = True
    while ancestor is not None and ancestor.parent is not None and ancestor.cell is not None:
        if ancestor.cell >= first:
            attention[row] |= attention[ancestor.cell - first]
            return
        attention[row, ancestor.cell] = True
        ancestor = ancestor.parent
    attention[row, :prompt_length] = True
