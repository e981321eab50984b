"""A model whose answers are recorded, so that another search can be given the same ones."""

from collections import defaultdict, deque
from collections.abc import Sequence

from fewparse.lm.model import Completion, Guide, LanguageModel, NextTokens, Prefix, Sampling
from fewparse.lm.usage import Usage
from fewparse.prompt import Prompt
from fewparse.vocabulary import Mask


class RecordedModel:
    """Records what another model answers about each prefix; every answer can be taken once."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self.name = model.name
        self.vocabulary = model.vocabulary
        self.context_length = model.context_length
        self.max_concurrency = model.max_concurrency
        self.local = model.local
        self.supports_prefix = model.supports_prefix
        self.supports_logprobs = model.supports_logprobs
        self.supports_grammar = model.supports_grammar
        self.grammar_notation = model.grammar_notation
        self._round = 0
        self._samples: dict[tuple[int, Prefix], deque[list[Completion]]] = defaultdict(deque)
        self._next_tokens: dict[Prefix, deque[NextTokens]] = defaultdict(deque)
        self.tokenize = model.tokenize
        self.prompt_length = model.prompt_length
        self.score = model.score
        self.close = model.close

    def sample(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        sampling: Sampling,
        usage: Usage,
        guides: Sequence[Guide | None] = (),
    ) -> list[list[Completion]]:
        found = self._model.sample(prompt, prefixes, sampling, usage, guides)
        self._round += 1
        for prefix, completions in zip(prefixes, found, strict=True):
            self._samples[self._round, prefix].append(completions)
        return found

    def next_tokens(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        k: int,
        stop: bytes,
        usage: Usage,
        allowed: Sequence[Mask] | None = None,
    ) -> list[NextTokens]:
        found = self._model.next_tokens(prompt, prefixes, k, stop, usage, allowed)
        for prefix, following in zip(prefixes, found, strict=True):
            self._next_tokens[prefix].append(following)
        return found

    def take_samples(self, number: int, prefix: Prefix) -> list[Completion]:
        """Return the samples of a prefix in a round; the next time, those of its next occurrence."""
        return self._samples[number, prefix].popleft()

    def take_next_tokens(self, prefix: Prefix) -> NextTokens:
        """Return the best next tokens of a prefix."""
        return self._next_tokens[prefix].popleft()

    @property
    def not_taken(self) -> int:
        """How many recorded answers were not taken."""
        return sum(map(len, self._samples.values())) + sum(map(len, self._next_tokens.values()))
