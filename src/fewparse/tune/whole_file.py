"""Files that are written whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fewparse.errors import TuningError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A scratch file that takes the place of `path` once it is whole."""
    scratch = path.with_name(f"{path.name}.part")
    try:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            yield scratch
            with scratch.open("rb+") as file:
                os.fsync(file.fileno())
            os.replace(scratch, path)
        finally:
            scratch.unlink(missing_ok=True)
    except OSError as error:
        raise TuningError(
            f"{path} cannot be written: {error.strerror or error}",
            "Make room, or choose another place with --out. The same command goes on after the last epoch.",
        ) from None
