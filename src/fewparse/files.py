"""Read text, TOML and JSON lines, with the location of every mistake, and replace files atomically."""

import json
import os
import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fewparse.errors import DomainError, SourceError


def read_text(path: Path, error_type: type[SourceError]) -> str:
    """Return a file as UTF-8 text; raise `error_type` if it cannot be read or is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise error_type(f"not UTF-8 text (byte {error.start + 1})", path) from None
    except OSError as error:
        raise error_type(f"cannot be read: {error.strerror}", path) from None


def parse_toml(source: str, path: Path) -> dict[str, Any]:
    """Parse TOML; a mistake is a `DomainError` with line, column and caret."""
    try:
        return tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        position = re.search(r"line (\d+), column (\d+)", str(error))
        line = int(position[1]) if position else source.count("\n") + 1
        column = int(position[2]) if position else None
        message = re.sub(r" \(at .*\)$", "", str(error))
        raise DomainError(f"not valid TOML: {message}", path, line, column, source) from None


def parse_json_line(
    text: str, number: int, path: Path, error_type: type[SourceError], hint: str | None = None
) -> dict[str, Any]:
    """Parse one line of a JSON-lines file as an object; a mistake is an `error_type` with line and column."""
    source = "\n" * (number - 1) + text
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise error_type(f"not valid JSON: {error.msg}", path, number, error.colno, source, hint) from None
    except (ValueError, RecursionError) as error:
        raise error_type(f"not readable JSON: {error}", path, number, hint=hint) from None
    if not isinstance(value, dict):
        raise error_type("expected an object", path, number, 1, source, hint)
    return value


@contextmanager
def atomic_replacement(path: Path) -> Iterator[Path]:
    """Yield the path of a temporary file that replaces `path` when the block ends without an error."""
    temporary = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
