"""Validate JSON texts with the library `jsonschema`, independently of the engine that constrains outputs."""

import json
import re
from typing import Any

from jsonschema.exceptions import ValidationError, best_match
from jsonschema.protocols import Validator

from fewparse.errors import InvalidProgram
from fewparse.files import DuplicateKey, unique_object, value_reason
from fewparse.json_schema.document import NUMBERS, Subschema, shortened_message
from fewparse.json_schema.formats import format_checker
from fewparse.json_schema.positions import find_offset
from fewparse.text import is_unicode

EXPECTED = re.compile("Expecting (.*)")
MAX_EXPECTED = 8


def make_validator(part: Subschema) -> Validator:
    """Return a validator that also asserts the formats that are enforced; it downloads nothing."""
    return part.validator(format_checker())


def parse_json(text: str) -> Any:
    """Return the value of a JSON text without repeated keys; raise `InvalidProgram` with the mistake."""
    try:
        value = json.loads(text, object_pairs_hook=unique_object, **NUMBERS)
    except json.JSONDecodeError as error:
        found = EXPECTED.match(error.msg)
        expected = (found[1],) if found else ("the end",) if error.msg == "Extra data" else ()
        raise InvalidProgram(f"is not valid JSON: {error.msg}", error.pos, expected=expected) from None
    except DuplicateKey as error:
        raise InvalidProgram(f"has the key {error.args[0]!r} twice in an object") from None
    except RecursionError:
        raise InvalidProgram("has values that are nested too deeply") from None
    except ValueError as error:
        raise InvalidProgram(f"is not valid JSON: {value_reason(error)}") from None
    if not is_unicode(json.dumps(value, ensure_ascii=False)):
        raise InvalidProgram("contains a lone surrogate")
    return value


def check_value(value: Any, validator: Validator, text: str | None = None) -> None:
    """Raise `InvalidProgram` with the place and the reason if a value is not valid under a schema.

    `text` is the JSON text of the value, in which the place is found.
    """
    try:
        error = best_match(validator.iter_errors(value))
    except RecursionError:
        raise InvalidProgram("has values that are nested too deeply") from None
    if error is not None:
        place = "" if error.json_path == "$" else f" at {error.json_path}"
        message = f"is not valid under the schema{place}: {shortened_message(error.message)}"
        at = None if text is None else find_offset(text, error.absolute_path)
        raise InvalidProgram(message, at, expected=expected_by(error))


def expected_by(error: ValidationError) -> tuple[str, ...]:
    """Return what a schema expects in the place of an invalid value."""
    keyword, value = str(error.validator), error.validator_value
    if keyword == "type":
        return tuple([value] if isinstance(value, str) else value)
    if keyword in ("enum", "const"):
        values = value if keyword == "enum" else [value]
        return tuple(shortened_message(json.dumps(each, ensure_ascii=False)) for each in values[:MAX_EXPECTED])
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return (shortened_message(f"{keyword} {value}"),)
    if keyword == "required":
        missing = [name for name in value if name not in error.instance]
        return tuple(f"property {name!r}" for name in missing[:MAX_EXPECTED])
    return (keyword,)
