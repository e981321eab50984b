"""The plain way to logits, for models that cannot take a tree of tokens: every sequence whole, several a batch."""

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fewparse.errors import ContextOverflow
from fewparse.lm.paths import Logits, Path, batches
from fewparse.lm.usage import Usage

TOKENS_A_PASS = 1024


class Batches(Protocol):
    """A model that evaluates sequences from their beginnings."""

    @property
    def context_length(self) -> int:
        """How many tokens it can take."""

    def evaluate_whole(self, sequences: Sequence[Path], wanted: Sequence[int]) -> NDArray[np.float32]:
        """The logits after the wanted positions of each sequence (beyond a shorter one's end: anything)."""


class WholeSequences:
    """Logits after any token path; nothing is kept, so nothing can go stale."""

    def __init__(self, model: Batches) -> None:
        self._model = model
        self.context_length = model.context_length

    def after(self, prompt: Path, tails: Sequence[Path], usage: Usage) -> list[Logits]:
        """The logits after prompt + tail for each tail."""
        asked = [(tail, len(tail)) for tail in dict.fromkeys(tails)]
        found = {tail: rows[0] for (tail, _), rows in self._rows(prompt, asked, usage)}
        return [found[tail] for tail in tails]

    def along(
        self, prompt: Path, pairs: Sequence[tuple[Path, Path]], usage: Usage
    ) -> Iterator[tuple[tuple[Path, Path], list[Logits]]]:
        """For each distinct pair of a path and what follows it, the logits before each following token."""
        asked = [(before + following, len(before)) for before, following in dict.fromkeys(pairs) if following]
        for (path, start), rows in self._rows(prompt, asked, usage):
            yield (path[:start], path[start:]), rows[:-1]

    def _rows(
        self, prompt: Path, asked: Sequence[tuple[Path, int]], usage: Usage
    ) -> Iterator[tuple[tuple[Path, int], list[Logits]]]:
        """For each path, the logits after so many of its tokens and after every one beyond them."""
        longest = len(prompt) + max((len(path) for path, _ in asked), default=0)
        if longest > self.context_length:
            raise ContextOverflow(longest, self.context_length)
        for group in batches(asked, lambda each: len(prompt) + len(each[0]), TOKENS_A_PASS):
            ranges = [range(len(prompt) + start - 1, len(prompt) + len(path)) for path, start in group]
            wanted = sorted(set().union(*ranges))
            logits = self._model.evaluate_whole([prompt + path for path, _ in group], wanted)
            usage.prefill_tokens += len(group) * len(prompt)
            usage.forward_tokens += sum(len(path) for path, _ in group)
            usage.forward_passes += 1
            for each, places, rows in zip(group, ranges, logits, strict=True):
                yield each, [rows[wanted.index(place)] for place in places]
