"""Sets of the types of JSON values: which values a part of a schema can be true for, over-approximated."""

from collections.abc import Iterable
from typing import Any

from fewparse.json_schema.document import Subschema

Types = frozenset[str]

ANY_TYPE: Types = frozenset(("null", "boolean", "number", "string", "array", "object"))
NUMERIC = frozenset(("number", "integer"))
MAX_STEPS = 50


def types_named(names: str | Iterable[str]) -> Types:
    """Return the types that the keyword `type` names; integers are numbers."""
    found = frozenset([names] if isinstance(names, str) else names)
    return found - {"integer"} if "number" in found else found


def common(first: Types, second: Types) -> Types:
    """Return the intersection."""
    both = first & second
    return both | {"integer"} if first & NUMERIC and second & NUMERIC and not both & NUMERIC else both


def type_of(value: Any) -> str:
    """Return the type of a JSON value; numbers without a fraction are integers."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer"
    names = {type(None): "null", float: "number", str: "string", list: "array", dict: "object"}
    return names[type(value)]


def types_of(part: Subschema, steps: int = MAX_STEPS) -> Types:
    """Return types that include those of all valid values, found without looking into arrays and objects."""
    schema = part.schema
    if isinstance(schema, bool):
        return ANY_TYPE if schema else frozenset()
    if steps <= 0:
        return ANY_TYPE
    if "$ref" in schema and part.ref_only:
        return types_of(part.referenced(), steps // 2)
    found = types_named(schema["type"]) if "type" in schema else ANY_TYPE
    if "enum" in schema:
        found = common(found, types_named(map(type_of, schema["enum"])))
    if "const" in schema:
        found = common(found, types_named(type_of(schema["const"])))
    if "$ref" in schema:
        found = common(found, types_of(part.referenced(), steps // 2))
    for each in part.children("allOf"):
        found = common(found, types_of(each, steps // 2))
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            either: Types = frozenset().union(*(types_of(each, steps // 4) for each in part.children(keyword)))
            found = common(found, types_named(either))
    return found
