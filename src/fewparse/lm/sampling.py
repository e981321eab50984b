"""Samples in the making: one stream a sample, and what the model thinks at a position."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fewparse.lm.model import Completion, Guide, NextTokens, Prefix, ScoredToken, Token
from fewparse.vocabulary import Mask, Vocabulary


class Thought:
    """The log-probabilities at one position, and the answers drawn from them."""

    def __init__(self, logprobs: NDArray[np.float32], vocabulary: Vocabulary, stop: bytes) -> None:
        self.logprobs = logprobs
        self._vocabulary = vocabulary
        self._endings = vocabulary.endings(stop)
        self._best: dict[int, NextTokens] = {}

    @cached_property
    def end_logprob(self) -> float:
        """The log-probability of ending here."""
        ends = self.logprobs[self._endings]
        return float(np.logaddexp.reduce(ends)) if len(ends) else -np.inf

    def ends_with(self, token: int) -> bool:
        """Whether this token ends an output."""
        return bool((self._endings == token).any())

    def best(self, k: int, mask: Mask | None = None) -> NextTokens:
        """The best k tokens, among those of the mask where there is one."""
        if mask is None and k in self._best:
            return self._best[k]
        if mask is None:
            open_to = self.logprobs.copy()
            open_to[self._endings] = -np.inf
            ids = top(open_to, k)
            ids = ids[np.isfinite(open_to[ids])]
            complete = len(ids) == len(open_to) - len(self._endings)
        else:
            allowed = mask.copy()
            allowed[self._endings] = False
            candidates = np.flatnonzero(allowed)
            ids = candidates[top(self.logprobs[candidates], k)]
            complete = len(ids) == len(candidates)
        tokens = self._vocabulary.tokens
        answer = NextTokens(
            tuple(ScoredToken(Token(tokens[i], int(i)), float(self.logprobs[i])) for i in ids),
            self.end_logprob,
            complete,
        )
        if mask is None:
            self._best[k] = answer
        return answer


def top(values: NDArray[np.float32], k: int) -> NDArray[np.intp]:
    """The indices of the k largest values, largest first, ties by index."""
    chosen = np.sort(np.argpartition(-values, k)[:k]) if k < len(values) else np.arange(len(values))
    return chosen[np.argsort(-values[chosen], kind="stable")]


def draw(thought: Thought, temperature: float, random: np.random.Generator) -> int:
    """One token at a temperature; the best one at 0."""
    if temperature <= 0:
        return int(thought.logprobs.argmax())
    weights = np.exp((thought.logprobs - thought.logprobs.max()) / temperature, dtype=np.float64)
    cumulative = np.cumsum(weights)
    return int(np.searchsorted(cumulative, random.random() * cumulative[-1], side="right"))


class Stream:
    """One sample on its way."""

    def __init__(self, prefix: Prefix, guide: Guide | None, random: np.random.Generator) -> None:
        self.prefix = prefix
        self.random = random
        self.tokens: list[Token] = []
        self.over = False
        self._guide = guide
        self._logprobs: list[float] = []
        self._positions: list[NextTokens] = []
        self._ended = False

    @property
    def path(self) -> tuple[int, ...]:
        """The ids of the sampled tokens."""
        return tuple(token.id for token in self.tokens)

    def take(self, token: Token, thought: Thought, alternatives: int) -> None:
        """Append a drawn token, or end."""
        self._positions.append(thought.best(alternatives))
        if thought.ends_with(token.id):
            self._ended = self.over = True
            return
        self.tokens.append(token)
        self._logprobs.append(float(thought.logprobs[token.id]))
        if self._guide is not None:
            self._guide = self._guide.advance(token.bytes)
            self.over = self._guide is None

    def completion(self) -> Completion:
        """The sample as it is answered."""
        return Completion(tuple(self.tokens), tuple(self._logprobs), tuple(self._positions), self._ended)
