"""Walk through schemas for the engine, and remove from them what no finite value can satisfy."""

from collections.abc import Iterator, Mapping
from typing import Any

from fewparse.json_schema.emitted import Emitted

REFERENCE = "#/$defs/"


def name_of(schema: Mapping[str, Any]) -> str | None:
    """Return the name of the definition that a schema refers to, if it does."""
    reference = schema.get("$ref")
    return None if reference is None else str(reference).removeprefix(REFERENCE)


def in_place_schemas(schema: Emitted, definitions: Mapping[str, Emitted]) -> Iterator[dict[str, Any]]:
    """Yield the schemas that a schema applies to the same value, itself included, in order."""
    agenda, visited = [schema], set[int]()
    while agenda:
        current = agenda.pop()
        if isinstance(current, bool) or id(current) in visited:
            continue
        visited.add(id(current))
        yield current
        name = name_of(current)
        parts = [*current.get("allOf", ()), *current.get("anyOf", ())]
        agenda += reversed(parts if name is None else [*parts, definitions[name]])


def children(schema: dict[str, Any], definitions: Mapping[str, Emitted]) -> list[Emitted]:
    """Return the schemas directly within a schema, and the definition that it refers to."""
    name = name_of(schema)
    found = [] if name is None else [definitions[name]]
    for keyword in ("allOf", "anyOf", "prefixItems"):
        found += schema.get(keyword, ())
    for keyword in ("properties", "patternProperties"):
        found += schema.get(keyword, {}).values()
    return [*found, *(schema[keyword] for keyword in ("items", "additionalProperties") if keyword in schema)]


def walk(schema: Emitted, definitions: Mapping[str, Emitted]) -> Iterator[dict[str, Any]]:
    """Yield all schemas within a schema and within the definitions that it needs, each once."""
    agenda, visited = [schema], set[int]()
    while agenda:
        current = agenda.pop()
        if isinstance(current, dict) and id(current) not in visited:
            visited.add(id(current))
            yield current
            agenda += children(current, definitions)


class Pruner:
    """Removes from schemas, in place, what only infinite values would satisfy."""

    def __init__(self, definitions: dict[str, Emitted]) -> None:
        self._definitions = definitions
        self._visited: set[int] = set()
        self._finite: set[str] = set()
        while True:
            found = {name for name, schema in definitions.items() if self._is_finite(schema)}
            if found == self._finite:
                return
            self._finite = found

    def pruned(self, schema: Emitted) -> Emitted:
        """Return a schema without what no finite value satisfies; false if there is no finite value at all."""
        if isinstance(schema, bool):
            return schema
        if not self._is_finite(schema):
            return False
        if id(schema) in self._visited:
            return schema
        self._visited.add(id(schema))
        name = name_of(schema)
        if name is not None:
            self._definitions[name] = self.pruned(self._definitions[name])
        for keyword in ("properties", "patternProperties"):
            if keyword in schema:
                schema[keyword] = {name: self.pruned(each) for name, each in schema[keyword].items()}
        for keyword in ("items", "additionalProperties"):
            if keyword in schema:
                schema[keyword] = self.pruned(schema[keyword])
        for keyword in ("prefixItems", "allOf"):
            if keyword in schema:
                schema[keyword] = [self.pruned(each) for each in schema[keyword]]
        if "anyOf" in schema:
            schema["anyOf"] = [kept for each in schema["anyOf"] if (kept := self.pruned(each)) is not False]
        return schema

    def _is_finite(self, schema: Emitted) -> bool:
        """Return whether some finite value may be valid, given the definitions for which this is known."""
        if isinstance(schema, bool):
            return schema
        name = name_of(schema)
        if name is not None and name not in self._finite:
            return False
        if not all(map(self._is_finite, schema.get("allOf", ()))):
            return False
        if "anyOf" in schema and not any(map(self._is_finite, schema["anyOf"])):
            return False
        types = schema.get("type", "null")
        types = {types} if isinstance(types, str) else set(types)
        return (
            not types <= {"array", "object"}
            or ("object" in types and self._has_finite_object(schema))
            or ("array" in types and self._has_finite_array(schema))
        )

    def _has_finite_object(self, schema: dict[str, Any]) -> bool:
        properties = schema.get("properties", {})
        others = [schema.get("additionalProperties", True), *schema.get("patternProperties", {}).values()]
        return all(
            any(map(self._is_finite, [properties[name]] if name in properties else others))
            for name in schema.get("required", ())
        )

    def _has_finite_array(self, schema: dict[str, Any]) -> bool:
        needed = [*schema.get("prefixItems", []), schema.get("items", True)][: schema.get("minItems", 0)]
        return all(map(self._is_finite, needed))
