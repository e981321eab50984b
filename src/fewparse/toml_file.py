"""Read a TOML file that a user wrote: a mistake is shown at its place."""

import re
import tomllib
from pathlib import Path
from typing import Any

from fewparse.errors import DomainError


def parse_toml(source: str, path: Path) -> dict[str, Any]:
    """The table of a source text, or a `DomainError` with line, column and caret."""
    try:
        return tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"line (\d+), column (\d+)", str(error))
        line = int(place[1]) if place else source.count("\n") + 1
        column = int(place[2]) if place else None
        message = re.sub(r" \(at .*\)$", "", str(error))
        raise DomainError(f"not valid TOML: {message}", path, line, column, source) from None
