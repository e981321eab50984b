"""A model that does not tell its vocabulary: any other one, with its ids and masks hidden."""

from collections.abc import Sequence

from fewparse.lm.model import Completion, Guide, LanguageModel, NextTokens, Prefix, Sampling, ScoredToken, Token
from fewparse.lm.usage import Usage
from fewparse.prompt import Prompt
from fewparse.vocabulary import Mask, Vocabulary


class Blind:
    """Speaks of tokens by their bytes alone, as most HTTP servers do."""

    vocabulary: Vocabulary | None = None
    name = "blind"
    local = True
    supports_prefix = True
    supports_grammar = False

    def __init__(self, seeing: LanguageModel) -> None:
        assert seeing.vocabulary is not None
        self._seeing = seeing
        self._ids = seeing.vocabulary.ids
        self.context_length = seeing.context_length
        self.max_concurrency = seeing.max_concurrency

    def tokenize(self, text: str) -> Prefix:
        return hide(self._seeing.tokenize(text))

    def prompt_length(self, prompt: Prompt) -> int:
        return self._seeing.prompt_length(prompt)

    def next_tokens(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        k: int,
        stop: bytes,
        usage: Usage,
        allowed: Sequence[Mask] | None = None,
    ) -> list[NextTokens]:
        assert allowed is None, "a mask is of no use to a model whose vocabulary is unknown"
        answers = self._seeing.next_tokens(prompt, [self._find(p) for p in prefixes], k, stop, usage)
        return [hide_ids(answer) for answer in answers]

    def sample(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        sampling: Sampling,
        usage: Usage,
        guides: Sequence[Guide | None] = (),
    ) -> list[list[Completion]]:
        groups = self._seeing.sample(prompt, [self._find(p) for p in prefixes], sampling, usage, guides)
        return [
            [c._replace(tokens=hide(c.tokens), positions=tuple(map(hide_ids, c.positions))) for c in group]
            for group in groups
        ]

    def score(
        self, prompt: Prompt, prefixes: Sequence[Prefix], continuations: Sequence[Prefix], usage: Usage
    ) -> list[tuple[float, ...]]:
        return self._seeing.score(
            prompt, [self._find(p) for p in prefixes], [self._find(c) for c in continuations], usage
        )

    def close(self) -> None:
        pass

    def _find(self, tokens: Prefix) -> Prefix:
        return tuple(Token(token.bytes, self._ids[token.bytes]) for token in tokens)


def hide(tokens: Prefix) -> Prefix:
    return tuple(Token(token.bytes) for token in tokens)


def hide_ids(answer: NextTokens) -> NextTokens:
    return answer._replace(best=tuple(ScoredToken(Token(s.token.bytes), s.logprob) for s in answer.best))
