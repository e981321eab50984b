"""Validate JSON texts with the library `jsonschema`, independently of the engine that constrains outputs."""

import json
from typing import Any

import jsonschema
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator

from fewparse.errors import InvalidProgram
from fewparse.files import DuplicateKey, unique_object, value_reason
from fewparse.json_schema.document import Schema


def make_validator(schema: Schema) -> Validator:
    """Return a validator for the draft that `$schema` names (default: 2020-12), which also asserts formats."""
    draft = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    return draft(schema, format_checker=draft.FORMAT_CHECKER)


def parse_json(text: str) -> Any:
    """Return the value of a JSON text without repeated keys; raise `InvalidProgram` with the mistake."""

    def not_json(name: str) -> Any:
        raise InvalidProgram(f"is not valid JSON: {name} is not a number of JSON", max(0, text.find(name)))

    try:
        return json.loads(text, object_pairs_hook=unique_object, parse_constant=not_json)
    except json.JSONDecodeError as error:
        raise InvalidProgram(f"is not valid JSON: {error.msg}", error.pos) from None
    except DuplicateKey as error:
        raise InvalidProgram(f"has the key {error.args[0]!r} twice in an object") from None
    except RecursionError:
        raise InvalidProgram("has values that are nested too deeply") from None
    except ValueError as error:
        raise InvalidProgram(f"is not readable JSON: {value_reason(error)}") from None


def check_value(value: Any, validator: Validator) -> None:
    """Raise `InvalidProgram` with the place and the reason if a value is not valid under a schema."""
    try:
        error = next(validator.iter_errors(value), None)
    except RecursionError:
        raise InvalidProgram("has values that are nested too deeply") from None
    if error is not None:
        raise InvalidProgram(f"is not valid under the schema: {error.json_path}: {reason(error)}")


def reason(error: ValidationError) -> str:
    """Return the message of a validation error, shortened."""
    return error.message if len(error.message) <= 200 else f"{error.message[:200]}..."
