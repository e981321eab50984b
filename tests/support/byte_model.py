"""A model without a vocabulary: any other model, with its token ids hidden."""

from collections.abc import Sequence

from fewparse.lm.model import (
    Completion,
    GrammarNotation,
    Guide,
    LanguageModel,
    NextTokens,
    Prefix,
    Sampling,
    ScoredToken,
    Token,
)
from fewparse.lm.usage import Usage
from fewparse.prompt import Prompt
from fewparse.vocabulary import Mask, Vocabulary


class ByteModel:
    """Identifies tokens by their bytes alone, as most HTTP servers do."""

    vocabulary: Vocabulary | None = None
    name = "bytes"
    local = True
    supports_prefix = True
    supports_logprobs = True
    supports_grammar = False
    grammar_notation: GrammarNotation = "gbnf"

    def __init__(self, model: LanguageModel) -> None:
        assert model.vocabulary is not None
        self._model = model
        self._ids = model.vocabulary.ids
        self.context_length = model.context_length
        self.max_concurrency = model.max_concurrency

    def tokenize(self, text: str) -> Prefix:
        return without_ids(self._model.tokenize(text))

    def prompt_length(self, prompt: Prompt) -> int:
        return self._model.prompt_length(prompt)

    def next_tokens(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        k: int,
        stop: bytes,
        usage: Usage,
        allowed: Sequence[Mask] | None = None,
    ) -> list[NextTokens]:
        assert allowed is None, "a model without a vocabulary takes no masks"
        results = self._model.next_tokens(prompt, [self._with_ids(p) for p in prefixes], k, stop, usage)
        return [next_without_ids(result) for result in results]

    def sample(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        sampling: Sampling,
        usage: Usage,
        guides: Sequence[Guide | None] = (),
    ) -> list[list[Completion]]:
        groups = self._model.sample(prompt, [self._with_ids(p) for p in prefixes], sampling, usage, guides)
        return [
            [
                c._replace(tokens=without_ids(c.tokens), positions=tuple(map(next_without_ids, c.positions)))
                for c in group
            ]
            for group in groups
        ]

    def score(
        self, prompt: Prompt, prefixes: Sequence[Prefix], continuations: Sequence[Prefix], usage: Usage
    ) -> list[tuple[float, ...]]:
        return self._model.score(
            prompt, [self._with_ids(p) for p in prefixes], [self._with_ids(c) for c in continuations], usage
        )

    def close(self) -> None:
        pass

    def _with_ids(self, tokens: Prefix) -> Prefix:
        return tuple(Token(token.bytes, self._ids[token.bytes]) for token in tokens)


def without_ids(tokens: Prefix) -> Prefix:
    return tuple(Token(token.bytes) for token in tokens)


def next_without_ids(result: NextTokens) -> NextTokens:
    return result._replace(best=tuple(ScoredToken(Token(s.token.bytes), s.logprob) for s in result.best))
