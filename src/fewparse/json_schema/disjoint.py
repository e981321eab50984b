"""Show that no value is valid under two schemas, so that their `oneOf` is an `anyOf`.

A schema is over-approximated by shapes; schemas are disjoint if all pairs of their shapes are.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fewparse.json_schema.emitted import STRICTER, Emitted, conjunction
from fewparse.json_schema.types import ANY_TYPE, NUMERIC, Types, common, type_of, types_named

MAX_SHAPES = 32
MAX_DEPTH = 8

Range = tuple[float | None, float | None]


@dataclass(frozen=True)
class Shape:
    """Values of some types: one of `values` if it is given, within `ranges`, with some properties.

    `ranges` are those of numbers, and of the lengths of strings, arrays and objects, by type.
    """

    types: Types = ANY_TYPE
    values: tuple[Any, ...] | None = None
    ranges: Mapping[str, Range] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    properties: Mapping[str, Emitted] = field(default_factory=dict)
    additional: Emitted = True

    def property(self, name: str) -> Emitted:
        """Return the schema of a property."""
        return self.properties.get(name, self.additional)

    def both(self, other: "Shape") -> "Shape":
        """Return a shape of the values that have both shapes."""
        values = self.values if other.values is None else other.values
        if self.values is not None and other.values is not None:
            values = tuple(value for value in self.values if contains(other.values, value))
        names = {**self.properties, **other.properties}
        return Shape(
            common(self.types, other.types),
            values,
            {
                kind: narrowed(self.ranges.get(kind), other.ranges.get(kind))
                for kind in (*self.ranges, *other.ranges)
            },
            self.required | other.required,
            {name: conjunction([self.property(name), other.property(name)]) for name in names},
            conjunction([self.additional, other.additional]),
        )


def narrowed(first: Range | None, second: Range | None) -> Range:
    """Return the intersection of ranges."""
    ranges = [each for each in (first, second) if each is not None]
    lows = [low for low, _ in ranges if low is not None]
    highs = [high for _, high in ranges if high is not None]
    return max(lows, default=None), min(highs, default=None)


def apart(first: Range | None, second: Range | None) -> bool:
    """Return whether ranges have no number in common."""
    low, high = narrowed(first, second)
    return low is not None and high is not None and low > high


def contains(values: tuple[Any, ...], value: Any) -> bool:
    """Return whether a value may be among others; true and 1 are not equal in JSON."""
    return any(value == other and isinstance(value, bool) == isinstance(other, bool) for other in values)


class Disjointness:
    """Decides whether schemas for the engine are disjoint; `definitions` are those that references name."""

    def __init__(self, definitions: Mapping[str, Emitted]) -> None:
        self._definitions = definitions

    def of(self, first: Emitted, second: Emitted, depth: int = MAX_DEPTH) -> bool:
        """Return whether two schemas have been shown to be disjoint."""
        if depth <= 0 or first is True or second is True:
            return first is False or second is False
        others = self.shapes(second, depth)
        return all(self._apart(shape, other, depth) for shape in self.shapes(first, depth) for other in others)

    def shapes(self, schema: Emitted, depth: int) -> list[Shape]:
        """Return shapes; each value that is valid under the schema has one of them."""
        if isinstance(schema, bool):
            return [Shape()] if schema else []
        if depth <= 0 or STRICTER in schema:
            return [Shape()]
        if "$ref" in schema:
            return self.shapes(self._definitions[schema["$ref"].rpartition("/")[2]], depth - 1)
        found = [self._own_shape(schema)]
        for part in schema.get("allOf", ()):
            found = self._combined(found, self.shapes(part, depth - 1))
        if "anyOf" in schema:
            either = [shape for part in schema["anyOf"] for shape in self.shapes(part, depth - 1)]
            found = self._combined(found, either)
        return found

    @staticmethod
    def _combined(shapes: list[Shape], others: list[Shape]) -> list[Shape]:
        if len(shapes) * len(others) > MAX_SHAPES:
            return shapes
        combined = (shape.both(other) for shape in shapes for other in others)
        return [shape for shape in combined if shape.types and shape.values != ()]

    @staticmethod
    def _own_shape(schema: dict[str, Any]) -> Shape:
        shape = Shape()
        if "type" in schema:
            shape = replace(shape, types=types_named(schema["type"]))
        if "enum" in schema:
            values = tuple(schema["enum"])
            shape = replace(shape, types=common(shape.types, types_named([*map(type_of, values)])), values=values)
        ranges = {
            kind: (schema.get(low), schema.get(high))
            for kind, low, high in (
                ("number", "minimum", "maximum"),
                ("string", "minLength", "maxLength"),
                ("array", "minItems", "maxItems"),
                ("object", "minProperties", "maxProperties"),
            )
        }
        matched_by_pattern = "patternProperties" in schema
        return replace(
            shape,
            ranges=ranges,
            required=frozenset(schema.get("required", ())),
            properties=schema.get("properties", {}),
            additional=True if matched_by_pattern else schema.get("additionalProperties", True),
        )

    def _apart(self, first: Shape, second: Shape, depth: int) -> bool:
        types = common(first.types, second.types)
        if first.values is not None and second.values is not None:
            return not any(contains(second.values, value) for value in first.values)
        for shape, other in ((first, second), (second, first)):
            if shape.values is not None:
                return not any(self._may_have(other, value) for value in shape.values)
        return all(self._apart_in(kind, first, second, depth) for kind in types)

    def _may_have(self, shape: Shape, value: Any) -> bool:
        kind = type_of(value)
        if not common(shape.types, frozenset([kind])):
            return False
        size = value if kind in NUMERIC else len(value) if kind in ("string", "array", "object") else None
        kind = "number" if kind in NUMERIC else kind
        if size is not None and apart(shape.ranges.get(kind), (size, size)):
            return False
        return not isinstance(value, dict) or shape.required <= value.keys()

    def _apart_in(self, kind: str, first: Shape, second: Shape, depth: int) -> bool:
        """Return whether the values of a type are apart."""
        kind = "number" if kind in NUMERIC else kind
        if apart(first.ranges.get(kind), second.ranges.get(kind)):
            return True
        return kind == "object" and any(
            self.of(first.property(name), second.property(name), depth - 1)
            for name in sorted(first.required | second.required)
        )
