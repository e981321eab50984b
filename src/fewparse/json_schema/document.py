"""Read JSON texts and JSON Schemas; every mistake is shown with its line."""

import json
from pathlib import Path
from typing import Any

from fewparse.errors import SchemaError
from fewparse.files import DuplicateKey, read_text, unique_object, value_reason
from fewparse.limits import GRAMMAR_BYTES

Schema = dict[str, Any] | bool


def read_schema(path: Path) -> Schema:
    """Return the schema of a file: a JSON object, true or false."""
    return parse_schema(read_text(path, SchemaError, GRAMMAR_BYTES), path)


def parse_schema(source: str, path: Path | str) -> Schema:
    """Return the schema of a JSON text; `path` is shown in messages."""
    try:
        value = json.loads(source, object_pairs_hook=unique_object)
    except json.JSONDecodeError as error:
        raise SchemaError(f"not valid JSON: {error.msg}", path, error.lineno, error.colno, source) from None
    except DuplicateKey as error:
        raise SchemaError(f"the key {error.args[0]!r} occurs twice in an object", path) from None
    except RecursionError:
        raise SchemaError("its values are nested too deeply", path) from None
    except ValueError as error:
        raise SchemaError(f"not readable JSON: {value_reason(error)}", path) from None
    if not isinstance(value, dict | bool):
        raise SchemaError("a JSON Schema is an object, true or false", path, 1, 1, source)
    return value
