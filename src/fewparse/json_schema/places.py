"""Places in JSON values, and the schemas that may apply there."""

from collections.abc import Iterable, Mapping
from functools import cached_property

from fewparse.json_schema.emitted import UNIQUE, Emitted
from fewparse.json_schema.pruning import in_place_schemas


class Place:
    """A place in the values of a schema for the engine: all schemas that may apply to a value there."""

    def __init__(self, schemas: Iterable[Emitted], definitions: Mapping[str, Emitted]) -> None:
        self._definitions = definitions
        self._schemas = [part for schema in schemas for part in in_place_schemas(schema, definitions)]
        self._members: dict[str, Place] = {}
        self._items: dict[int, Place] = {}

    @cached_property
    def has_unique_items(self) -> bool:
        """Whether items of an array here must be unique, under one of the schemas."""
        return any(UNIQUE in schema for schema in self._schemas)

    def member(self, name: str) -> "Place":
        """Return the place of a property."""
        if name not in self._members:
            found: list[Emitted] = []
            for schema in self._schemas:
                if name in schema.get("properties", {}):
                    found.append(schema["properties"][name])
                else:
                    found += [
                        schema.get("additionalProperties", True),
                        *schema.get("patternProperties", {}).values(),
                    ]
            self._members[name] = Place(found, self._definitions)
        return self._members[name]

    def item(self, index: int) -> "Place":
        """Return the place of an item."""
        longest = max((len(schema.get("prefixItems", ())) for schema in self._schemas), default=0)
        index = min(index, longest)
        if index not in self._items:
            found = [
                [*schema.get("prefixItems", ()), *[schema.get("items", True)] * (index + 1)][index]
                for schema in self._schemas
            ]
            self._items[index] = Place(found, self._definitions)
        return self._items[index]
