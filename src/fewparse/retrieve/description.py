"""Shorten the description of a domain to the lines that are most similar to the utterance."""

from collections.abc import Callable, Sequence
from functools import cached_property

from fewparse.lm.usage import Usage
from fewparse.retrieve.retriever import Pool, Retriever, fit, open_retriever

RETRIEVER = "embedding"


class DescriptionLines:
    """The lines of a description, such as one per function or table; at most `limit` of them are shown."""

    def __init__(self, pool: Pool, limit: int) -> None:
        self._pool = pool
        self._lines = pool.utterances
        self._limit = min(limit, len(self._lines))

    @cached_property
    def _retriever(self) -> Retriever:
        return open_retriever(RETRIEVER, self._pool)

    def shortened(
        self, utterance: str, fits: Callable[[Sequence[str]], bool], usage: Usage
    ) -> tuple[list[str], int]:
        """Return the lines to show, in their order, and how many were dropped because they did not fit.

        If not all are shown, they are the most similar ones to the utterance.
        """
        if self._limit == len(self._lines) and fits(self._lines):
            return list(self._lines), 0

        def in_order(chosen: Sequence[int]) -> list[str]:
            return [self._lines[i] for i in sorted(chosen)]

        best_first = self._retriever.rank(utterance, usage)[: self._limit]
        used = fit(best_first, lambda chosen: fits(in_order(chosen)))
        return in_order(used), len(best_first) - len(used)
