"""Write a JSON value as the one text of it that a constraint accepts: compact, with properties in their order."""

import json
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

from fewparse.constrain.state import State
from fewparse.json_schema.emitted import Emitted
from fewparse.json_schema.numbers import decimal_places
from fewparse.json_schema.pruning import in_place_schemas, walk
from fewparse.json_schema.translate import Translation

MAX_ORDERS = 8
MAX_STEPS = 200_000
MAX_PLAIN_DIGITS = 40


class JsonWriter:
    """Writes values step by step along the states of a constraint; `translation` has the orders of properties."""

    def __init__(self, translation: Translation) -> None:
        schemas = list(walk(translation.schema, translation.definitions))
        orders = (tuple(dict.fromkeys(order_of(schema, translation.definitions))) for schema in schemas)
        self._orders = [order for order in dict.fromkeys(orders) if order]
        self._places = {decimal_places(schema["multipleOf"]) for schema in schemas if "multipleOf" in schema}
        self._steps = 0

    def write(self, value: Any, start: State) -> str | None:
        """Return the text of a value that leads from the start to a state that may end; None if none was found."""
        self._steps = 0
        for text, state in self._texts(value, start):
            if state.may_end:
                return text.decode()
        return None

    def _texts(self, value: Any, state: State) -> Iterator[tuple[bytes, State]]:
        """Yield texts of a value that may follow a state, with the states after them."""
        if isinstance(value, list):
            yield from self._sequence(state, b"[", [(b"", member) for member in value], b"]")
        elif isinstance(value, dict):
            for order in self._orders_of(value):
                members = [(quoted(name) + b":", value[name]) for name in order]
                yield from self._sequence(state, b"{", members, b"}")
        else:
            for text in scalars(value, self._places):
                following = self._advance(state, text)
                if following is not None:
                    yield text, following

    def _sequence(
        self, state: State | None, opening: bytes, members: list[tuple[bytes, Any]], closing: bytes
    ) -> Iterator[tuple[bytes, State]]:
        """Yield the text of an array or object if it may follow; each member is written in its first way."""
        pieces = [opening]
        state = state and self._advance(state, opening)
        for i, (name, member) in enumerate(members):
            before = b"," * (i > 0) + name
            state = state and (self._advance(state, before) if before else state)
            found = next(self._texts(member, state), None) if state else None
            if found is None:
                return
            pieces += [before, found[0]]
            state = found[1]
        state = state and self._advance(state, closing)
        if state:
            yield b"".join([*pieces, closing]), state

    def _advance(self, state: State, piece: bytes) -> State | None:
        self._steps += 1
        return None if self._steps > MAX_STEPS else state.advance(piece)

    def _orders_of(self, value: dict[str, Any]) -> Iterator[tuple[str, ...]]:
        """Yield orders of the keys of an object: those of the schemas that have most of them, and its own."""
        names = value.keys()
        ranked = sorted(self._orders, key=lambda order: -len(names & set(order)))[:MAX_ORDERS]
        found = (
            (*(name for name in order if name in names), *(name for name in names if name not in order))
            for order in ranked
        )
        yield from dict.fromkeys([*found, tuple(names)])


def order_of(schema: Emitted, definitions: dict[str, Emitted]) -> Iterator[str]:
    """Yield the names of properties in the order in which a schema for the engine puts them."""
    required: list[str] = []
    for part in in_place_schemas(schema, definitions):
        yield from part.get("properties", ())
        required += part.get("required", ())
        for value in part.get("enum", ()):
            yield from value if isinstance(value, dict) else ()
    yield from required


def quoted(text: str) -> bytes:
    """Return a string as JSON, without escapes where they are not needed."""
    return json.dumps(text, ensure_ascii=False).encode()


def scalars(value: Any, places: Iterable[int] = ()) -> list[bytes]:
    """Return the ways to write a string, a number, a boolean or null, the preferred one first.

    `places` are further numbers of decimal places: the engine writes all multiples of 0.25 with two.
    """
    if isinstance(value, str):
        return [quoted(value)]
    if not isinstance(value, float):
        return [json.dumps(value).encode()]
    if value.is_integer() and abs(value) < 10**MAX_PLAIN_DIGITS:
        return [str(int(value)).encode(), repr(value).encode()]
    plain = format(Decimal(repr(value)), "f")
    ways = [plain, repr(value)] if len(plain) <= MAX_PLAIN_DIGITS else [repr(value), plain]
    ways += [plain + "0" * (count - decimal_places(value)) for count in places]
    return [way.encode() for way in dict.fromkeys(ways) if json.loads(way) == value]
