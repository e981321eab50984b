"""A language model in this process: answers from the logits behind a prompt, whatever computes them."""

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fewparse.lm.model import Completion, Guide, NextTokens, Prefix, Sampling, Token
from fewparse.lm.paths import Logits, Path
from fewparse.lm.sampling import Stream, Thought, draw
from fewparse.lm.usage import Usage
from fewparse.prompt import Prompt
from fewparse.vocabulary import Mask, Vocabulary

# Waiting threads must soon sleep: beside one other busy process, spinning is a hundred times slower. The libraries
# that compute, llama.cpp and torch, read this when they are loaded, which is after this module.
os.environ.setdefault("GOMP_SPINCOUNT", "2000")

LONGEST_CONTEXT = 8192
"""How many tokens of context are used of a model that can take more: memory for them is set aside."""


class Tokenizer(Protocol):
    """Text to token ids."""

    @property
    def begin_token(self) -> int:
        """The token that an empty prompt consists of."""

    def tokenize(self, text: str, special: bool, begin: bool) -> list[int]:
        """The tokens of `text`; `special` reads markup such as chat markers, `begin` may add what opens a text."""


class Evaluator(Protocol):
    """Logits after token paths behind a prompt, evaluating as little as possible."""

    @property
    def context_length(self) -> int:
        """How many tokens a prompt and a path may have together; beyond is a ContextOverflow."""

    def after(self, prompt: Path, tails: Sequence[Path], usage: Usage) -> list[Logits]:
        """The logits after prompt + tail for each tail."""

    def along(
        self, prompt: Path, pairs: Sequence[tuple[Path, Path]], usage: Usage
    ) -> Iterator[tuple[tuple[Path, Path], list[Logits]]]:
        """For each distinct pair of a path and what follows it, the logits before each following token."""


class LocalModel:
    """A language model in this process; one search at a time, deterministic for a seed and thread count."""

    max_concurrency = 1
    local = True
    supports_prefix = True
    supports_grammar = False

    def __init__(
        self,
        name: str,
        vocabulary: Vocabulary,
        tokenizer: Tokenizer,
        evaluator: Evaluator,
        lock: "threading.Lock | None" = None,
    ) -> None:
        self.name = name
        self.vocabulary = vocabulary
        self.context_length = evaluator.context_length
        self._tokenizer = tokenizer
        self.evaluator = evaluator
        self._lock = lock or threading.Lock()
        self.prompt_ids = lru_cache(maxsize=64)(self._read_prompt)

    def close(self) -> None:
        """Give back what it holds: a view of another model holds nothing of its own."""

    def tokenize(self, text: str) -> Prefix:
        """The tokens of a text as the model itself would write it."""
        return tuple(self._token(i) for i in self._tokenizer.tokenize(text, special=False, begin=False))

    def prompt_length(self, prompt: Prompt) -> int:
        """How many tokens the prompt has."""
        return len(self.prompt_ids(prompt))

    def next_tokens(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        k: int,
        stop: bytes,
        usage: Usage,
        allowed: Sequence[Mask] | None = None,
    ) -> list[NextTokens]:
        """The best k next tokens of each prefix: one batch, exact under a mask."""
        with self._asked(prompt, prefixes, usage) as ids:
            rows = self.evaluator.after(ids, [path(prefix) for prefix in prefixes], usage)
        usage.completion_tokens += len(prefixes)
        masks = allowed if allowed is not None else [None] * len(prefixes)
        return [self._thought(row, stop).best(k, mask) for row, mask in zip(rows, masks, strict=True)]

    def sample(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        sampling: Sampling,
        usage: Usage,
        guides: Sequence[Guide | None] = (),
    ) -> list[list[Completion]]:
        """`n` completions of each prefix, all as one batch; equal beginnings are evaluated once."""
        guides = guides or [None] * len(prefixes)
        copies = sampling.n if sampling.temperature > 0 else 1
        streams = [
            [Stream(prefix, guide, np.random.default_rng((sampling.seed, which, copy))) for copy in range(copies)]
            for which, (prefix, guide) in enumerate(zip(prefixes, guides, strict=True))
        ]
        everything = [stream for group in streams for stream in group]
        with self._asked(prompt, prefixes, usage) as ids:
            while live := [
                s for s in everything if not s.over and len(s.prefix) + len(s.tokens) < sampling.max_tokens
            ]:
                paths = [path(stream.prefix) + stream.path for stream in live]
                distinct = list(dict.fromkeys(paths))
                rows = self.evaluator.after(ids, distinct, usage)
                thoughts = {p: self._thought(row, sampling.stop) for p, row in zip(distinct, rows, strict=True)}
                for stream, where in zip(live, paths, strict=True):
                    thought = thoughts[where]
                    chosen = draw(thought, sampling.temperature, stream.random)
                    stream.take(self._token(chosen), thought, sampling.alternatives)
        completions = [[stream.completion() for stream in group] for group in streams]
        usage.completion_tokens += sum(len(c.tokens) + c.ended for group in completions for c in group)
        return [group * (sampling.n // copies) for group in completions]

    def score(
        self, prompt: Prompt, prefixes: Sequence[Prefix], continuations: Sequence[Prefix], usage: Usage
    ) -> list[tuple[float, ...]]:
        """The log-probability of each token of a continuation, one continuation a prefix."""
        asked = [(path(p), path(c)) for p, c in zip(prefixes, continuations, strict=True)]
        scores: dict[tuple[Path, Path], tuple[float, ...]] = {}
        with self._asked(prompt, prefixes, usage) as ids:
            for pair, rows in self.evaluator.along(ids, asked, usage):
                scores[pair] = tuple(
                    float(log_softmax(row)[token]) for row, token in zip(rows, pair[1], strict=True)
                )
        return [scores.get(pair, ()) for pair in asked]

    @contextmanager
    def _asked(self, prompt: Prompt, prefixes: Sequence[Prefix], usage: Usage) -> Iterator[Path]:
        """Account for one round of questions and keep others out meanwhile."""
        ids = self.prompt_ids(prompt)
        usage.requests += len(prefixes)
        usage.rounds += 1
        usage.prompt_tokens += sum(len(ids) + len(prefix) for prefix in prefixes)
        with self._lock:
            begin = time.perf_counter()
            try:
                yield ids
            finally:
                usage.seconds += time.perf_counter() - begin

    def _read_prompt(self, prompt: Prompt) -> Path:
        ids: list[int] = []
        for i, part in enumerate(prompt.parts):
            ids += self._tokenizer.tokenize(part.text, special=part.markup, begin=i == 0)
        return tuple(ids) or (self._tokenizer.begin_token,)

    def _token(self, token_id: int) -> Token:
        return Token(self.vocabulary.tokens[token_id], token_id)

    def _thought(self, row: Logits, stop: bytes) -> Thought:
        return Thought(log_softmax(row), self.vocabulary, stop)


def usable_cores() -> int:
    """As many threads as cores, no more: spinning threads stall each other."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def path(prefix: Prefix) -> Path:
    """The ids of a prefix."""
    return tuple(token.id for token in prefix)


def log_softmax(row: Logits) -> NDArray[np.float32]:
    """Log-probabilities from logits."""
    shifted: NDArray[np.float32] = row - row.max()
    shifted -= np.log(np.exp(shifted).sum())
    return shifted
