"""Schemas for the engine, and how they are combined."""

from collections.abc import Hashable, Iterable
from typing import Any

Emitted = dict[str, Any] | bool
"""A schema of draft 2020-12 with keywords that the engine enforces exactly; true allows all values, false none."""

STRICTER = "x-stricter"
"""Marks a schema with conditions that another validator may not check, such as a format."""

EXAMPLES = "x-examples"
"""Short texts with the pattern of a schema, to complete texts."""
UNIQUE = "x-unique"
"""Marks a schema of arrays whose items are unique, which the engine does not enforce."""
MAX_FINITE = 1_000
"""Ranges of more integers are not listed."""


def conjunction(schemas: Iterable[Emitted]) -> Emitted:
    """Return the schema of the values that are valid under all of the schemas."""
    parts: list[Emitted] = []
    for schema in schemas:
        if isinstance(schema, dict) and schema.keys() == {"allOf"}:
            parts += schema["allOf"]
        elif schema is False:
            return False
        elif schema is not True:
            parts.append(schema)
    return joined("allOf", parts, True)


def disjunction(schemas: Iterable[Emitted]) -> Emitted:
    """Return the schema of the values that are valid under one of the schemas."""
    parts: list[Emitted] = []
    for schema in schemas:
        if schema is True:
            return True
        if schema is not False:
            parts.append(schema)
    return joined("anyOf", parts, False)


def joined(keyword: str, parts: list[Emitted], none: bool) -> Emitted:
    """Return schemas as the list of a keyword; a single one alone, and `none` if there are none."""
    if not parts:
        return none
    return parts[0] if len(parts) == 1 else {keyword: parts}


def type_keyword(types: Iterable[str]) -> str | list[str]:
    """Return the value of `type`."""
    names = sorted(types)
    return names[0] if len(names) == 1 else names


def of_types(types: Iterable[str], **keywords: Any) -> dict[str, Any]:
    """Return a schema of values of some types."""
    return {"type": type_keyword(types), **keywords}


def finite_values(schema: Emitted) -> set[Hashable] | None:
    """Return all values that may be valid under a schema; None if they are not seen to be few."""
    if isinstance(schema, bool):
        return None if schema else set()
    if "enum" in schema:
        return set(map(comparable, schema["enum"]))
    if "anyOf" in schema:
        parts = list(map(finite_values, schema["anyOf"]))
        return set().union(*(part for part in parts if part is not None)) if None not in parts else None
    kind, low, high = schema.get("type"), schema.get("minimum"), schema.get("maximum")
    if kind == "integer" and isinstance(low, int) and isinstance(high, int) and high - low < MAX_FINITE:
        return set(map(comparable, range(low, high + 1)))
    return {"null": {comparable(None)}, "boolean": {comparable(True), comparable(False)}}.get(str(kind))


def comparable(value: Any) -> Hashable:
    """Return a JSON value as one that is equal to another iff the values are equal in JSON Schema."""
    if isinstance(value, dict):
        return "object", frozenset((key, comparable(member)) for key, member in value.items())
    if isinstance(value, list):
        return "array", tuple(map(comparable, value))
    return isinstance(value, bool), value
