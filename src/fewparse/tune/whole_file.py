"""Write the files of a tuning run whole or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fewparse.errors import TuningError
from fewparse.files import atomic_replacement


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary file that replaces `path` at the end; an `OSError` becomes a `TuningError`."""
    try:
        with atomic_replacement(path) as temporary:
            yield temporary
    except OSError as error:
        raise TuningError(
            f"{path} cannot be written: {error.strerror or error}",
            "Make room, or choose another place with --out. The same command goes on after the last epoch.",
        ) from None
