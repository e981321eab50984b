"""Put the properties of values into the order in which a schema declares them."""

from collections.abc import Mapping
from typing import Any

from fewparse.domains.calls.schemas import REFERENCE, Schema


def ordered(value: Any, schema: Any, definitions: Mapping[str, Schema]) -> Any:
    """Return an equal value with the properties of its objects in the order of the schema; others come last."""
    if not isinstance(schema, dict):
        return value
    if "$ref" in schema:
        return ordered(value, definitions.get(schema["$ref"].removeprefix(REFERENCE)), definitions)
    for branch in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        value = ordered(value, branch, definitions)
    if isinstance(value, list):
        first, rest = schema.get("prefixItems", ()), schema.get("items")
        return [ordered(v, first[i] if i < len(first) else rest, definitions) for i, v in enumerate(value)]
    if isinstance(value, dict):
        declared = schema.get("properties", {})
        names = [*(name for name in declared if name in value), *(name for name in value if name not in declared)]
        others = schema.get("additionalProperties")
        return {name: ordered(value[name], declared.get(name, others), definitions) for name in names}
    return value
