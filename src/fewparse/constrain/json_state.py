"""States of JSON texts in which no key, and no item that must be unique, is repeated: the engine does not see to it."""

import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from fewparse.constrain.json_scan import Rejected, Scan
from fewparse.constrain.state import State
from fewparse.vocabulary import Mask, Vocabulary

MAX_STEPS = 2_000
EXPONENT = re.compile(rb"[.eE]|[0-9]{3}")


class JsonState(State):
    """A state of the engine that also rejects repetitions.

    `text` is the prefix, and `scan` where it ends. With `finite_keys`, an object may have so few possible keys that
    all of them are used; then a further key must not be started.
    """

    def __init__(self, inner: State, text: bytes, scan: Scan, finite_keys: bool) -> None:
        self.vocabulary = inner.vocabulary
        self._inner = inner
        self._text = text
        self._scan = scan
        self._finite_keys = finite_keys

    @property
    def may_end(self) -> bool:
        """Whether the prefix is a valid text."""
        return self._inner.may_end

    @property
    def in_string(self) -> bool:
        """Whether the prefix ends within a string."""
        return self._scan.in_string

    def advance(self, piece: bytes) -> State | None:
        """Consume the bytes, unless they repeat something or lead to where only repetitions may follow."""
        following = self._after(piece)
        return following if following is not None and following._can_continue() else None

    def mask(self) -> Mask:
        """Return the engine's mask without the tokens that repeat something."""
        return self._mask

    @cached_property
    def _mask(self) -> Mask:
        mask = self._inner.mask()
        rejected = [i for i in self._doubtful(mask) if not self._is_allowed(self.vocabulary.tokens[i])]
        if rejected:
            mask = mask.copy()
            mask[rejected] = False
        return mask

    def _after(self, piece: bytes) -> "JsonState | None":
        """Return the state after some bytes; None if they may not follow or repeat something."""
        scan = self._scanned(piece) if piece else None
        inner = None if scan is None else self._inner.advance(piece)
        return None if scan is None or inner is None else self._with(inner, piece, scan)

    def _with(self, inner: State, piece: bytes, scan: Scan) -> "JsonState":
        return JsonState(inner, self._text + piece, scan, self._finite_keys)

    def _scanned(self, piece: bytes) -> Scan | None:
        try:
            return self._scan.after(self._text + piece, len(self._text))
        except (Rejected, ValueError, IndexError):  # the last two: the bytes are not JSON here
            return None

    def _can_continue(self) -> bool:
        """Return whether something else than repetitions can follow."""
        agenda = [self]
        for _ in range(MAX_STEPS):
            if not agenda:
                return False
            state = agenda.pop()
            if not state._is_at_risk(state._scan, state._text):
                return True
            following = np.unique(self.vocabulary.first_bytes[state._inner.mask()])
            agenda += filter(None, (state._after(bytes([int(byte)])) for byte in following))
        return True

    def _is_at_risk(self, scan: Scan, text: bytes) -> bool:
        """Return whether a key or item under way may still become one that was used before."""
        return any(True for _ in self._rests(scan, text))

    def _rests(self, scan: Scan, text: bytes) -> Iterator[bytes]:
        """Yield what is missing after a text until a key or item is repeated."""
        for frame in scan.elements:
            if frame.unique or self._finite_keys:
                prefix = b"" if frame.start is None else text[frame.start :]
                yield from (used[len(prefix) :] for used in frame.used if used.startswith(prefix))

    def _doubtful(self, mask: Mask) -> Iterator[int]:
        """Yield the tokens of a mask that may have to be rejected."""
        scan, structure = self._scan, token_structure(self.vocabulary)
        if scan.exponent is not None:
            yield from np.flatnonzero(mask).tolist()
        elif not scan.in_string:
            yield from np.flatnonzero(mask & structure.with_exponent).tolist()
        if not any(frame.used or frame.unique for frame in scan.frames):
            return
        if not self._finite_keys and not any(frame.unique for frame in scan.frames):
            # To repeat a key, a token must close it; from outside of a key it must open it before.
            needed = 1 if scan.in_key else 3 if scan.in_string else 2
            yield from np.flatnonzero(mask & (structure.quotes >= needed)).tolist()
        elif not scan.in_string:
            yield from np.flatnonzero(mask).tolist()
        else:
            yield from np.flatnonzero(mask & (structure.quotes > 0)).tolist()
            for start in {rest[:end] for rest in self._rests(scan, self._text) for end in range(1, len(rest))}:
                low, high = self.vocabulary.with_prefix(start)
                ids = self.vocabulary.ids_at(low, self.vocabulary.after_equal(start, low, high))
                yield from ids[mask[ids]].tolist()

    def _is_allowed(self, token: bytes) -> bool:
        scan = self._scanned(token)
        if scan is None:
            return False
        return not self._is_at_risk(scan, self._text + token) or self.advance(token) is not None


class TokenStructure(NamedTuple):
    """The number of quotes in each token, and a mask of the tokens that may be part of an exponent."""

    quotes: NDArray[np.intp]
    with_exponent: Mask


_structures: WeakKeyDictionary[Vocabulary, TokenStructure] = WeakKeyDictionary()


def token_structure(vocabulary: Vocabulary) -> TokenStructure:
    """Return the structure of the tokens of a vocabulary, found once per vocabulary."""
    if vocabulary not in _structures:
        quotes = np.array([token.count(b'"') for token in vocabulary.tokens])
        exponents = np.array([EXPONENT.search(token) is not None for token in vocabulary.tokens])
        _structures[vocabulary] = TokenStructure(quotes, exponents)
    return _structures[vocabulary]
