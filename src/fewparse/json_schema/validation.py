"""Validate JSON texts with the library `jsonschema`, independently of the engine that constrains outputs."""

import json
from typing import Any

from jsonschema.protocols import Validator

from fewparse.errors import InvalidProgram
from fewparse.files import DuplicateKey, unique_object, value_reason
from fewparse.json_schema.document import Subschema, not_a_number, shortened_message
from fewparse.json_schema.formats import format_checker
from fewparse.text import is_unicode


def make_validator(part: Subschema) -> Validator:
    """Return a validator that also asserts the formats that are enforced; it downloads nothing."""
    return part.validator(format_checker())


def parse_json(text: str) -> Any:
    """Return the value of a JSON text without repeated keys; raise `InvalidProgram` with the mistake."""
    try:
        value = json.loads(text, object_pairs_hook=unique_object, parse_constant=not_a_number)
    except json.JSONDecodeError as error:
        raise InvalidProgram(f"is not valid JSON: {error.msg}", error.pos) from None
    except DuplicateKey as error:
        raise InvalidProgram(f"has the key {error.args[0]!r} twice in an object") from None
    except RecursionError:
        raise InvalidProgram("has values that are nested too deeply") from None
    except ValueError as error:
        raise InvalidProgram(f"is not valid JSON: {value_reason(error)}") from None
    if not is_unicode(json.dumps(value, ensure_ascii=False)):
        raise InvalidProgram("contains a lone surrogate")
    return value


def check_value(value: Any, validator: Validator) -> None:
    """Raise `InvalidProgram` with the place and the reason if a value is not valid under a schema."""
    try:
        error = next(validator.iter_errors(value), None)
    except RecursionError:
        raise InvalidProgram("has values that are nested too deeply") from None
    if error is not None:
        place = "" if error.json_path == "$" else f" at {error.json_path}"
        raise InvalidProgram(f"is not valid under the schema{place}: {shortened_message(error.message)}")
