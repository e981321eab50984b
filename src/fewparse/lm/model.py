"""The protocol of a language model. To add a model, implement `LanguageModel` and run `fewparse.testing` on it.

The protocol is stateless: every query names the whole prompt and the prefixes of the output generated so far, and
a model must return the same result regardless of earlier queries. Whether results come from a KV cache or from a
server is invisible to the caller. All log-probabilities are natural logarithms of the model's own distribution:
at temperature 1, not truncated by top-k or top-p, and not renormalised under a mask.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from fewparse.lm.usage import Usage
from fewparse.prompt import Prompt
from fewparse.vocabulary import Mask, Vocabulary

GrammarNotation = Literal["gbnf", "lark"]
"""Notations of grammars for servers: GBNF of llama.cpp, Lark as llguidance reads it."""


class Token(NamedTuple):
    """A token: its exact bytes, which need not be valid UTF-8, and its id in the vocabulary.

    The id is -1 if the model does not report ids. Control tokens have empty bytes.
    """

    bytes: bytes
    id: int = -1


class ScoredToken(NamedTuple):
    """A token with its log-probability."""

    token: Token
    logprob: float


Prefix = tuple[Token, ...]
"""The first tokens of an output, after the prompt; () is the empty prefix."""


class NextTokens(NamedTuple):
    """The distribution of the next token after a prefix, truncated to the most probable tokens.

    `best` holds tokens by descending log-probability. `end_logprob` is the log-probability that the output ends
    here: the total of the model's end tokens and of all tokens that start with the stop string. These ending
    tokens never occur in `best`.

    `complete` is true if `best` omits no token (under a mask: no allowed token). Otherwise `bound` is an
    upper bound on the log-probability of each omitted token; the default 0.0 is the trivial bound.
    """

    best: tuple[ScoredToken, ...]
    end_logprob: float
    complete: bool = False
    bound: float = 0.0


class Completion(NamedTuple):
    """A sampled continuation of a prefix, up to but not including the stop string or end token.

    `logprobs[i]` is the log-probability of `tokens[i]`, at temperature 1 for any sampling temperature.
    `positions[i]` is the distribution from which `tokens[i]` was sampled. There is one position more than tokens
    if the model generated an end (`ended`) or if the distribution after the last token is known. `ended` is false
    for samples cut off by the length limit or by a guide.

    A server may fail to report a token, such as a part of a character. The sample is then cut off there: its last
    token has empty bytes and usually no position.

    Without `supports_logprobs` there are no `logprobs` and no `positions`, and tokens are stretches of text.
    """

    tokens: Prefix
    logprobs: tuple[float, ...]
    positions: tuple[NextTokens, ...]
    ended: bool


@dataclass(frozen=True)
class Sampling:
    """Parameters of sampling.

    `n` is the number of samples per prefix. At `temperature` 0 decoding is greedy and all samples are equal.
    `max_tokens` limits the tokens of prefix and completion together. `stop` ends a sample at the first token that
    starts with these bytes. The same `seed` gives the same samples, if the model is deterministic.

    `alternatives` is the number of tokens in each `Completion.positions`. Servers include ending tokens in that
    number, so their positions may hold fewer.

    `grammar` constrains whole outputs, in the model's `grammar_notation`; only with `supports_grammar`.
    """

    n: int
    temperature: float
    max_tokens: int
    stop: bytes = b"\n"
    seed: int = 0
    alternatives: int = 0
    grammar: str | None = None


class Guide(Protocol):
    """Stops a sample early, for example when it leaves the grammar, so that no work is spent on useless tokens.

    A model returns no tokens of a sample after the one at which its guide returns None. A guide never changes
    which tokens are sampled before.
    """

    def advance(self, piece: bytes) -> "Guide | None":
        """Return the guide after a token with these bytes, or None if the sample stops after this token."""


class LanguageModel(Protocol):
    """A language model that continues a prompt.

    Each query takes several prefixes and returns one result per prefix, in the same order. Queries add what they
    use to `usage`. A prompt and prefix longer than `context_length` together raise `ContextOverflow`, other
    failures other subclasses of `ModelError`.
    """

    @property
    def name(self) -> str:
        """The name of the model in results."""

    @property
    def vocabulary(self) -> Vocabulary | None:
        """The model's tokens, or None if they are unknown, as for most servers."""

    @property
    def context_length(self) -> int:
        """The maximum number of tokens of a prompt and its output together."""

    @property
    def max_concurrency(self) -> int:
        """The number of searches worth running at the same time; 1 if they compete for one KV cache."""

    @property
    def local(self) -> bool:
        """Whether the model runs in this process, so that evaluating the prompt early costs nothing extra."""

    @property
    def supports_prefix(self) -> bool:
        """Whether outputs can be continued from a non-empty prefix; if not, only whole outputs can be sampled."""

    @property
    def supports_logprobs(self) -> bool:
        """Whether log-probabilities are known; if not, whole outputs can be sampled, and nothing else."""

    @property
    def supports_grammar(self) -> bool:
        """Whether samples can be constrained by `Sampling.grammar`."""

    @property
    def grammar_notation(self) -> GrammarNotation:
        """The notation of `Sampling.grammar`."""

    def tokenize(self, text: str) -> Prefix:
        """Return the tokens of an output text, without a begin-of-text token.

        If the vocabulary is unknown, the text may be returned as one token.
        """

    def prompt_length(self, prompt: Prompt) -> int:
        """Return the number of tokens of a prompt; an estimate if the tokenizer is unknown."""

    def sample(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        sampling: Sampling,
        usage: Usage,
        guides: Sequence[Guide | None] = (),
    ) -> list[list[Completion]]:
        """Return `sampling.n` completions of each prefix; `guides`, if given, holds one per prefix.

        A prefix that already has `sampling.max_tokens` tokens gets empty completions.
        """

    def next_tokens(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        k: int,
        stop: bytes,
        usage: Usage,
        allowed: Sequence[Mask] | None = None,
    ) -> list[NextTokens]:
        """Return the k most probable next tokens of each prefix.

        `allowed` holds one mask over the vocabulary per prefix, and only allowed tokens are returned; it is used
        only if the vocabulary is known. Masks do not change log-probabilities, nor the probability of ending.
        """

    def score(
        self, prompt: Prompt, prefixes: Sequence[Prefix], continuations: Sequence[Prefix], usage: Usage
    ) -> list[tuple[float, ...]]:
        """Return the log-probability of each token of each continuation, given the prompt and its prefix.

        There is one continuation per prefix. If the vocabulary is unknown, a model may tokenize the text again, so
        that only the sum of the log-probabilities is meaningful.
        """

    def close(self) -> None:
        """Release memory and connections; may be called more than once."""


@runtime_checkable
class TotalScorer(Protocol):
    """A model that scores many continuations faster than by `LanguageModel.score`, if only totals are needed."""

    def total_logprobs(
        self, prompt: Prompt, prefixes: Sequence[Prefix], continuations: Sequence[Prefix], usage: Usage
    ) -> list[float]:
        """Return the log-probability of each continuation, given the prompt and its prefix."""


def total_logprobs(
    model: LanguageModel,
    prompt: Prompt,
    prefixes: Sequence[Prefix],
    continuations: Sequence[Prefix],
    usage: Usage,
) -> list[float]:
    """Return the log-probability of each continuation, given the prompt and its prefix."""
    if isinstance(model, TotalScorer):
        return model.total_logprobs(prompt, prefixes, continuations, usage)
    return [math.fsum(logprobs) for logprobs in model.score(prompt, prefixes, continuations, usage)]
