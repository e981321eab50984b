"""Sampling from next-token distributions: the distribution at one position, and samples being generated."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fewparse.lm.model import Completion, Guide, NextTokens, Prefix, ScoredToken, Token
from fewparse.vocabulary import Mask, Vocabulary


class NextTokenDistribution:
    """The log-probabilities of all tokens at one position; `stop` defines which tokens end the output."""

    def __init__(self, logprobs: NDArray[np.float32], vocabulary: Vocabulary, stop: bytes) -> None:
        self.logprobs = logprobs
        self._vocabulary = vocabulary
        self._endings = vocabulary.endings(stop)
        self._best: dict[int, NextTokens] = {}
        self._cumulative: dict[float, NDArray[np.float64]] = {}

    @cached_property
    def end_logprob(self) -> float:
        """The log-probability that the output ends here."""
        ends = self.logprobs[self._endings]
        return float(np.logaddexp.reduce(ends)) if len(ends) else -np.inf

    def ends_with(self, token: int) -> bool:
        """Return whether this token ends the output."""
        return bool((self._endings == token).any())

    def best(self, k: int, mask: Mask | None = None) -> NextTokens:
        """Return the k most probable tokens that do not end the output, among those allowed by the mask."""
        if mask is None and k in self._best:
            return self._best[k]
        if mask is None:
            continuing = self.logprobs.copy()
            continuing[self._endings] = -np.inf
            ids = top(continuing, k)
            ids = ids[np.isfinite(continuing[ids])]
            complete = len(ids) == len(continuing) - len(self._endings)
        else:
            allowed = mask.copy()
            allowed[self._endings] = False
            candidates = np.flatnonzero(allowed)
            ids = candidates[top(self.logprobs[candidates], k)]
            complete = len(ids) == len(candidates)
        tokens = self._vocabulary.tokens
        result = NextTokens(
            tuple(ScoredToken(Token(tokens[i], int(i)), float(self.logprobs[i])) for i in ids),
            self.end_logprob,
            complete,
        )
        if mask is None:
            self._best[k] = result
        return result

    def draw(self, temperature: float, random: np.random.Generator) -> int:
        """Draw a token id at a temperature; the most probable one at 0."""
        if temperature <= 0:
            return int(self.logprobs.argmax())
        if temperature not in self._cumulative:
            weights = np.exp((self.logprobs - self.logprobs.max()) / temperature, dtype=np.float64)
            self._cumulative[temperature] = np.cumsum(weights)
        cumulative = self._cumulative[temperature]
        return int(np.searchsorted(cumulative, random.random() * cumulative[-1], side="right"))


def top(values: NDArray[np.float32], k: int) -> NDArray[np.intp]:
    """Return the indices of the k largest values, largest first, ties by index."""
    chosen = np.sort(np.argpartition(-values, k)[:k]) if k < len(values) else np.arange(len(values))
    return chosen[np.argsort(-values[chosen], kind="stable")]


class PartialSample:
    """A sample being generated, with its own random number generator."""

    def __init__(self, prefix: Prefix, guide: Guide | None, random: np.random.Generator) -> None:
        self.prefix = prefix
        self.random = random
        self.tokens: list[Token] = []
        self.finished = False
        self._guide = guide
        self._logprobs: list[float] = []
        self._positions: list[NextTokens] = []
        self._ended = False

    @property
    def token_ids(self) -> tuple[int, ...]:
        """The ids of the sampled tokens."""
        return tuple(token.id for token in self.tokens)

    def append(self, token: Token, distribution: NextTokenDistribution, alternatives: int) -> None:
        """Append a token drawn from a distribution; finish if it ends the output or the guide stops there."""
        self._positions.append(distribution.best(alternatives))
        if distribution.ends_with(token.id):
            self._ended = self.finished = True
            return
        self.tokens.append(token)
        self._logprobs.append(float(distribution.logprobs[token.id]))
        if self._guide is not None:
            self._guide = self._guide.advance(token.bytes)
            self.finished = self._guide is None

    def completion(self) -> Completion:
        """Return the sample so far as a completion."""
        return Completion(tuple(self.tokens), tuple(self._logprobs), tuple(self._positions), self._ended)
