"""Language models that run in this process, on top of any evaluator of logits."""

import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Protocol

import numpy as np

from fewparse.errors import ModelError
from fewparse.lm.evaluator import Evaluator, Logits, TokenIds, log_softmax, logprobs_along
from fewparse.lm.lifetime import Lifetime
from fewparse.lm.model import Completion, GrammarNotation, Guide, NextTokens, Prefix, Sampling, Token
from fewparse.lm.sampling import NextTokenDistribution, PartialSample
from fewparse.lm.usage import Usage
from fewparse.prompt import Prompt
from fewparse.vocabulary import Mask, Vocabulary

# OpenMP threads should sleep soon when idle: with another busy process, spinning is a hundred times slower.
# llama.cpp and torch read this variable when they are loaded, which is after this module.
os.environ.setdefault("GOMP_SPINCOUNT", "2000")

MAX_CONTEXT = 8192
"""The maximum context length, as memory for it is allocated in advance; models with a shorter one use theirs."""


class Tokenizer(Protocol):
    """Converts text to token ids."""

    @property
    def begin_token(self) -> int:
        """The token that is used as the prompt if the prompt is empty."""

    def tokenize(self, text: str, special: bool, begin: bool) -> list[int]:
        """Return the token ids of `text`.

        With `special`, control tokens such as chat markers are recognised. With `begin`, a begin-of-text token is
        added if the model uses one.
        """


class LocalModel:
    """A language model in this process, deterministic for a seed and thread count.

    Of its queries, `max_concurrency` run at a time.
    """

    max_concurrency = 1
    local = True
    supports_prefix = True
    supports_logprobs = True
    supports_grammar = False
    grammar_notation: GrammarNotation = "gbnf"

    def __init__(
        self,
        name: str,
        vocabulary: Vocabulary,
        tokenizer: Tokenizer,
        evaluator: Evaluator,
        lifetime: Lifetime | None = None,
        identity: str | None = None,
    ) -> None:
        self.name = name
        self.identity = identity
        self.vocabulary = vocabulary
        self.context_length = evaluator.context_length
        self._tokenizer = tokenizer
        self.evaluator = evaluator
        self._lifetime = lifetime or Lifetime(name)
        self.prompt_ids = lru_cache(maxsize=64)(self._tokenize_prompt)

    def close(self) -> None:
        """Do nothing; models that own memory override this."""

    def tokenize(self, text: str) -> Prefix:
        """Return the tokens of an output text, without a begin-of-text token."""
        return tuple(self._token(i) for i in self._tokenizer.tokenize(text, special=False, begin=False))

    def prompt_length(self, prompt: Prompt) -> int:
        """Return the number of tokens of a prompt."""
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
        """Return the k most probable next tokens of each prefix, evaluated as one batch and exact under a mask."""
        with self._query(prompt, prefixes, usage) as ids:
            rows = self.evaluator.next_logits(ids, [self._ids(prefix) for prefix in prefixes], usage)
        usage.completion_tokens += len(prefixes)
        masks = allowed if allowed is not None else [None] * len(prefixes)
        return [self._distribution(row, stop).best(k, mask) for row, mask in zip(rows, masks, strict=True)]

    def sample(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        sampling: Sampling,
        usage: Usage,
        guides: Sequence[Guide | None] = (),
    ) -> list[list[Completion]]:
        """Return `n` completions of each prefix, generated as one batch; equal paths are evaluated once."""
        guides = guides or [None] * len(prefixes)
        distinct = sampling.n if sampling.temperature > 0 else 1
        groups = [
            [PartialSample(prefix, guide, np.random.default_rng((sampling.seed, i, j))) for j in range(distinct)]
            for i, (prefix, guide) in enumerate(zip(prefixes, guides, strict=True))
        ]
        samples = [sample for group in groups for sample in group]
        with self._query(prompt, prefixes, usage) as ids:
            while live := [
                s for s in samples if not s.finished and len(s.prefix) + len(s.tokens) < sampling.max_tokens
            ]:
                paths = [self._ids(sample.prefix) + sample.token_ids for sample in live]
                unique = list(dict.fromkeys(paths))
                rows = self.evaluator.next_logits(ids, unique, usage)
                distributions = {
                    path: self._distribution(row, sampling.stop) for path, row in zip(unique, rows, strict=True)
                }
                for sample, path in zip(live, paths, strict=True):
                    token = distributions[path].draw(sampling.temperature, sample.random)
                    sample.append(self._token(token), distributions[path], sampling.alternatives)
        completions = [[sample.completion() for sample in group] for group in groups]
        usage.completion_tokens += sum(len(c.tokens) + c.ended for group in completions for c in group)
        return [group * (sampling.n // distinct) for group in completions]

    def score(
        self, prompt: Prompt, prefixes: Sequence[Prefix], continuations: Sequence[Prefix], usage: Usage
    ) -> list[tuple[float, ...]]:
        """Return the log-probability of each token of each continuation, one continuation per prefix."""
        spans = [(self._ids(p), self._ids(c)) for p, c in zip(prefixes, continuations, strict=True)]
        with self._query(prompt, prefixes, usage) as ids:
            scores = logprobs_along(self.evaluator.logits_along(ids, spans, usage))
        return [scores.get(span, ()) for span in spans]

    def total_logprobs(
        self, prompt: Prompt, prefixes: Sequence[Prefix], continuations: Sequence[Prefix], usage: Usage
    ) -> list[float]:
        """Return the log-probability of each continuation, evaluating what several have in common once."""
        spans = [(self._ids(p), self._ids(c)) for p, c in zip(prefixes, continuations, strict=True)]
        with self._query(prompt, prefixes, usage) as ids:
            scores = self.evaluator.span_logprobs(ids, spans, usage)
        return [math.fsum(scores.get(span, ())) for span in spans]

    @contextmanager
    def _query(self, prompt: Prompt, prefixes: Sequence[Prefix], usage: Usage) -> Iterator[TokenIds]:
        """Count one round of requests, hold the lock meanwhile, and yield the token ids of the prompt."""
        ids = self.prompt_ids(prompt)
        usage.requests += len(prefixes)
        usage.rounds += 1
        usage.prompt_tokens += sum(len(ids) + len(prefix) for prefix in prefixes)
        with self._lifetime.query():
            start = time.perf_counter()
            try:
                yield ids
            finally:
                usage.seconds += time.perf_counter() - start

    def _tokenize_prompt(self, prompt: Prompt) -> TokenIds:
        ids: list[int] = []
        for i, part in enumerate(prompt.parts):
            ids += self._tokenizer.tokenize(part.text, special=part.markup, begin=i == 0)
        return tuple(ids) or (self._tokenizer.begin_token,)

    def _ids(self, prefix: Prefix) -> TokenIds:
        """Return the ids of the tokens of a prefix; raise `ModelError` if one is not in the vocabulary."""
        ids = tuple(token.id for token in prefix)
        if ids and not 0 <= min(ids) <= max(ids) < len(self.vocabulary):
            wrong = min(ids) if min(ids) < 0 else max(ids)
            raise ModelError(
                f"a prefix contains the token {wrong}, which {self.name} does not have",
                "Use tokens of this model: LanguageModel.tokenize.",
            )
        return ids

    def _token(self, token_id: int) -> Token:
        return Token(self.vocabulary.tokens[token_id], token_id)

    def _distribution(self, row: Logits, stop: bytes) -> NextTokenDistribution:
        return NextTokenDistribution(log_softmax(row), self.vocabulary, stop)


def usable_cores() -> int:
    """Return the number of cores this process may use; more threads than cores stall each other by spinning."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
