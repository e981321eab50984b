"""Convert responses to NextTokens and Completion; unlisted log-probabilities are bounded from above."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from fewparse.lm.http.wire import UNREADABLE, Choice, Entry, is_merged
from fewparse.lm.model import Completion, Guide, NextTokens, Prefix, Sampling, ScoredToken, Token
from fewparse.vocabulary import Mask, Vocabulary, is_text

END_TOKENS = (
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
"""End tokens of current models, as servers write them."""
END_BYTES = frozenset(token.encode() for token in END_TOKENS)


class ResponseReader(NamedTuple):
    """Converts responses, given the model's vocabulary (if the server reports it) and its end tokens."""

    vocabulary: Vocabulary | None = None
    end_ids: frozenset[int] = frozenset()

    def is_end(self, token: Token, stop: bytes) -> bool:
        """Return whether a token ends an output. One with neither text nor id can only be an end token."""
        if token.id in self.end_ids or token.bytes in END_BYTES or (not token.bytes and token.id == -1):
            return True
        return bool(stop) and token.bytes.startswith(stop)

    def next_tokens(
        self, listed: Iterable[ScoredToken], k: int, stop: bytes, text: bytes | None, mask: Mask | None = None
    ) -> NextTokens:
        """Return the k best next tokens among those listed by the server, which are given best first.

        If prefixes are sent as text, `text` is the prefix: only tokens that complete its characters are kept.
        An unlisted token is at most as likely as the least likely listed one, and as the remaining probability;
        that bound is used for the end if no end token is listed.
        """
        listed = tuple(listed)
        ends = [scored.logprob for scored in listed if self.is_end(scored.token, stop)]
        others = [scored for scored in listed if scored.token.bytes and not self.is_end(scored.token, stop)]
        if text is not None:
            others = [scored for scored in others if is_text(text + scored.token.bytes)]
        if mask is not None:
            others = [scored for scored in others if 0 <= scored.token.id < len(mask) and mask[scored.token.id]]
        all_listed = self.vocabulary is not None and len(listed) >= len(self.vocabulary)
        bound = -math.inf if all_listed else unlisted_bound(listed)
        end_logprob = float(np.logaddexp.reduce(ends)) if ends else bound
        complete = len(others) <= k and (all_listed or (mask is not None and len(others) == int(mask.sum())))
        return NextTokens(tuple(others[:k]), end_logprob, complete, bound)

    def completion(
        self, choice: Choice, length: int, sampling: Sampling, guide: Guide | None, text: bytes | None
    ) -> Completion:
        """Convert a choice, up to the stop, an unreadable token, or a token that the guide rejects.

        `length` is the number of tokens of the prefix. If the choice ended and the server does not report the
        distribution there, the completion has as many positions as tokens.
        """
        tokens: list[Token] = []
        logprobs: list[float] = []
        positions: list[NextTokens] = []
        for entry in choice.entries[: max(0, sampling.max_tokens - length)]:
            if self.is_merged(entry):
                return Completion((*tokens, UNREADABLE), (*logprobs, entry.logprob), tuple(positions), False)
            positions.append(self.next_tokens(entry.alternatives, sampling.alternatives, sampling.stop, text))
            if self.is_end(entry.token, sampling.stop):
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
        """Return whether an entry represents several tokens, with the log-probability of only one of them."""
        vocabulary = self.vocabulary
        if vocabulary is not None and 0 <= entry.token.id < len(vocabulary):
            return vocabulary.tokens[entry.token.id] != entry.token.bytes
        return is_merged(entry)


def text_completion(choice: Choice, sampling: Sampling, guide: Guide | None, lead: str) -> Completion:
    """Convert a choice without log-probabilities, up to the stop.

    Its text is one token, or two if the guide rejects it: the longest start that the guide accepts, and the rest.
    White space around a text that no grammar has constrained is replaced by the lead.
    """
    text = choice.text if sampling.grammar is not None else lead + choice.text.strip()
    before, stopped, _ = text.encode().partition(sampling.stop)
    pieces: tuple[bytes, ...] = (before,)
    if before and guide is not None and guide.advance(before) is None:
        pieces = split_where_rejected(before.decode(), guide)
    tokens = tuple(Token(piece) for piece in pieces if piece)
    return Completion(tokens, (), (), bool(stopped) or choice.finish != "length")


def split_where_rejected(text: str, guide: Guide) -> tuple[bytes, bytes]:
    """Return the longest start of a text that a guide accepts, and the rest."""
    for i, char in enumerate(text):
        following = guide.advance(char.encode())
        if following is None:
            return text[:i].encode(), text[i:].encode()
        guide = following
    return text.encode(), b""


def unlisted_bound(listed: tuple[ScoredToken, ...]) -> float:
    """Return an upper bound on the log-probability of any unlisted token."""
    if not listed:
        return 0.0
    rest = 1.0 - math.fsum(math.exp(scored.logprob) for scored in listed)
    return min(listed[-1].logprob, math.log(rest) if rest > 1e-9 else 0.0)


def prefix_bytes(prefix: Prefix) -> bytes:
    """Return the bytes of a prefix."""
    return b"".join(token.bytes for token in prefix)
