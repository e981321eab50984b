"""Parse completion responses: both formats of log-probabilities into one, invalid values rejected.

Legacy format: parallel lists `tokens`, `token_logprobs`, `top_logprobs`. Chat format: `content`, a list of entries
with their own alternatives, bytes and (llama.cpp) ids.
"""

import math
import re
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from fewparse.errors import ServerUnsupported
from fewparse.lm.http.errors import error_message
from fewparse.lm.http.schema import MAX_TOKEN_ID
from fewparse.lm.model import ScoredToken, Token
from fewparse.retry import RetryableError
from fewparse.text import REPLACEMENT, is_unicode, without_surrogates

LogprobsFormat = Literal["legacy", "content"]
MIN_LOGPROB = -1_000.0
"""Lower bound of log-probabilities: some servers write a probability of zero as -9999."""
MAX_TOKEN_COUNT = 1_000_000_000
ROUNDING = 0.02
"""How far the probabilities of one position may exceed 1 in sum, since servers round them."""
ESCAPED = re.compile(rb"\\x([0-9a-fA-F]{2})")
UNREADABLE = Token(b"", -2)
"""A token whose bytes the server omits or merges with its neighbours; no constraint accepts it."""


class Entry(NamedTuple):
    """A sampled token with its alternatives, best first (often including the token itself)."""

    token: Token
    logprob: float
    alternatives: tuple[ScoredToken, ...]


class Choice(NamedTuple):
    """One completion of a response."""

    text: str
    entries: tuple[Entry, ...]
    finish: str | None


class Reply(NamedTuple):
    """The completions of a response, and its token counts (None if not reported).

    `reasoning_tokens` are those of the completions that are not part of their texts.
    """

    choices: tuple[Choice, ...]
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int
    reasoning_tokens: int = 0


def parse_reply(payload: Any) -> Reply:
    """Parse a response of /v1/completions or /v1/chat/completions.

    Raises RetryableError if it has no choices, which an overloaded server may return. Raises ServerUnsupported if
    the JSON has another structure: the response was not damaged in transit, so a retry would return the same.
    """
    if not isinstance(payload, dict) or not isinstance(payload.get("choices"), list):
        message = error_message(payload)
        raise RetryableError(f"the response has no completions{f': {message}' if message else ''}")
    try:
        ordered = sorted(payload["choices"], key=lambda choice: choice.get("index") or 0)
        choices = tuple(map(parse_choice, ordered))
        usage = payload.get("usage") or {}
        details = usage.get("prompt_tokens_details") or {}
        prompt, completion = token_count(usage.get("prompt_tokens")), token_count(usage.get("completion_tokens"))
        cached = token_count(details.get("cached_tokens")) or 0
        reasoning = token_count((usage.get("completion_tokens_details") or {}).get("reasoning_tokens")) or 0
        return Reply(choices, prompt, completion, cached, reasoning)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise ServerUnsupported(
            "the server's response does not have the structure of completions", "Use an OpenAI-compatible server."
        ) from None


def token_count(value: Any) -> int | None:
    """Return a number of tokens, or None if the value is not one."""
    return value if type(value) is int and 0 <= value <= MAX_TOKEN_COUNT else None


def logprobs_format(choice: Any) -> LogprobsFormat:
    """Return the format of a choice's log-probabilities."""
    logprobs = choice.get("logprobs")
    return "content" if isinstance(logprobs, dict) and logprobs.get("content") is not None else "legacy"


def parse_choice(choice: Any) -> Choice:
    """Parse one completion; without log-probabilities it has no entries."""
    text = choice["text"] if "text" in choice else message_text(choice["message"])
    logprobs = choice.get("logprobs")
    entries: tuple[Entry, ...] = ()
    if isinstance(logprobs, dict):
        if logprobs.get("content") is not None:
            entries = tuple(map(parse_entry, logprobs["content"]))
        elif logprobs.get("tokens") is not None:
            entries = parse_legacy(logprobs)
    return Choice(without_surrogates(text or ""), entries, choice.get("finish_reason"))


def message_text(message: Any) -> str | None:
    """Return the text of a message: the input of the custom tool that it calls, or else its content."""
    inputs = [call["custom"]["input"] for call in message.get("tool_calls") or () if call.get("type") == "custom"]
    text: str | None = inputs[0] if inputs else message["content"]
    return text


def parse_entry(entry: Any) -> Entry:
    """Parse an entry of the chat format."""
    alternatives = [
        ScoredToken(parse_token(other), parse_logprob(other["logprob"]))
        for other in entry.get("top_logprobs") or ()
    ]
    token = parse_token(entry)
    return Entry(token, optional_logprob(entry["logprob"]), without_sampled(token, best_first(alternatives)))


def parse_token(entry: Any) -> Token:
    """Parse a token with its bytes and, if reported, its id."""
    values, number = entry.get("bytes"), entry.get("id")
    if number is not None and (type(number) is not int or not 0 <= number <= MAX_TOKEN_ID):
        raise ValueError
    if values is None:
        return token_from_text(entry["token"], -1 if number is None else number)
    return Token(bytes([*values]), -1 if number is None else number)


def parse_legacy(lists: Any) -> tuple[Entry, ...]:
    """Parse the parallel lists of the legacy format; the first token of an echo has no log-probability."""
    tokens, logprobs = lists["tokens"], lists["token_logprobs"]
    tops = lists.get("top_logprobs") or [None] * len(tokens)
    if not len(tokens) == len(logprobs) == len(tops):
        raise ValueError
    entries = []
    for text, logprob, top in zip(tokens, logprobs, tops, strict=True):
        alternatives = best_first(
            [ScoredToken(token_from_text(t), parse_logprob(p)) for t, p in (top or {}).items()]
        )
        token = token_from_text(text)
        entries.append(Entry(token, optional_logprob(logprob), without_sampled(token, alternatives)))
    return tuple(entries)


def token_from_text(text: str, number: int = -1) -> Token:
    """Return a token reported as text only; `UNREADABLE` if part of a character was replaced in it."""
    return UNREADABLE if REPLACEMENT in text or not is_unicode(text) else Token(token_bytes(text), number)


def token_bytes(text: str) -> bytes:
    r"""Return the bytes of a token reported as text; part of a character is written as `bytes:\xe2\x80`."""
    if text.startswith("bytes:"):
        escapes = text.removeprefix("bytes:").encode()
        if ESCAPED.sub(b"", escapes) == b"" and escapes:
            return ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), escapes)
    return text.encode()


def optional_logprob(value: Any) -> float:
    """Parse a log-probability; NaN if there is none, as at the first token of an echo."""
    return math.nan if value is None else parse_logprob(value)


def parse_logprob(value: Any) -> float:
    """Parse a log-probability; raise ServerUnsupported if it is NaN or above 0."""
    logprob = float(value)
    if math.isnan(logprob) or logprob > 1e-3:
        raise ServerUnsupported(
            f"the server returned a log-probability of {logprob:g}", "A probability is between 0 and 1."
        )
    return max(min(logprob, 0.0), MIN_LOGPROB)


def best_first(tokens: list[ScoredToken]) -> tuple[ScoredToken, ...]:
    """Return the distinct tokens, best first."""
    distinct = {scored.token: scored for scored in tokens}
    return tuple(sorted(distinct.values(), key=lambda scored: -scored.logprob))


def without_sampled(token: Token, alternatives: tuple[ScoredToken, ...]) -> tuple[ScoredToken, ...]:
    """Drop the sampled token if it is the last: servers list it after the best ones, even if others are better."""
    return alternatives[:-1] if len(alternatives) > 1 and alternatives[-1].token == token else alternatives


def has_valid_logprobs(entry: Entry) -> bool:
    """Return whether the entry has a log-probability, and its alternatives' probabilities sum to at most 1."""
    total = math.fsum(math.exp(other.logprob) for other in entry.alternatives)
    return not math.isnan(entry.logprob) and total <= 1 + ROUNDING


def is_merged(entry: Entry) -> bool:
    """Return whether an entry represents several tokens: likely enough to be an alternative, but not listed."""
    others = entry.alternatives
    if entry.token.id >= 0:
        return any(o.token.id == entry.token.id and o.token.bytes != entry.token.bytes for o in others)
    likelier = bool(others) and entry.logprob > others[-1].logprob + 1e-4
    return likelier and all(other.token.bytes != entry.token.bytes for other in others)


def spelling(entries: Iterable[Entry]) -> bytes:
    """Return the bytes of consecutive entries."""
    return b"".join(entry.token.bytes for entry in entries)


def matches_text(choice: Choice, stop: bytes) -> bool:
    """Return whether the tokens of a choice spell its text, up to the end of the shorter one."""
    tokens = spelling(choice.entries)
    text = choice.text.split(REPLACEMENT)[0].encode()
    before_stop = tokens.split(stop)[0] if stop else tokens
    length = min(len(text), len(before_stop))
    return text[:length] == before_stop[:length]
