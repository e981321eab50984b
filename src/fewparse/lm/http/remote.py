"""Base class of remote models: the methods of LanguageModel as batches of requests."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from fewparse.errors import ServerUnsupported, UsageError
from fewparse.lm.http.batching import Batcher, Request
from fewparse.lm.http.budget import Budget
from fewparse.lm.http.capabilities import DEFAULT_CONTEXT_LENGTH, NO_CUTOFFS, Capabilities, grammar_field
from fewparse.lm.http.client import DEFAULT_MAX_CONCURRENCY, HttpClient
from fewparse.lm.http.responses import ResponseReader, prefix_bytes, text_completion, unlisted_bound
from fewparse.lm.http.wire import Choice
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
from fewparse.vocabulary import Mask

DEFAULT_TOP_LOGPROBS = 100
MAX_PROMPTS_PER_REQUEST = 64
MAX_RESAMPLES = 3
BYTES_PER_TOKEN = 3


class RemoteModel(ABC):
    """A model behind a server; `top_logprobs` is how many next tokens are requested."""

    path: str
    kind: str
    local = False

    def __init__(
        self,
        client: HttpClient,
        model: str,
        capabilities: Capabilities,
        budget: Budget,
        max_concurrency: int | None = None,
        context_length: int | None = None,
        top_logprobs: int = DEFAULT_TOP_LOGPROBS,
    ) -> None:
        self.name = self.identity = full_name(self.kind, model, client.url)
        self.max_concurrency = max_concurrency or capabilities.slots or DEFAULT_MAX_CONCURRENCY
        self.context_length = context_length or capabilities.context_length or DEFAULT_CONTEXT_LENGTH
        self.vocabulary = capabilities.vocabulary
        self._capabilities = capabilities
        self._model = model
        self._top_logprobs = min(top_logprobs, capabilities.top_logprobs)
        self._batcher = Batcher(client, self.path, budget, self.max_concurrency, self.vocabulary is None)
        self._reader = ResponseReader(self.vocabulary, frozenset(capabilities.end_ids))

    @property
    def supports_prefix(self) -> bool:
        """Whether it can continue a prefix of an output."""
        return self.supports_logprobs

    @property
    def supports_logprobs(self) -> bool:
        """Whether its server reports log-probabilities."""
        return self._capabilities.logprobs_format is not None

    @property
    def supports_grammar(self) -> bool:
        """Whether its server constrains samples to a grammar."""
        return self._capabilities.grammar is not None

    @property
    def grammar_notation(self) -> GrammarNotation:
        """The notation of grammars that its server reads."""
        return self._capabilities.grammar_notation

    def close(self) -> None:
        """Close the connections."""
        self._batcher.close()

    @abstractmethod
    def tokenize(self, text: str) -> Prefix:
        """Return the server's tokens of a text, or the text as one token if the server has no tokenizer."""

    @abstractmethod
    def prompt_length(self, prompt: Prompt) -> int:
        """Return the number of tokens of a prompt, an estimate if the server has no tokenizer."""

    def next_tokens(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        k: int,
        stop: bytes,
        usage: Usage,
        allowed: Sequence[Mask] | None = None,
    ) -> list[NextTokens]:
        """Return the k best next tokens of each prefix that the server lists.

        With masks, these are the allowed ones among the first `top_logprobs`; if none of these is allowed, a
        further request looks beyond them.
        """
        self._check_logprobs()
        masks = allowed if allowed is not None else [None] * len(prefixes)
        top = min(max(k, self._top_logprobs), self._capabilities.top_logprobs)
        found = self._next_tokens(prompt, prefixes, k, stop, usage, masks, top)
        if top < self._capabilities.top_logprobs:
            none = [i for i, mask in enumerate(masks) if mask is not None and not found[i].best and mask.any()]
            arguments = [prefixes[i] for i in none], [mask for i in none if (mask := masks[i]) is not None]
            for i, beyond in zip(none, self._beyond_top(prompt, *arguments, k, stop, usage), strict=True):
                found[i] = beyond
        return found

    def _next_tokens(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        k: int,
        stop: bytes,
        usage: Usage,
        masks: Sequence[Mask | None],
        top: int,
    ) -> list[NextTokens]:
        listed = self._listed_tokens(prompt, prefixes, top, usage)
        return [
            self._reader.next_tokens(tokens, k, stop, self._text(prompt, prefix), mask)
            for prefix, tokens, mask in zip(prefixes, listed, masks, strict=True)
        ]

    def _beyond_top(
        self, prompt: Prompt, prefixes: Sequence[Prefix], masks: Sequence[Mask], k: int, stop: bytes, usage: Usage
    ) -> list[NextTokens]:
        """Return next tokens if none of the first ones is allowed: from all tokens that the server lists."""
        return self._next_tokens(prompt, prefixes, k, stop, usage, masks, self._capabilities.top_logprobs)

    def sample(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        sampling: Sampling,
        usage: Usage,
        guides: Sequence[Guide | None] = (),
    ) -> list[list[Completion]]:
        """Return `n` completions of each prefix, in as few requests as the server allows."""
        guides = guides or [None] * len(prefixes)
        wanted = sampling.n if sampling.temperature > 0 else 1
        per_request = min(wanted, self._capabilities.max_n) if self._capabilities.distinct_samples else 1
        requests, indices = [], []
        for index, prefix in enumerate(prefixes):
            for first in range(0, wanted if len(prefix) < sampling.max_tokens else 0, per_request):
                n = min(per_request, wanted - first)
                requests.append(self._sampling_request(prompt, prefix, sampling, n, index, first))
                indices.append(index)
        groups: list[list[Completion]] = [[] for _ in prefixes]
        for index, choices in zip(indices, self._batcher.sample(requests, usage), strict=True):
            prefix, guide = prefixes[index], guides[index]
            text = self._text(prompt, prefix)
            groups[index] += [self._completion(c, prompt, prefix, sampling, guide, text) for c in choices]
        empty = [Completion((), (), (), False)]
        groups = [(group or empty) * (sampling.n // len(group or empty)) for group in groups]
        return self._with_end_positions(prompt, prefixes, groups, sampling, usage)

    def score(
        self, prompt: Prompt, prefixes: Sequence[Prefix], continuations: Sequence[Prefix], usage: Usage
    ) -> list[tuple[float, ...]]:
        """Return the log-probability of each token of a continuation, requested as a next token.

        A token that the server does not list gets its upper bound.
        """
        self._check_logprobs()
        steps = [
            ((*prefix, *continuation[:i]), token)
            for prefix, continuation in zip(prefixes, continuations, strict=True)
            for i, token in enumerate(continuation)
        ]
        found: dict[tuple[Prefix, Token], float] = {}
        for top in sorted({self._top_logprobs, self._capabilities.top_logprobs}):
            left = [step for step in dict.fromkeys(steps) if step not in found]
            listed = self._listed_tokens(prompt, [prefix for prefix, _ in left], top, usage)
            for step, tokens in zip(left, listed, strict=True):
                score = next((s.logprob for s in tokens if same_token(s.token, step[1])), None)
                if score is not None or top == self._capabilities.top_logprobs:
                    found[step] = unlisted_bound(tokens) if score is None else score
        scores = iter([found[step] for step in steps])
        return [tuple(next(scores) for _ in continuation) for continuation in continuations]

    @abstractmethod
    def _next_request(self, prompt: Prompt, prefixes: Sequence[Prefix], top: int, resample: int = 0) -> Request:
        """Return a request for next tokens: one token is sampled, and its alternatives are read."""

    @abstractmethod
    def _sampling_request(
        self, prompt: Prompt, prefix: Prefix, sampling: Sampling, n: int, index: int, first: int
    ) -> Request:
        """Return a request for `n` samples of the prefix with this index, after the `first` ones."""

    def _text(self, prompt: Prompt, prefix: Prefix) -> bytes | None:
        """Return the bytes of a prefix that is sent as text; None if it is sent as token ids."""
        return prefix_bytes(prefix)

    def _completion(
        self,
        choice: Choice,
        prompt: Prompt,
        prefix: Prefix,
        sampling: Sampling,
        guide: Guide | None,
        text: bytes | None,
    ) -> Completion:
        if not self.supports_logprobs:
            return text_completion(choice, sampling, guide, "" if prefix else prompt.lead)
        return self._reader.completion(choice, len(prefix), sampling, guide, text)

    def _listed_tokens(
        self, prompt: Prompt, prefixes: Sequence[Prefix], top: int, usage: Usage
    ) -> list[tuple[ScoredToken, ...]]:
        """Return the `top` most likely next tokens of each prefix, as listed by the server."""
        size = MAX_PROMPTS_PER_REQUEST if self._capabilities.batches_prompts else 1
        groups = [prefixes[i : i + size] for i in range(0, len(prefixes), size)]
        replies = self._batcher.send([self._next_request(prompt, group, top) for group in groups], usage)
        choices = [choice for reply in replies for choice in reply.choices]
        # Servers list nothing if part of a character or a hidden end token was sampled: sample another token.
        for resample in range(1, MAX_RESAMPLES + 1):
            empty = [i for i, choice in enumerate(choices) if not choice.entries]
            requests = [self._next_request(prompt, [prefixes[i]], top, resample) for i in empty]
            for i, reply in zip(empty, self._batcher.send(requests, usage), strict=True):
                choices[i] = reply.choices[0]
        return [choice.entries[0].alternatives if choice.entries else () for choice in choices]

    def _with_end_positions(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        groups: list[list[Completion]],
        sampling: Sampling,
        usage: Usage,
    ) -> list[list[Completion]]:
        """Add the distribution at the end to completions that lack it, by further requests, if there are any."""
        if not self.supports_logprobs:
            return groups
        pairs = [(prefix, c) for prefix, group in zip(prefixes, groups, strict=True) for c in group]
        outputs = sorted({(*prefix, *c.tokens) for prefix, c in pairs if lacks_end_position(c)})
        found = self.next_tokens(prompt, outputs, sampling.alternatives, sampling.stop, usage)
        positions = dict(zip(outputs, found, strict=True))

        def completed(prefix: Prefix, completion: Completion) -> Completion:
            if not lacks_end_position(completion):
                return completion
            position = positions[(*prefix, *completion.tokens)]
            return completion._replace(positions=(*completion.positions, position))

        return [[completed(prefix, c) for c in group] for prefix, group in zip(prefixes, groups, strict=True)]

    def _grammar(self, grammar: str) -> dict[str, Any]:
        """Return the request field for a grammar."""
        if self._capabilities.grammar is None:
            raise ServerUnsupported(f"{self._batcher.client.url} supports no grammars", "Omit --server-grammar.")
        return grammar_field(self._capabilities.grammar, grammar)

    def _check_logprobs(self) -> None:
        """Raise UsageError if the server reports no log-probabilities."""
        if not self.supports_logprobs:
            raise UsageError(
                f"{self.name} reports no log-probabilities, so that it cannot score a text",
                "Use --decoder sampling, and another retriever than lm.",
            )

    def _request(self, body: dict[str, Any], n: int, prompt_tokens: int, sample: int = 0) -> Request:
        """Return a request for `n` completions with the fields that the server accepts."""
        fields = self._capabilities.fields
        completion_tokens = n * (body["max_tokens"] + fields.extra_tokens)
        return Request(fields.accepted(body), n, prompt_tokens, completion_tokens, sample=sample)

    def _temperature(self, sampling: Sampling) -> float:
        """Return the sampling temperature; 1 if the server would apply it to log-probabilities."""
        return sampling.temperature if self._capabilities.untempered else 1.0

    def _any_token(self, resample: int) -> dict[str, Any]:
        """Return the fields to sample one arbitrary token, at a higher temperature for another one."""
        hotter = resample and self._capabilities.untempered
        return {"max_tokens": 1, "temperature": 2 if hotter else 1, "seed": resample}

    def _no_cutoffs(self) -> dict[str, Any]:
        """Return the fields that disable sampling cut-offs."""
        return {"top_p": 1} | (NO_CUTOFFS if self._capabilities.unrestricted_sampling else {})


def full_name(kind: str, model: str, url: str) -> str:
    """Return the name of a model in results: its kind, its name at the server, and the server's address."""
    return f"{kind}:{model}@{url}"


def lacks_end_position(completion: Completion) -> bool:
    """Return whether a completion ended where the server does not report the distribution."""
    return completion.ended and len(completion.positions) == len(completion.tokens)


def same_token(one: Token, other: Token) -> bool:
    """Return whether two tokens are the same, by id if both have one, else by bytes."""
    return one.id == other.id if one.id >= 0 and other.id >= 0 else one.bytes == other.bytes


def seed_of(*parts: int) -> int:
    """Return a seed for one sample of one prefix."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:4]) % 2**31


def estimate_tokens(text: str) -> int:
    """Estimate the number of tokens of a text, more likely too high than too low."""
    return len(text.encode()) // BYTES_PER_TOKEN + 1
