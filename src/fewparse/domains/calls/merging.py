"""Merge the schemas of an `allOf` into one schema."""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

Schema = dict[str, Any]

COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "minimum": max,
    "exclusiveMinimum": max,
    "minLength": max,
    "minItems": max,
    "minProperties": max,
    "maximum": min,
    "exclusiveMaximum": min,
    "maxLength": min,
    "maxItems": min,
    "maxProperties": min,
    "required": lambda first, second: list(dict.fromkeys([*first, *second])),
    "enum": lambda first, second: [value for value in first if value in second],
    "description": lambda first, second: second,
    "default": lambda first, second: second,
}
"""How two values of a keyword become one that asserts both."""


class CannotMergeError(Exception):
    """Schemas whose conjunction is not one schema."""


def merged(schemas: Sequence[Schema]) -> Schema | None:
    """Return one schema that asserts what all schemas assert; None if there is none."""
    try:
        return reduce(merge, schemas)
    except CannotMergeError:
        return None


def merge(first: Schema, second: Schema) -> Schema:
    """Return the conjunction of two schemas; raise `CannotMergeError` if it is not one schema."""
    if "$ref" in {*first, *second} or closes(first, second) or closes(second, first):
        raise CannotMergeError
    whole = dict(first)
    for key, value in second.items():
        if key not in first or first[key] == value:
            whole[key] = value
        elif key == "type":
            whole[key] = common_types(first[key], value)
        elif key == "properties":
            shared = {name: merge(first[key][name], each) for name, each in value.items() if name in first[key]}
            whole[key] = {**first[key], **value, **shared}
        elif key in COMBINE:
            whole[key] = COMBINE[key](first[key], value)
        else:
            raise CannotMergeError
    return whole


def closes(first: Schema, second: Schema) -> bool:
    """Return whether the first schema says something about properties that only the second one declares."""
    if first.get("additionalProperties", True) is True:
        return False
    return not second.get("properties", {}).keys() <= first.get("properties", {}).keys()


def common_types(first: Any, second: Any) -> Any:
    """Return the types that both keywords allow."""
    names, others = ([value] if isinstance(value, str) else list(value) for value in (first, second))
    both = [name for name in names if name in others or (name == "integer" and "number" in others)]
    both += [name for name in others if name == "integer" and "number" in names and name not in both]
    if not both:
        raise CannotMergeError
    return both[0] if len(both) == 1 else both
