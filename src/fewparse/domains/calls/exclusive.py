"""Whether two schemas exclude each other, so that `oneOf` is the same as `anyOf`."""

from typing import Any

from fewparse.domains.calls.schemas import Schema

ALL_TYPES = frozenset(("string", "number", "boolean", "null", "array", "object"))


def are_exclusive(one: Schema, other: Schema) -> bool:
    """Return whether no value that is written for one schema is valid under the other; False if it is unknown.

    Objects are written with declared properties only.
    """
    both = types_of(one) & types_of(other)
    if not both or are_disjoint(one, other):
        return True
    if both != {"object"}:
        return False
    first, second = one.get("properties", {}), other.get("properties", {})
    lacking = missing(one, second) and missing(other, first) and bool(first) and bool(second)
    return lacking or any(
        name in second and name in required_of(other) and are_disjoint(first[name], second[name])
        for name in required_of(one) & first.keys()
    )


def missing(schema: Schema, properties: dict[str, Any]) -> bool:
    """Return whether a schema requires a property that is not among some."""
    return not required_of(schema) <= properties.keys()


def required_of(schema: Schema) -> set[str]:
    """Return the required properties of a schema."""
    return set(schema.get("required", ()))


def types_of(schema: Schema) -> frozenset[str]:
    """Return the types that the values of a schema may have; integers are numbers."""
    names = schema.get("type", ALL_TYPES)
    found = frozenset([names] if isinstance(names, str) else names)
    return found - {"integer"} | {"number"} if "integer" in found else found


def are_disjoint(one: Schema, other: Schema) -> bool:
    """Return whether two schemas list values, none of them in both lists."""
    if "enum" not in one or "enum" not in other:
        return False
    return not any(value == each for value in one["enum"] for each in other["enum"])
