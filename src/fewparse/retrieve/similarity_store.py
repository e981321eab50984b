"""Similarities of utterances on disk, so that a language model computes each of them once.

An entry is the similarity of one utterance to every utterance of a pool by one model. The file is shared by all
processes of a user; as in the response cache, neither reading nor writing raises.
"""

import base64
import binascii
import hashlib
import json
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fewparse.files import cache_folder
from fewparse.lm.response_cache import ResponseCache, cache_key, warn

Scores = NDArray[np.float64]
FORMULA = 1
"""The version of how similarities are computed; others are not found."""

MAX_BYTES = 1 << 28
STORED_TYPE = "<f8"


def similarity_path() -> Path:
    """Return the path of the user's similarities."""
    return cache_folder() / "similarities.sqlite"


def open_similarities(on_warning: Callable[[str], None] = warn) -> ResponseCache:
    """Open the file of the user's similarities."""
    return ResponseCache(similarity_path(), MAX_BYTES, on_warning, content="similarity")


class SimilarityStore:
    """The similarities of a pool by the model with this identity; without an identity, nothing is stored."""

    def __init__(self, identity: str | None, pool: Sequence[str]) -> None:
        self._identity = identity
        self._length = len(pool)
        self._pool_sha256 = hashlib.sha256(json.dumps(list(pool)).encode()).hexdigest()
        self._cache = open_similarities()
        weakref.finalize(self, self._cache.close)

    @property
    def working(self) -> bool:
        """Whether similarities can be stored."""
        return self._identity is not None and self._cache.working

    def get(self, utterance: str) -> Scores | None:
        """Return the similarities of an utterance, or None."""
        text = self._cache.get(self._key(utterance)) if self.working else None
        try:
            scores = np.frombuffer(base64.b64decode(text, validate=True), STORED_TYPE) if text else None
        except (TypeError, ValueError, binascii.Error):
            return None
        return None if scores is None or len(scores) != self._length or np.isnan(scores).any() else scores

    def put(self, utterance: str, scores: Scores) -> None:
        """Store the similarities of an utterance."""
        if self.working:
            self._cache.put(self._key(utterance), base64.b64encode(scores.astype(STORED_TYPE).tobytes()).decode())

    def _key(self, utterance: str) -> str:
        parts = {"formula": FORMULA, "model": self._identity, "pool": self._pool_sha256, "utterance": utterance}
        return cache_key(parts)
