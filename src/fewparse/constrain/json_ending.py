"""Complete a prefix of a JSON text: close what is open, and add what is still demanded."""

import random

import numpy as np

from fewparse.constrain.json_state import JsonState

MAX_BYTES = 4_000
MAX_ATTEMPTS = 8
IN_STRING = (b'"',)
OUTSIDE = (b"}", b"]", b'"', b"0", b"n", b"f", b"t", b"1", b",", b"[", b"{")
"""What is tried first: what closes something, then short values."""


def short_ending(start: JsonState) -> bytes | None:
    """Return a short suffix after which a text may end; None if none was found.

    The first attempt takes what closes something wherever it can. If that does not end, as in a string whose pattern
    has an unbounded repetition, further attempts choose at random.
    """
    for seed in range(MAX_ATTEMPTS):
        found = _attempt(start, random.Random(seed), always_close=seed == 0)
        if found is not None:
            return found
    return None


def _attempt(start: JsonState, rng: random.Random, always_close: bool) -> bytes | None:
    state, suffix = start, b""
    while not state.may_end:
        if len(suffix) > MAX_BYTES:
            return None
        piece = state.forced() or _choice(state, rng, always_close)
        following = state.advance(piece) if piece else None
        if not isinstance(following, JsonState):
            return None
        state, suffix = following, suffix + piece
    return suffix


def _choice(state: JsonState, rng: random.Random, always_close: bool) -> bytes:
    """Return one of the bytes that may follow; empty if there is none."""
    allowed = [bytes([int(byte)]) for byte in np.unique(state.vocabulary.first_bytes[state.mask()])]
    preferred = [byte for byte in (IN_STRING if state.in_string else OUTSIDE) if byte in allowed]
    if preferred and (always_close or rng.random() < 0.8):
        return preferred[0]
    printable = [byte for byte in allowed if b" " <= byte <= b"~"]
    return rng.choice(printable or allowed or [b""])
