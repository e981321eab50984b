"""The checkpoint of a tuning run, from which an interrupted one is resumed, and atomic writing of its files."""

import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch

from fewparse.errors import SourceError, TuningError
from fewparse.files import atomic_replacement, read_bytes

DIGEST_SIZE = hashlib.sha256().digest_size


class Checkpoint:
    """A file with the state after the last epoch; only runs with the same `key` can load it.

    The file starts with a digest of key and state, so that a damaged file or one of another run is ignored.
    """

    def __init__(self, path: Path, key: str) -> None:
        self._path = path
        self._key = key

    def load(self) -> dict[str, Any] | None:
        """Return the saved state; None if there is none, or it is damaged or of another run."""
        try:
            content = read_bytes(self._path, SourceError)
        except SourceError:
            return None
        digest, body = content[:DIGEST_SIZE], content[DIGEST_SIZE:]
        if digest != self._digest(body):
            return None
        state: dict[str, Any] = torch.load(io.BytesIO(body), weights_only=True)
        return state

    def save(self, state: dict[str, Any]) -> None:
        """Replace the saved state; raise `TuningError` if the file cannot be written."""
        buffer = io.BytesIO()
        torch.save(state, buffer)
        body = buffer.getvalue()
        with replacing(self._path) as temporary:
            temporary.write_bytes(self._digest(body) + body)

    def remove(self) -> None:
        """Delete the file, if there is one."""
        with suppress(OSError):  # the result is written, and a finished run can be resumed too
            self._path.unlink(missing_ok=True)

    def _digest(self, body: bytes) -> bytes:
        return hashlib.sha256(self._key.encode() + body).digest()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary file that replaces `path` at the end; an `OSError` becomes a `TuningError`."""
    try:
        with atomic_replacement(path) as temporary:
            yield temporary
    except OSError as error:
        raise TuningError(
            f"{path} cannot be written: {error.strerror or error}",
            "Free some disk space, or write elsewhere with --out. The same command resumes after the last epoch.",
        ) from None
