"""The protocol of a language model: a stateless question about a prompt plus a prefix, and its answer.

Search asks every model the same two things, `sample` and `next_tokens`; `score` serves retrieval and forced
spans. Whether an answer comes from a KV cache or from a server, the caller cannot tell.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from fewparse.lm.usage import Usage
from fewparse.prompt import Prompt
from fewparse.vocabulary import Mask, Vocabulary


class Token(NamedTuple):
    """A token: its exact bytes, and its id where the model tells (-1 where not)."""

    bytes: bytes
    id: int = -1


class ScoredToken(NamedTuple):
    """A token with its log-probability at temperature 1."""

    token: Token
    logprob: float


Prefix = tuple[Token, ...]


class NextTokens(NamedTuple):
    """What may come next: the best tokens, best first, and the log-probability of ending here.

    Ending = the tokens that begin with the stop and the model's own end tokens, together. Tokens that end are
    never among `best`. `complete` says that no (allowed) token was left out; none that was is likelier than
    `bound`, where the model tells only so many.
    """

    best: tuple[ScoredToken, ...]
    end_logprob: float
    complete: bool = False
    bound: float = 0.0


class Completion(NamedTuple):
    """One sample: its tokens before the stop, their log-probabilities (untempered), and the alternatives.

    `positions[i]` is what the model thought before token i; there is one more than tokens where the model
    ended by itself (`ended`) or where its thought after the last token is known. A server may not tell every
    token by itself: the sample breaks off there, with a last token of no bytes, and mostly no position for it.
    """

    tokens: Prefix
    logprobs: tuple[float, ...]
    positions: tuple[NextTokens, ...]
    ended: bool


@dataclass(frozen=True)
class Sampling:
    """How to sample: `max_tokens` bounds prefix plus completion, `alternatives` is how many to report a position.

    Servers count endings among the alternatives, and report as many fewer.
    `grammar` is for servers that keep samples to one, in their notation; it describes whole outputs.
    """

    n: int
    temperature: float
    max_tokens: int
    stop: bytes = b"\n"
    seed: int = 0
    alternatives: int = 0
    grammar: str | None = None


class Guide(Protocol):
    """Tells a sampler where a sample stops being of use, so that it need not be carried on. A hint only."""

    def advance(self, piece: bytes) -> "Guide | None":
        """The guide after these bytes, or None where nothing beyond is wanted."""


class LanguageModel(Protocol):
    """Any language model."""

    @property
    def name(self) -> str:
        """How results name it."""

    @property
    def vocabulary(self) -> Vocabulary | None:
        """Its tokens, where they are known."""

    @property
    def context_length(self) -> int:
        """How many tokens a prompt and its output may have together."""

    @property
    def max_concurrency(self) -> int:
        """How many searches may run at once to advantage: 1 where they would fight over one KV cache."""

    @property
    def local(self) -> bool:
        """Whether it runs in this process, where reading a prompt ahead of the questions costs nothing more."""

    @property
    def supports_prefix(self) -> bool:
        """Whether it can be asked what follows the beginning of an output; else it gives whole ones only."""

    @property
    def supports_grammar(self) -> bool:
        """Whether it keeps samples to a grammar that comes with the question."""

    def tokenize(self, text: str) -> Prefix:
        """The tokens of a text as the model itself would write it."""

    def prompt_length(self, prompt: Prompt) -> int:
        """How many tokens the prompt has."""

    def sample(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        sampling: Sampling,
        usage: Usage,
        guides: Sequence[Guide | None] = (),
    ) -> list[list[Completion]]:
        """`n` completions of each prefix."""

    def next_tokens(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        k: int,
        stop: bytes,
        usage: Usage,
        allowed: Sequence[Mask] | None = None,
    ) -> list[NextTokens]:
        """The best k next tokens of each prefix, among those allowed where masks are given."""

    def score(
        self, prompt: Prompt, prefixes: Sequence[Prefix], continuations: Sequence[Prefix], usage: Usage
    ) -> list[tuple[float, ...]]:
        """The log-probability of each token of a continuation, one continuation a prefix.

        Where the vocabulary is unknown, a model may cut texts into other tokens than those it is given: only the
        sum has a meaning then.
        """

    def close(self) -> None:
        """Give back what the model holds."""
