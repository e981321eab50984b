"""What one answer of a server tells a probe."""

from collections.abc import Mapping, Sequence
from typing import Any

from fewparse.lm.http.responses import END_BYTES
from fewparse.lm.http.wire import Choice, Entry
from fewparse.lm.model import ScoredToken
from fewparse.vocabulary import is_text

NOISE = 0.5
"""Nats by which one and the same score may differ between requests."""


def joined(entries: Sequence[Entry]) -> bytes:
    """What entries spell."""
    return b"".join(entry.token.bytes for entry in entries)


def alike(one: Entry, other: Entry) -> bool:
    """Whether two entries tell of the same token and position."""
    return one.token.bytes == other.token.bytes and abs(one.logprob - other.logprob) < NOISE


def stop_within(said: Choice) -> str | None:
    """A word that a server could be told to stop at: not the first that was said, nor one that came before."""
    before = b""
    for i, entry in enumerate(said.entries):
        piece = entry.token.bytes
        if i and is_text(piece) and piece.strip() and piece not in before and piece not in END_BYTES:
            return piece.decode()
        before += piece
    return None


def vocabulary(told: Sequence[ScoredToken], size: int) -> tuple[bytes, ...] | None:
    """The bytes of every token, from the alternatives at one position, where they are all there."""
    tokens = {scored.token.id: scored.token.bytes for scored in told}
    return tuple(tokens[i] for i in range(size)) if size and tokens.keys() == set(range(size)) else None


def facts(told: Any) -> Mapping[str, Any]:
    """An object of a server's, or an empty one."""
    return told if isinstance(told, dict) else {}
