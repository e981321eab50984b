"""A hypothesis: a token sequence, its score, and the state of the constraint after it."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from fewparse.constrain.state import State
from fewparse.errors import ModelError
from fewparse.lm.model import Completion, NextTokens, Prefix, ScoredToken

MIN_LOGPROB = -1e9
"""Stands for the probability 0, so that scores are finite."""


@dataclass(frozen=True)
class Hypothesis:
    """Tokens with their log-probability at temperature 1, which includes the end of a finished hypothesis.

    `least_logprob` is that of the least likely token. `share`, if known, is the share of the samples that agree on
    the text; it then replaces the log-probabilities, which are not meaningful.

    With `end_omitted`, the hypothesis is finished because nothing may follow, and the end is part neither of its
    log-probability nor of its length. Raises `ModelError` if the log-probability is NaN or positive infinity,
    which no model may return.
    """

    tokens: Prefix
    logprob: float
    state: State
    finished: bool = False
    end_omitted: bool = False
    least_logprob: float = 0.0
    share: float | None = None

    def __post_init__(self) -> None:
        if not MIN_LOGPROB <= self.logprob < math.inf:
            if not self.logprob < MIN_LOGPROB:
                raise ModelError(
                    f"the language model returned the log-probability {self.logprob} for {self.text!r}",
                    "Its log-probabilities must be numbers of at most 0.",
                )
            object.__setattr__(self, "logprob", MIN_LOGPROB)

    @cached_property
    def text(self) -> bytes:
        """The bytes of the tokens."""
        return b"".join(token.bytes for token in self.tokens)

    @cached_property
    def score(self) -> float:
        """The log-probability with GNMT length normalisation, or the logarithm of the share."""
        if self.share is not None:
            return math.log(self.share)
        return normalised(self.logprob, len(self.tokens) + (self.finished and not self.end_omitted))

    @property
    def key(self) -> tuple[bytes, bool]:
        """Identifies duplicates: different tokenisations of one string are one output."""
        return self.text, self.finished

    def finish(self, end_logprob: float) -> "Hypothesis":
        """Return the finished hypothesis."""
        least = min(self.least_logprob, end_logprob)
        return replace(self, logprob=self.logprob + end_logprob, finished=True, least_logprob=least)

    def finish_if_nothing_follows(self) -> "Hypothesis":
        """Return the hypothesis, finished without an end if the constraint allows nothing but the end."""
        if self.finished or not (self.state.may_end and self.state.must_end):
            return self
        return replace(self, finished=True, end_omitted=True)

    def extend(self, choice: ScoredToken) -> "Hypothesis | None":
        """Return the hypothesis with one more token, or None if the constraint does not allow it."""
        state = self.state.advance(choice.token.bytes)
        if state is None:
            return None
        least = min(self.least_logprob, choice.logprob)
        tokens = (*self.tokens, choice.token)
        return Hypothesis(tokens, self.logprob + choice.logprob, state, least_logprob=least)

    def follow(self, completion: Completion) -> list["Hypothesis"]:
        """Return the hypothesis and those after each token of a completion, up to its first invalid token."""
        path = [self]
        for token, logprob in zip(completion.tokens, completion.logprobs, strict=True):
            following = path[-1].extend(ScoredToken(token, logprob))
            if following is None:
                break
            path.append(following)
        return path

    def successors(self, next_tokens: NextTokens, width: int) -> list["Hypothesis"]:
        """Return the `width` best allowed continuations, and a finished copy if the output may end here."""
        found: list[Hypothesis] = []
        for choice in next_tokens.best:
            if len(found) == width:
                break
            following = self.extend(choice)
            if following:
                found.append(following)
        if self.state.may_end:
            found.append(self.finish(next_tokens.end_logprob))
        return found


def normalised(logprob: float, length: int) -> float:
    """Return log P / ((5 + L)^0.7 / 6^0.7), the length normalisation of GNMT (Wu et al., 2016)."""
    return logprob / math.pow((5 + length) / 6, 0.7)


def ranked(hypotheses: Iterable[Hypothesis], width: int | None = None) -> list[Hypothesis]:
    """Return distinct hypotheses, best first (ties by text), at most `width`."""
    distinct = {h.key: h for h in sorted(hypotheses, key=lambda h: h.score)}
    return sorted(distinct.values(), key=lambda h: (-h.score, h.text))[:width]


def best_first(hypotheses: Iterable[Hypothesis]) -> list[Hypothesis]:
    """Return all hypotheses, duplicates included, best first; equal scores keep their order."""
    return sorted(hypotheses, key=lambda h: h.score, reverse=True)


def split(hypotheses: Sequence[Hypothesis]) -> tuple[list[Hypothesis], list[Hypothesis]]:
    """Return the live and the finished hypotheses."""
    return [h for h in hypotheses if not h.finished], [h for h in hypotheses if h.finished]
