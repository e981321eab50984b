"""From what a server tells to what search reads: thoughts and completions, none of them better than it is."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from fewparse.lm.http.wire import UNREADABLE, Choice, Entry, merged
from fewparse.lm.model import Completion, Guide, NextTokens, Prefix, Sampling, ScoredToken, Token
from fewparse.vocabulary import Mask, Vocabulary, is_text

END_MARKS = (
    "<|endoftext|>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|end|>",
    "<|endofturn|>",
    "<|return|>",
    "</s>",
    "<eos>",
    "<end_of_turn>",
    "<turn|>",
    "<｜end▁of▁sentence｜>",
)
"""What the models of our day end with, as servers write it."""
END_BYTES = frozenset(mark.encode() for mark in END_MARKS)


class Reader(NamedTuple):
    """What is known of a model's tokens: all of them where its server tells, and which end an output."""

    vocabulary: Vocabulary | None = None
    end_ids: frozenset[int] = frozenset()

    def ends(self, token: Token, stop: bytes) -> bool:
        """Whether a token ends an output. One without text is markup: without an id, it can only be the end."""
        if token.id in self.end_ids or token.bytes in END_BYTES or (not token.bytes and token.id == -1):
            return True
        return bool(stop) and token.bytes.startswith(stop)

    def thought(
        self, told: Iterable[ScoredToken], k: int, stop: bytes, text: bytes | None, mask: Mask | None = None
    ) -> NextTokens:
        """What the model thinks, from the tokens that its server tells, best first.

        Where prefixes are sent as text, `text` is what was said: only what leaves whole characters can follow.
        What is not told is no likelier than the least likely token told, nor than all that is left: that bound
        stands for an ending that is not among them.
        """
        told = tuple(told)
        ends = [scored.logprob for scored in told if self.ends(scored.token, stop)]
        others = [scored for scored in told if scored.token.bytes and not self.ends(scored.token, stop)]
        if text is not None:
            others = [scored for scored in others if is_text(text + scored.token.bytes)]
        if mask is not None:
            others = [scored for scored in others if 0 <= scored.token.id < len(mask) and mask[scored.token.id]]
        whole = self.vocabulary is not None and len(told) >= len(self.vocabulary)
        bound = -math.inf if whole else unlisted(told)
        ending = float(np.logaddexp.reduce(ends)) if ends else bound
        complete = len(others) <= k and (whole or (mask is not None and len(others) == int(mask.sum())))
        return NextTokens(tuple(others[:k]), ending, complete, bound)

    def completion(
        self, choice: Choice, length: int, sampling: Sampling, guide: Guide | None, text: bytes | None
    ) -> Completion:
        """A choice up to the stop, to a token that cannot be read, or to what its guide refuses.

        `length` counts the tokens of its prefix. One that ended where the server does not show what the model
        thought there has no position more than tokens.
        """
        tokens: list[Token] = []
        logprobs: list[float] = []
        positions: list[NextTokens] = []
        for entry in choice.entries[: max(0, sampling.max_tokens - length)]:
            if self.is_merged(entry):
                return Completion((*tokens, UNREADABLE), (*logprobs, entry.logprob), tuple(positions), False)
            positions.append(self.thought(entry.alternatives, sampling.alternatives, sampling.stop, text))
            if self.ends(entry.token, sampling.stop):
                return Completion(tuple(tokens), tuple(logprobs), tuple(positions), True)
            token = entry.token
            if text is not None:
                text += token.bytes
                token = token if is_text(text) else UNREADABLE
            tokens.append(token)
            logprobs.append(entry.logprob)
            if not token.bytes or (guide is not None and (guide := guide.advance(token.bytes)) is None):
                return Completion(tuple(tokens), tuple(logprobs), tuple(positions), False)
        ended = choice.finish == "stop" and length + len(tokens) < sampling.max_tokens
        return Completion(tuple(tokens), tuple(logprobs), tuple(positions), ended)

    def is_merged(self, entry: Entry) -> bool:
        """Whether an entry stands for several tokens: it tells the log-probability of one of them only."""
        known = self.vocabulary
        if known is not None and 0 <= entry.token.id < len(known):
            return known.tokens[entry.token.id] != entry.token.bytes
        return merged(entry)


def unlisted(told: tuple[ScoredToken, ...]) -> float:
    """The most that any token which is not told can have."""
    if not told:
        return 0.0
    rest = 1.0 - math.fsum(math.exp(scored.logprob) for scored in told)
    return min(told[-1].logprob, math.log(rest) if rest > 1e-9 else 0.0)


def whole(prefix: Prefix) -> bytes:
    """What a prefix says."""
    return b"".join(token.bytes for token in prefix)
