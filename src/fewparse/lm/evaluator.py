"""Logits after token paths: the protocol of evaluators, what they share, and the simplest one, without a cache.

A path is a sequence of token ids after the prompt. Evaluators with a KV cache are in `prefix_cache.py` (sequences
of llama.cpp) and `token_tree.py` (tree attention in transformers).
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from fewparse.errors import ContextOverflow, ModelError
from fewparse.lm.usage import Usage

T = TypeVar("T")
Logits = NDArray[np.float32]
TokenIds = tuple[int, ...]
Span = tuple[TokenIds, TokenIds]
"""A path, and the token ids that follow it."""
SpanLogprobs = dict[Span, tuple[float, ...]]
"""The log-probability of each following token of each span."""

MAX_PATHS_PER_BATCH = 96
MAX_ROWS_PER_BATCH = 128
MAX_TOKENS_PER_PASS = 1024


class Evaluator(Protocol):
    """Computes logits after token paths, evaluating as few tokens as it can."""

    @property
    def context_length(self) -> int:
        """The maximum number of tokens of a prompt and a path together; more raise `ContextOverflow`."""

    def next_logits(self, prompt: TokenIds, paths: Sequence[TokenIds], usage: Usage) -> list[Logits]:
        """Return the logits after prompt + path for each path."""

    def logits_along(
        self, prompt: TokenIds, spans: Sequence[Span], usage: Usage
    ) -> Iterator[tuple[Span, list[Logits]]]:
        """Yield each distinct span with the logits before each of its following tokens."""

    def span_logprobs(self, prompt: TokenIds, spans: Sequence[Span], usage: Usage) -> SpanLogprobs:
        """Return the log-probability of each following token of each span, for spans that no search continues."""


class StatelessModel(Protocol):
    """A model that evaluates whole sequences."""

    @property
    def context_length(self) -> int:
        """The maximum number of tokens of a sequence."""

    def evaluate_whole(self, sequences: Sequence[TokenIds], positions: Sequence[int]) -> NDArray[np.float32]:
        """Return the logits after these positions of each sequence (undefined beyond the end of a shorter one)."""


class WholeSequences:
    """Evaluates every sequence from its start, several per batch, for models without tree attention."""

    def __init__(self, model: StatelessModel) -> None:
        self._model = model
        self.context_length = model.context_length

    def next_logits(self, prompt: TokenIds, paths: Sequence[TokenIds], usage: Usage) -> list[Logits]:
        """Return the logits after prompt + path for each path."""
        queries = [(path, len(path)) for path in dict.fromkeys(paths)]
        found = {path: rows[0] for (path, _), rows in self._rows(prompt, queries, usage)}
        return [found[path] for path in paths]

    def logits_along(
        self, prompt: TokenIds, spans: Sequence[Span], usage: Usage
    ) -> Iterator[tuple[Span, list[Logits]]]:
        """Yield each distinct span with the logits before each of its following tokens."""
        queries = [(before + following, len(before)) for before, following in dict.fromkeys(spans) if following]
        for (path, start), rows in self._rows(prompt, queries, usage):
            yield (path[:start], path[start:]), rows[:-1]

    def span_logprobs(self, prompt: TokenIds, spans: Sequence[Span], usage: Usage) -> SpanLogprobs:
        """Return the log-probability of each following token of each span."""
        return logprobs_along(self.logits_along(prompt, spans, usage))

    def _rows(
        self, prompt: TokenIds, queries: Sequence[tuple[TokenIds, int]], usage: Usage
    ) -> Iterator[tuple[tuple[TokenIds, int], list[Logits]]]:
        """Yield each query, a path and a start, with the logits after path[:start] and after each later token."""
        check_context(prompt, [path for path, _ in queries], self.context_length)
        for batch in batches(queries, lambda query: len(prompt) + len(query[0]), MAX_TOKENS_PER_PASS):
            ranges = [range(len(prompt) + start - 1, len(prompt) + len(path)) for path, start in batch]
            positions = sorted(set().union(*ranges))
            logits = self._model.evaluate_whole([prompt + path for path, _ in batch], positions)
            usage.prefill_tokens += len(batch) * len(prompt)
            usage.forward_tokens += sum(len(path) for path, _ in batch)
            usage.forward_passes += 1
            for query, own, rows in zip(batch, ranges, logits, strict=True):
                yield query, [rows[positions.index(position)] for position in own]


def check_context(prompt: TokenIds, paths: Sequence[TokenIds], context_length: int) -> None:
    """Raise `ContextOverflow` if the prompt and the longest path exceed the context."""
    needed = len(prompt) + max(map(len, paths), default=0)
    if needed > context_length:
        raise ContextOverflow(needed, context_length)


def common_prefix_length(one: TokenIds, other: TokenIds) -> int:
    """Return the length of the longest common prefix."""
    for i, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return i
    return min(len(one), len(other))


def batches(items: Sequence[T], size: Callable[[T], int], limit: int) -> Iterator[list[T]]:
    """Group consecutive items so that the sizes of a batch add up to the limit at most, or it has one item."""
    batch: list[T] = []
    total = 0
    for item in items:
        if batch and (total + size(item) > limit or len(batch) == MAX_PATHS_PER_BATCH):
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += size(item)
    if batch:
        yield batch


def logprobs_along(rows_by_span: Iterable[tuple[Span, list[Logits]]]) -> SpanLogprobs:
    """Return the log-probabilities of the following tokens of spans from the logits before each of them."""
    return {
        span: tuple(token_logprobs(row, (token,))[0] for row, token in zip(rows, span[1], strict=True))
        for span, rows in rows_by_span
    }


def token_logprobs(row: Logits, ids: Sequence[int]) -> list[float]:
    """Return the log-probabilities of some tokens from the logits of all; errors as in `log_softmax`."""
    shifted = shifted_to_zero(row)
    chosen = shifted[list(ids)]
    np.exp(shifted, out=shifted)
    return [float(logprob) for logprob in chosen - np.log(shifted.sum())]


def log_softmax(row: Logits) -> Logits:
    """Return log-probabilities from logits; -inf for a token with the logit -inf, which a model may give.

    Raises `ModelError` if a logit is NaN or infinite, or all are -inf.
    """
    shifted = shifted_to_zero(row)
    shifted -= np.log(np.exp(shifted).sum())
    return shifted


def shifted_to_zero(row: Logits) -> Logits:
    """Return logits minus their maximum, which shows whether all are finite; raise `ModelError` if it is not."""
    largest = row.max()
    if not math.isfinite(largest):
        raise ModelError(
            f"the model computed logits that are not finite (the largest is {largest})",
            "The file of the model or of its adapter may be damaged: fewparse models check PATH",
        )
    with np.errstate(over="ignore"):  # a difference beyond the range of the type is -inf
        shifted: Logits = row - largest
    return shifted
