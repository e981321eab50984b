"""A world: the database over which the programs of one domain are executed."""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from fewparse.datasets.overnight.values import (
    TRUE,
    Entity,
    Value,
    read_expression,
    read_value,
    text_of,
    truncated,
    type_of,
)
from fewparse.errors import ExecutionError, UnknownName

WORLDS = (
    "basketball",
    "blocks",
    "calendar",
    "housing",
    "publications",
    "recipes",
    "restaurants",
    "socialnetwork",
)


class Fact(NamedTuple):
    """A triple: an entity has a value of a property."""

    entity: Entity
    property: str
    value: Value


class Signature(NamedTuple):
    """The types of the two arguments of a property: of the entities and of the values."""

    first: str
    second: str


class World:
    """An ordered list of facts, indexed by property and first argument; `!p` is the reverse of the property `p`.

    The order and the repetition of facts are significant: denotations depend on both.
    """

    def __init__(self, signatures: Mapping[str, Signature], facts: Iterable[Fact]) -> None:
        self.facts = tuple(facts)
        self.signatures = dict(signatures)
        self.signatures.update({f"!{name}": Signature(*reversed(pair)) for name, pair in signatures.items()})
        values: dict[str, dict[Value, list[Value]]] = {}
        for entity, name, value in self.facts:
            values.setdefault(name, {}).setdefault(entity, []).append(value)
            values.setdefault(f"!{name}", {}).setdefault(value, []).append(entity)
        self._values = {name: {x: tuple(found) for x, found in by_x.items()} for name, by_x in values.items()}
        self._known_values = {x for by_x in values.values() for x in by_x}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "World":
        """Build a world from `properties` (name to two types) and `objects` (entity to property to literals)."""
        facts = (
            Fact(Entity(entity), name, TRUE if value == "(boolean true)" else read_value(read_expression(value)))
            for entity, properties in data["objects"].items()
            for name, values in properties.items()
            for value in values
        )
        return cls({name: Signature(*types) for name, types in data["properties"].items()}, facts)

    def look_up(self, x: Value, name: str) -> tuple[Value, ...]:
        """Return the values of a property of x, in order; raise `ExecutionError` if either is unknown."""
        by_argument = self._values.get(name)
        if by_argument is None:
            raise ExecutionError(f"unknown property `{truncated(name)}`")
        if (values := by_argument.get(x)) is not None:
            return values
        if x not in self._known_values:
            raise ExecutionError(f"{describe(x)} does not exist")
        return ()

    def signature(self, name: str) -> Signature:
        """Return the signature of a property; raise `ExecutionError` if it is unknown."""
        if (signature := self.signatures.get(name)) is None:
            raise ExecutionError(f"unknown property `{truncated(name)}`")
        return signature

    def check_first(self, name: str, x: Value) -> None:
        """Raise `ExecutionError` unless x has the type of the first argument of a property."""
        if self.signature(name).first != type_of(x):
            raise ExecutionError(f"{describe(x)} has no property `{truncated(name)}`")

    def check_second(self, name: str, x: Value) -> None:
        """Raise `ExecutionError` unless x has the type of the second argument of a property."""
        if self.signature(name).second != type_of(x):
            raise ExecutionError(f"{describe(x)} is not a value of the property `{truncated(name)}`")


def describe(x: Value) -> str:
    """Return a value as written in an error message."""
    return truncated(x.id if isinstance(x, Entity) else text_of(x))


@cache
def load_world(name: str) -> World:
    """Load one of the bundled worlds, once; raise `UnknownName` for another name."""
    if name not in WORLDS:
        raise UnknownName("world", name, WORLDS)
    file = resources.files(__package__) / "worlds" / f"{name}.json"
    return World.from_data(json.loads(file.read_text(encoding="utf-8")))
