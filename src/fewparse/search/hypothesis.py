"""A hypothesis: the tokens said so far, what they score, and where the constraint stands."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from fewparse.constrain.state import State
from fewparse.lm.model import NextTokens, Prefix, ScoredToken


@dataclass(frozen=True)
class Hypothesis:
    """Tokens with their log-probability at temperature 1; the ending is counted once it is finished."""

    tokens: Prefix
    logprob: float
    state: State
    finished: bool = False

    @cached_property
    def text(self) -> bytes:
        """What has been said."""
        return b"".join(token.bytes for token in self.tokens)

    @cached_property
    def score(self) -> float:
        """The log-probability, normalised by length as in GNMT."""
        return normalised(self.logprob, len(self.tokens) + self.finished)

    @property
    def key(self) -> tuple[bytes, bool]:
        """What makes two hypotheses the same: tokenisations of one string are one output."""
        return self.text, self.finished

    def finish(self, end_logprob: float) -> "Hypothesis":
        """The same, ended here."""
        return replace(self, logprob=self.logprob + end_logprob, finished=True)

    def extend(self, choice: ScoredToken) -> "Hypothesis | None":
        """One token more, if it may follow."""
        state = self.state.advance(choice.token.bytes)
        if state is None:
            return None
        return Hypothesis((*self.tokens, choice.token), self.logprob + choice.logprob, state)

    def successors(self, answer: NextTokens, width: int) -> list["Hypothesis"]:
        """The best allowed continuations by one token, and a finished copy if it may end here."""
        found: list[Hypothesis] = []
        for choice in answer.best:
            if len(found) == width:
                break
            following = self.extend(choice)
            if following:
                found.append(following)
        if self.state.may_end:
            found.append(self.finish(answer.end_logprob))
        return found


def normalised(logprob: float, length: int) -> float:
    """Log P / ((5 + L)^0.7 / 6^0.7)."""
    return logprob / math.pow((5 + length) / 6, 0.7)


def ranked(hypotheses: Iterable[Hypothesis], width: int | None = None) -> list[Hypothesis]:
    """Distinct hypotheses, best first (ties by text), at most `width`."""
    distinct = {h.key: h for h in sorted(hypotheses, key=lambda h: h.score)}
    return sorted(distinct.values(), key=lambda h: (-h.score, h.text))[:width]


def split(hypotheses: Sequence[Hypothesis]) -> tuple[list[Hypothesis], list[Hypothesis]]:
    """The live ones and the finished ones."""
    return [h for h in hypotheses if not h.finished], [h for h in hypotheses if h.finished]
