"""A small exact language model, as an oracle for search: a third-order Markov chain with random logits.

The logits depend on the last three tokens and on a seed; everything is computed in the simplest way.
"""

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from fewparse.lm.model import (
    Completion,
    GrammarNotation,
    Guide,
    NextTokens,
    Prefix,
    Sampling,
    ScoredToken,
    Token,
)
from fewparse.lm.usage import Usage
from fewparse.prompt import Prompt
from fewparse.vocabulary import Mask, Vocabulary
from support.prompts import plain_prompt

LONGER = [b"ab", b"bc", b"\nb", b""]
END = 256 + LONGER.index(b"")
TOKENS = [bytes([b]) for b in range(256)] + LONGER
FAVOURED = [*b"abc\n", 256, 257, END]
ANYTHING = plain_prompt("anything")


class ToyModel:
    """A model whose tokens are all single bytes, a few longer ones, and one end token."""

    name = "toy"
    max_concurrency = 1
    local = True
    supports_prefix = True
    supports_logprobs = True
    supports_grammar = False
    grammar_notation: GrammarNotation = "gbnf"
    context_length = 64

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self._rows: dict[tuple[int, ...], list[float]] = {}

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(TOKENS, [END])

    def logprobs(self, context: Sequence[int]) -> list[float]:
        """Return the log-probability of every token after these."""
        last = tuple(context[-3:])
        if last not in self._rows:
            logits = np.random.default_rng([self.seed, 1 + len(last), *last]).normal(size=len(TOKENS))
            logits[FAVOURED] += 5
            self._rows[last] = [float(x) for x in logits - np.logaddexp.reduce(logits)]
        return self._rows[last]

    def tokenize(self, text: str) -> Prefix:
        return tuple(Token(bytes([b]), b) for b in text.encode())

    def prompt_length(self, prompt: Prompt) -> int:
        return len(prompt.text.encode())

    def next_tokens(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        k: int,
        stop: bytes,
        usage: Usage,
        allowed: Sequence[Mask] | None = None,
    ) -> list[NextTokens]:
        usage.requests += len(prefixes)
        masks: Sequence[Mask | None] = allowed if allowed is not None else [None] * len(prefixes)
        rows = [self.logprobs(self._context(prompt, prefix)) for prefix in prefixes]
        return [top_tokens(row, k, stop, mask) for row, mask in zip(rows, masks, strict=True)]

    def score(
        self, prompt: Prompt, prefixes: Sequence[Prefix], continuations: Sequence[Prefix], usage: Usage
    ) -> list[tuple[float, ...]]:
        scores = []
        for prefix, continuation in zip(prefixes, continuations, strict=True):
            contexts = [(*prefix, *continuation[:i]) for i in range(len(continuation))]
            rows = [self.logprobs(self._context(prompt, context)) for context in contexts]
            scores.append(tuple(row[token.id] for row, token in zip(rows, continuation, strict=True)))
        return scores

    def sample(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        sampling: Sampling,
        usage: Usage,
        guides: Sequence[Guide | None] = (),
    ) -> list[list[Completion]]:
        usage.requests += len(prefixes)
        guides = guides or [None] * len(prefixes)
        return [
            [self._sample_one(prompt, p, g, sampling, [sampling.seed, i, j]) for j in range(sampling.n)]
            for i, (p, g) in enumerate(zip(prefixes, guides, strict=True))
        ]

    def close(self) -> None:
        pass

    def _sample_one(
        self, prompt: Prompt, prefix: Prefix, guide: Guide | None, sampling: Sampling, seed: list[int]
    ) -> Completion:
        random = np.random.default_rng(seed)
        tokens: list[Token] = []
        logprobs: list[float] = []
        positions: list[NextTokens] = []
        while len(prefix) + len(tokens) < sampling.max_tokens:
            row = self.logprobs(self._context(prompt, (*prefix, *tokens)))
            positions.append(top_tokens(row, sampling.alternatives, sampling.stop, None))
            if sampling.temperature > 0:
                weights = np.exp(np.array(row) / sampling.temperature)
                drawn = int(random.choice(len(row), p=weights / weights.sum()))
            else:
                drawn = row.index(max(row))
            if ends(drawn, sampling.stop):
                return Completion(tuple(tokens), tuple(logprobs), tuple(positions), True)
            tokens.append(Token(TOKENS[drawn], drawn))
            logprobs.append(row[drawn])
            if guide is not None and (guide := guide.advance(TOKENS[drawn])) is None:
                break
        return Completion(tuple(tokens), tuple(logprobs), tuple(positions), False)

    def _context(self, prompt: Prompt, prefix: Prefix) -> list[int]:
        return [*prompt.text.encode(), *(token.id for token in prefix)]


class LongContextToyModel(ToyModel):
    """The toy model with a context that is long enough for prompts with examples."""

    context_length = 10_000


def ends(token: int, stop: bytes) -> bool:
    """Whether a token ends an output."""
    return token == END or TOKENS[token].startswith(stop)


def top_tokens(row: Sequence[float], k: int, stop: bytes, mask: Mask | None) -> NextTokens:
    """Return the k most probable tokens of a row of log-probabilities."""
    candidates = [i for i in range(len(row)) if not ends(i, stop) and (mask is None or mask[i])]
    best = sorted(candidates, key=lambda i: -row[i])[:k]
    end_logprob = math.log(sum(math.exp(row[i]) for i in range(len(row)) if ends(i, stop)))
    scored = tuple(ScoredToken(Token(TOKENS[i], i), row[i]) for i in best)
    return NextTokens(scored, end_logprob, len(best) == len(candidates))
