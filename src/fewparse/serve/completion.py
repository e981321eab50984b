"""Complete the start of an output by what its constraint allows to follow, up to the end of the next word."""

import numpy as np

from fewparse.constrain.state import Constraint, State

MAX_STATES = 4_000
MAX_BYTES = 60
BOUNDARIES = frozenset(b" ()[]{},;:\"'\n")
"""Bytes at which a continuation ends; one at its start does not end it."""


def completions(constraint: Constraint, text: str, limit: int) -> tuple[int, bool, list[str]]:
    """Return how many characters of a text may start an output, whether those may end one, and what may follow.

    The constraint is over single bytes. Each of at most `limit` continuations ends where a word ends.
    """
    valid, state = constraint.start().walk([char.encode() for char in text])
    return valid, state.may_end, continuations(state, limit)


def continuations(start: State, limit: int) -> list[str]:
    """Return the distinct continuations up to the end of a word, in the order of their bytes, words first.

    Words come before brackets and quotes, so that the many texts that may be quoted do not use up the limit.
    """
    found: dict[str, None] = {}
    frontier: list[tuple[bytes, State]] = [(b"", start)]
    for _ in range(MAX_STATES):
        if not frontier or len(found) >= limit:
            break
        prefix, state = frontier.pop()
        following = []
        for byte in sorted(np.unique(state.vocabulary.first_bytes[state.mask()]).tolist(), key=words_first):
            piece = bytes([byte])
            advanced = state.advance(piece)
            if advanced is None:
                continue
            grown = prefix + piece
            if ends_word(grown) or len(grown) >= MAX_BYTES or ends(advanced):
                found.setdefault(grown.decode(errors="replace"))
            else:
                following.append((grown, advanced))
        if state.may_end and prefix:
            found.setdefault(prefix.decode(errors="replace"))
        frontier += reversed(following)
    return list(found)[:limit]


def words_first(byte: int) -> tuple[bool, int]:
    """Return the place of a byte in the order of continuations."""
    return byte in BOUNDARIES, byte


def ends_word(text: bytes) -> bool:
    """Return whether a continuation ends with a boundary after other characters."""
    return text[-1] in BOUNDARIES and any(byte not in BOUNDARIES for byte in text)


def ends(state: State) -> bool:
    """Return whether nothing may follow."""
    return state.may_end and not state.mask().any()
