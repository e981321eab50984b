"""`unevaluatedProperties` and `unevaluatedItems`: what other keywords of a schema do not look at.

They are rewritten as `additionalProperties` and `items` if what is looked at does not depend on the value: that is
so for `allOf` and `$ref`, but not for `anyOf`, `oneOf` and conditions that look at properties or items themselves.
"""

from collections.abc import Iterator

from fewparse.json_schema.document import Subschema

CONDITIONAL = ("anyOf", "oneOf", "if", "then", "else", "dependentSchemas")


class DependsOnValue(Exception):
    """What is looked at depends on the value."""


def evaluated_properties(part: Subschema, nested: bool = False) -> tuple[dict[str, None], list[str]] | None:
    """Return the names and patterns of properties that a part looks at; None if it looks at all.

    Raises `DependsOnValue`.
    """
    if isinstance(part.schema, bool):
        return {}, []
    if "additionalProperties" in part.schema or (nested and "unevaluatedProperties" in part.schema):
        return None
    names = dict.fromkeys(part.schema.get("properties", ()))
    patterns = [*part.schema.get("patternProperties", ())]
    for other in always_applied(part):
        found = evaluated_properties(other, nested=True)
        if found is None:
            return None
        names |= found[0]
        patterns += found[1]
    if any(evaluated_properties(other, nested=True) != ({}, []) for other in sometimes_applied(part)):
        raise DependsOnValue
    return names, patterns


def evaluated_items(part: Subschema, nested: bool = False) -> int | None:
    """Return how many items a part looks at; None if it looks at all. Raises `DependsOnValue`."""
    if isinstance(part.schema, bool):
        return 0
    if "items" in part.schema or (nested and "unevaluatedItems" in part.schema):
        return None
    if "contains" in part.schema:
        raise DependsOnValue
    counts = [len(part.schema.get("prefixItems", ()))]
    for other in always_applied(part):
        found = evaluated_items(other, nested=True)
        if found is None:
            return None
        counts.append(found)
    if any(evaluated_items(other, nested=True) != 0 for other in sometimes_applied(part)):
        raise DependsOnValue
    return max(counts)


def always_applied(part: Subschema) -> Iterator[Subschema]:
    """Yield the parts that are applied to every value of a part."""
    assert isinstance(part.schema, dict)
    yield from part.children("allOf")
    if "$ref" in part.schema:
        yield part.referenced()


def sometimes_applied(part: Subschema) -> Iterator[Subschema]:
    """Yield the parts that are applied to some values of a part."""
    assert isinstance(part.schema, dict)
    for keyword in CONDITIONAL:
        if isinstance(part.schema.get(keyword), list):
            yield from part.children(keyword)
        elif keyword == "dependentSchemas":
            yield from part.named(keyword).values()
        elif keyword in part.schema:
            yield part.child(keyword)
