"""The two ways in which servers write log-probabilities, read into one; what cannot be true is refused.

Legacy: parallel lists `tokens`, `token_logprobs`, `top_logprobs`. Chat style: `content`, a list of entries with
their own alternatives, bytes and (llama.cpp) ids.
"""

import math
import re
from typing import Any, NamedTuple

from fewparse.errors import ServerUnfit
from fewparse.lm.http.client import Failed
from fewparse.lm.http.errors import message
from fewparse.lm.model import ScoredToken, Token

LEGACY, CONTENT = "legacy", "content"
IMPOSSIBLE = -1_000.0
"""Some servers write a probability of zero as -9999; and none is likelier than certain."""
SURROGATE = re.compile("[\ud800-\udfff]")
ROUNDING = 0.02
"""What the probabilities of one position may come to beyond 1, since servers round them."""
ESCAPED = re.compile(rb"\\x([0-9a-fA-F]{2})")
UNREADABLE = Token(b"", -2)
"""A token whose bytes the server does not tell, or merged with its neighbours: nothing lets it pass."""
LOST = "�"


class Entry(NamedTuple):
    """A token that a server sampled, with its alternatives, best first (often with the token itself)."""

    token: Token
    logprob: float
    alternatives: tuple[ScoredToken, ...]


class Choice(NamedTuple):
    """One completion as a server tells it."""

    text: str
    entries: tuple[Entry, ...]
    finish: str | None


class Reply(NamedTuple):
    """What a server answers, and what it says that this took (None where it does not say)."""

    choices: tuple[Choice, ...]
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int


def read_reply(answer: Any) -> Reply:
    """An answer of /v1/completions or /v1/chat/completions.

    One without choices may come from a server in trouble. One that is JSON and has another shape was not garbled
    on its way: the server would say it again.
    """
    if not isinstance(answer, dict) or not isinstance(answer.get("choices"), list):
        said = message(answer)
        raise Failed(f"its answer has no completions{f': {said}' if said else ''}")
    try:
        ordered = sorted(answer["choices"], key=lambda choice: choice.get("index") or 0)
        choices = tuple(map(read_choice, ordered))
        usage = answer.get("usage") or {}
        details = usage.get("prompt_tokens_details") or {}
        prompt, completion = counted(usage.get("prompt_tokens")), counted(usage.get("completion_tokens"))
        return Reply(choices, prompt, completion, counted(details.get("cached_tokens")) or 0)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise ServerUnfit(
            "the server's answer has not the shape of completions", "Use a server that is OpenAI-compatible."
        ) from None


def counted(told: Any) -> int | None:
    """A number of tokens, where a server tells one."""
    return told if type(told) is int and told >= 0 else None


def read_choice(choice: Any) -> Choice:
    """One completion; without log-probabilities it has no entries."""
    text = (choice["text"] if "text" in choice else choice["message"]["content"]) or ""
    told = choice.get("logprobs")
    entries: tuple[Entry, ...] = ()
    if isinstance(told, dict):
        if told.get("content") is not None:
            entries = tuple(map(read_entry, told["content"]))
        elif told.get("tokens") is not None:
            entries = read_legacy(told)
    return Choice(SURROGATE.sub(LOST, text), entries, choice.get("finish_reason"))


def read_entry(told: Any) -> Entry:
    """A chat-style entry."""
    others = [
        ScoredToken(token_of(other), logprob_of(other["logprob"])) for other in told.get("top_logprobs") or ()
    ]
    token = token_of(told)
    return Entry(token, logprob_or_none(told["logprob"]), without_extra(token, in_order(others)))


def token_of(told: Any) -> Token:
    """A token with its bytes and, where told, its id."""
    spelt, number = told.get("bytes"), told.get("id")
    if number is not None and (type(number) is not int or number < 0):
        raise ValueError
    if spelt is None:
        return named(told["token"], -1 if number is None else number)
    return Token(bytes([*spelt]), -1 if number is None else number)


def read_legacy(told: Any) -> tuple[Entry, ...]:
    """Parallel lists; the first token of an echoed prompt has no log-probability."""
    tokens, logprobs = told["tokens"], told["token_logprobs"]
    tops = told.get("top_logprobs") or [None] * len(tokens)
    if not len(tokens) == len(logprobs) == len(tops):
        raise ValueError
    entries = []
    for token, logprob, top in zip(tokens, logprobs, tops, strict=True):
        others = in_order([ScoredToken(named(t), logprob_of(p)) for t, p in (top or {}).items()])
        entries.append(Entry(named(token), logprob_or_none(logprob), without_extra(named(token), others)))
    return tuple(entries)


def named(token: str, number: int = -1) -> Token:
    """A token that is told as a text only; a half of a character that was replaced in it cannot be had back."""
    return UNREADABLE if LOST in token or SURROGATE.search(token) else Token(token_bytes(token), number)


def token_bytes(token: str) -> bytes:
    r"""The bytes of a token told as a text; half a character is told as `bytes:\xe2\x80`."""
    if token.startswith("bytes:"):
        spelt = token.removeprefix("bytes:").encode()
        if ESCAPED.sub(b"", spelt) == b"" and spelt:
            return ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), spelt)
    return token.encode()


def logprob_or_none(told: Any) -> float:
    """A log-probability, or NaN where there is none: at the first token of an echo."""
    return math.nan if told is None else logprob_of(told)


def logprob_of(told: Any) -> float:
    """A log-probability; what cannot be one is refused rather than ranked."""
    logprob = float(told)
    if math.isnan(logprob) or logprob > 1e-3:
        raise ServerUnfit(
            f"the server tells a log-probability of {logprob:g}", "A probability is between 0 and 1."
        )
    return max(min(logprob, 0.0), IMPOSSIBLE)


def in_order(tokens: list[ScoredToken]) -> tuple[ScoredToken, ...]:
    """Best first, each once."""
    distinct = {scored.token: scored for scored in tokens}
    return tuple(sorted(distinct.values(), key=lambda scored: -scored.logprob))


def without_extra(token: Token, told: tuple[ScoredToken, ...]) -> tuple[ScoredToken, ...]:
    """The best tokens: many servers tell the sampled one beside them, less likely than some that are untold."""
    return told[:-1] if len(told) > 1 and told[-1].token == token else told


def sound(entry: Entry) -> bool:
    """Whether there is a log-probability, and the probabilities of the alternatives add up to no more than 1."""
    total = math.fsum(math.exp(other.logprob) for other in entry.alternatives)
    return not math.isnan(entry.logprob) and total <= 1 + ROUNDING


def merged(entry: Entry) -> bool:
    """Whether an entry stands for several tokens: as likely as it is, it should be among its own alternatives."""
    others = entry.alternatives
    if entry.token.id >= 0:
        return any(o.token.id == entry.token.id and o.token.bytes != entry.token.bytes for o in others)
    likelier = bool(others) and entry.logprob > others[-1].logprob + 1e-4
    return likelier and all(other.token.bytes != entry.token.bytes for other in others)


def spells(choice: Choice, stop: bytes) -> bool:
    """Whether the tokens of a choice spell its text, as far as both go."""
    joined = b"".join(entry.token.bytes for entry in choice.entries)
    text = choice.text.split(LOST)[0].encode()
    upto = joined.split(stop)[0] if stop else joined
    short = min(len(text), len(upto))
    return text[:short] == upto[:short]
