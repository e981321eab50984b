"""A world: the facts that programs of one domain are executed over."""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from fewparse.datasets.overnight.reading import read, shown
from fewparse.datasets.overnight.values import TRUE, Entity, Value, read_value, text_of, type_of
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
    """An entity has a value of a property."""

    entity: Entity
    property: str
    value: Value


class Signature(NamedTuple):
    """The types of the two arguments of a property."""

    first: str
    second: str


class World:
    """Facts in their order, and the values of each property by what has them.

    The order of facts and their repetition are significant: both show in what programs denote.
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
        self._known = {x for by_x in values.values() for x in by_x}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "World":
        """A world from `properties` (name to two types) and `objects` (entity to property to values as text)."""
        facts = (
            Fact(Entity(entity), name, TRUE if value == "(boolean true)" else read_value(read(value)))
            for entity, properties in data["objects"].items()
            for name, values in properties.items()
            for value in values
        )
        return cls({name: Signature(*types) for name, types in data["properties"].items()}, facts)

    def look_up(self, x: Value, name: str) -> tuple[Value, ...]:
        """The values that x has of a property, in the order of the facts; both must be known."""
        found = self._values.get(name)
        if found is None:
            raise ExecutionError(f"unknown property `{shown(name)}`")
        if (values := found.get(x)) is not None:
            return values
        if x not in self._known:
            raise ExecutionError(f"{described(x)} does not exist")
        return ()

    def signature(self, name: str) -> Signature:
        """The signature of a property, which must have one."""
        if (signature := self.signatures.get(name)) is None:
            raise ExecutionError(f"unknown property `{shown(name)}`")
        return signature

    def check_first(self, name: str, x: Value) -> None:
        """Refuse an x that is not of the type that has this property."""
        if self.signature(name).first != type_of(x):
            raise ExecutionError(f"{described(x)} has no property `{shown(name)}`")

    def check_second(self, name: str, x: Value) -> None:
        """Refuse an x that is not of the type of this property's values."""
        if self.signature(name).second != type_of(x):
            raise ExecutionError(f"{described(x)} is no value of the property `{shown(name)}`")


def described(x: Value) -> str:
    """A value as an error names it."""
    return shown(x.id if isinstance(x, Entity) else text_of(x))


@cache
def load_world(name: str) -> World:
    """One of the worlds that come with the package, read once."""
    if name not in WORLDS:
        raise UnknownName("world", name, WORLDS)
    file = resources.files(__package__) / "worlds" / f"{name}.json"
    return World.from_data(json.loads(file.read_text(encoding="utf-8")))
