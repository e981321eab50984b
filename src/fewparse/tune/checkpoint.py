"""How far a tuning has come, kept in a file so that an interrupted one goes on."""

import hashlib
import io
from pathlib import Path
from typing import Any

import torch

from fewparse.tune.whole_file import replacing

SEAL = hashlib.sha256().digest_size


class Bookmark:
    """The state after the last epoch; it counts only for the same work, which `key` identifies."""

    def __init__(self, path: Path, key: str) -> None:
        self._path = path
        self._key = key

    def load(self) -> dict[str, Any] | None:
        """The state that was kept, if it belongs to this work and is whole."""
        try:
            kept = self._path.read_bytes()
        except OSError:
            return None
        seal, body = kept[:SEAL], kept[SEAL:]
        if seal != self._seal(body):
            return None
        state: dict[str, Any] = torch.load(io.BytesIO(body), weights_only=True)
        return state

    def save(self, state: dict[str, Any]) -> None:
        """Keep a state in place of the last one."""
        written = io.BytesIO()
        torch.save(state, written)
        body = written.getvalue()
        with replacing(self._path) as scratch:
            scratch.write_bytes(self._seal(body) + body)

    def remove(self) -> None:
        """Forget it: the work is done."""
        self._path.unlink(missing_ok=True)

    def _seal(self, body: bytes) -> bytes:
        """What stands before a state that is whole and of this work."""
        return hashlib.sha256(self._key.encode() + body).digest()
