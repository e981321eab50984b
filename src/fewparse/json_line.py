"""One line of a JSON-lines file, or a clear error."""

import json
from pathlib import Path
from typing import Any

from fewparse.errors import SourceError


def read_object(
    text: str, number: int, path: Path, complaint: type[SourceError], hint: str | None = None
) -> dict[str, Any]:
    """The object on a line; the complaint is raised, with its place, if there is none."""
    source = "\n" * (number - 1) + text
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise complaint(f"not valid JSON: {error.msg}", path, number, error.colno, source, hint) from None
    except (ValueError, RecursionError) as error:
        raise complaint(f"not readable JSON: {error}", path, number, hint=hint) from None
    if not isinstance(value, dict):
        raise complaint("expected an object", path, number, 1, source, hint)
    return value
