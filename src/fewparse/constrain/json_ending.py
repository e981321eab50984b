"""Complete a prefix of a JSON text: close what is open, and add what is still demanded."""

import json
import random
from collections.abc import Iterator, Sequence

import numpy as np

from fewparse.constrain.json_state import JsonState

MAX_BYTES = 4_000
MAX_ATTEMPTS = 8
MAX_STEPS = 5_000
"""The steps of all attempts together."""
MAX_EXAMPLES = 100
IN_STRING = (b'"',)
OUTSIDE = (b"}", b"]", b'"', b"0", b"n", b"f", b"t", b"1", b",", b"[", b"{")
"""What is tried first: what closes something, then short values."""


def short_ending(start: JsonState, examples: Sequence[bytes] = ()) -> bytes | None:
    """Return a short suffix after which a text may end; None if none was found.

    `examples` are contents that strings may need to have, such as texts with the patterns of a schema.

    The first attempt takes what closes something wherever it can. If that does not end, as in a string whose
    pattern has an unbounded repetition, further attempts choose at random.
    """
    steps = iter(range(MAX_STEPS))
    for seed in range(MAX_ATTEMPTS):
        found = _attempt(start, examples, random.Random(seed), steps, always_close=seed == 0)
        if found is not None:
            return found
    return None


def _attempt(
    start: JsonState, examples: Sequence[bytes], rng: random.Random, steps: Iterator[int], always_close: bool
) -> bytes | None:
    state, suffix = start, b""
    while not state.may_end:
        if len(suffix) > MAX_BYTES or next(steps, None) is None:
            return None
        piece = state.forced() or _rest_of_string(state, examples) or _choice(state, rng, always_close)
        following = state.advance(piece) if piece else None
        if not isinstance(following, JsonState):
            return None
        state, suffix = following, suffix + piece
    return suffix


def _rest_of_string(state: JsonState, examples: Sequence[bytes]) -> bytes:
    """Return an example and the end of the string, if it cannot end at once; empty if no example may follow."""
    if not state.in_string or state.advance(b'"') is not None:
        return b""
    rests = (json.dumps(example.decode(), ensure_ascii=False).encode()[1:] for example in examples[:MAX_EXAMPLES])
    return next((rest for rest in rests if state.advance(rest) is not None), b"")


def _choice(state: JsonState, rng: random.Random, always_close: bool) -> bytes:
    """Return one of the bytes that may follow; empty if there is none."""
    allowed = [bytes([int(byte)]) for byte in np.unique(state.vocabulary.first_bytes[state.mask()])]
    preferred = [byte for byte in (IN_STRING if state.in_string else OUTSIDE) if byte in allowed]
    if preferred and (always_close or rng.random() < 0.8):
        return preferred[0]
    printable = [byte for byte in allowed if b" " <= byte <= b"~"]
    return rng.choice(printable or allowed or [b""])
