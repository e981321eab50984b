"""Rewrite the keywords of a schema that concern values of one type, such as `minimum`, for the engine.

The result has keywords of draft 2020-12 that the engine enforces exactly; a keyword that it cannot enforce raises
`SchemaError` with its path.
"""

from collections.abc import Callable, Iterator
from itertools import combinations, islice
from typing import Any

from fewparse.json_schema.document import Subschema
from fewparse.json_schema.emitted import (
    EXAMPLES,
    STRICTER,
    UNIQUE,
    Emitted,
    disjunction,
    finite_values,
    type_keyword,
)
from fewparse.json_schema.formats import FORMATS, MAX_LENGTHS, NOT_ENFORCED, RANGES
from fewparse.json_schema.numbers import (
    EXACT,
    Bounds,
    NumberError,
    bounds_of,
    divisor_of,
    exact,
    integer_keywords,
    number_keywords,
)
from fewparse.json_schema.patterns import PatternError, short_matches, to_engine
from fewparse.json_schema.types import NUMERIC, Types

BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
KEYWORDS = {
    "number": (*BOUNDS, "multipleOf", "format"),
    "string": ("minLength", "maxLength", "pattern", "format"),
    "array": ("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains"),
    "object": (
        "properties",
        "patternProperties",
        "additionalProperties",
        "required",
        "minProperties",
        "maxProperties",
    ),
}
ASSERTIONS = frozenset(("type", *(keyword for keywords in KEYWORDS.values() for keyword in keywords)))
MAX_SELECTIONS = 64
MAX_LEAST = 10_000
"""The largest minimum of characters, items or properties: longer texts are never generated to their end."""


class AssertionWriter:
    """Writes the assertions of one part of a schema; `translate` rewrites the subschemas of arrays and objects."""

    def __init__(self, part: Subschema, types: Types, translate: Callable[[Subschema], Emitted]) -> None:
        assert isinstance(part.schema, dict)
        self._part = part
        self._schema = part.schema
        self._types = set(types)
        self._translate = translate
        self._emitted: dict[str, Any] = {}
        self._others: list[dict[str, Any]] = []

    def write(self) -> list[Emitted]:
        """Return schemas that together say what the assertions say."""
        before = set(self._types)
        for keyword in ("minLength", "minItems", "minProperties"):
            if (count(self._schema, keyword) or 0) > MAX_LEAST:
                raise self._part.fail([keyword], f"more than {MAX_LEAST:,} cannot be enforced")
        for kind, write in (
            ("number", self._numbers),
            ("string", self._strings),
            ("array", self._arrays),
            ("object", self._objects),
        ):
            present = any(keyword in self._schema for keyword in KEYWORDS[kind])
            if present and self._types & (NUMERIC if kind == "number" else {kind}):
                write()
        if not self._types:
            return [False]
        if not (self._emitted or self._others or "type" in self._schema or self._types != before):
            return []
        kind_keyword = {"type": type_keyword(self._types)}
        return [kind_keyword | self._emitted, *(kind_keyword | other for other in self._others)]

    def _numbers(self) -> None:
        bounds, divisor = bounds_of(self._schema), 1
        try:
            if "multipleOf" in self._schema:
                found = divisor_of(self._schema["multipleOf"])
                if found is None:
                    self._emitted["multipleOf"] = self._schema["multipleOf"]
                else:
                    divisor = found
                    self._types = (self._types - NUMERIC) | {"integer"}
                    if divisor != 1 and isinstance(self._schema["multipleOf"], float):  # then floats are divided
                        bounds = bounds.at_least(exact(-EXACT)).at_most(exact(EXACT))
            if "integer" in self._types:
                self._emitted.pop("multipleOf", None)
                keywords = integer_keywords(bounds, divisor)
                if self._schema.get("format") in RANGES:
                    low, high = RANGES[self._schema["format"]]
                    within = integer_keywords(Bounds(exact(low), False, exact(high)), 1)
                    self._others.append({**(within or {}), STRICTER: True})
            else:
                keywords = number_keywords(bounds)
        except NumberError as error:
            name = next((name for name in BOUNDS if error.keyword.lower() in name.lower()), error.keyword)
            raise self._part.fail([name if name in self._schema else error.keyword], error.message) from None
        if keywords is None:
            self._types -= NUMERIC
        else:
            self._emitted |= keywords

    def _strings(self) -> None:
        least, most = count(self._schema, "minLength"), count(self._schema, "maxLength")
        if most is not None and (least or 0) > most:
            self._types.discard("string")
            return
        if least:
            self._emitted["minLength"] = least
        if most is not None:
            self._emitted["maxLength"] = most
        if "pattern" in self._schema:
            self._emitted["pattern"] = self._pattern(self._schema["pattern"], ["pattern"])
            self._emitted[EXAMPLES] = short_matches(self._schema["pattern"])
        name = self._schema.get("format")
        if name in FORMATS:
            limit = {"maxLength": MAX_LENGTHS[name]} if name in MAX_LENGTHS else {}
            written, examples = to_engine(f"^(?:{FORMATS[name]})$"), short_matches(FORMATS[name])
            self._others.append({"pattern": written, EXAMPLES: examples, **limit, STRICTER: True})
        elif name in NOT_ENFORCED:
            hint = f"Enforced are {', '.join(FORMATS)}. Remove it, or write a `pattern`."
            raise self._part.fail(["format"], f"the format {name!r} cannot be enforced", hint)

    def _pattern(self, pattern: str, keys: list[str]) -> str:
        try:
            return to_engine(pattern)
        except PatternError as error:
            where = "" if error.at is None else f" (character {error.at + 1})"
            raise self._part.fail(keys, f"the pattern {pattern[:100]!r}: {error.message}{where}") from None

    def _arrays(self) -> None:
        schema = self._schema
        legacy = isinstance(schema.get("items"), list)
        first = self._part.children("items" if legacy else "prefixItems")
        rest = "additionalItems" if legacy else "items"
        prefix = [self._translate(item) for item in first]
        items = self._translate(self._part.child(rest)) if rest in schema else True
        least, most = count(schema, "minItems") or 0, count(schema, "maxItems")
        least = max(least, self._contained())
        limits = [len(prefix)] if items is False else []
        limits += [i for i, item in enumerate(prefix) if item is False][:1]
        most = min(limits + ([] if most is None else [most]), default=None)
        if schema.get("uniqueItems") is True and (most is None or most > 1):
            self._emitted[UNIQUE] = True
            values = finite_values(disjunction([*prefix, items]))
            most = most if values is None else min(len(values), len(values) if most is None else most)
        if most is not None and least > most:
            self._types.discard("array")
            return
        if prefix:
            self._emitted["prefixItems"] = prefix[:most]
        if items is not True and (most is None or most > len(prefix)):
            self._emitted["items"] = items
        if least:
            self._emitted["minItems"] = least
        if most is not None:
            self._emitted["maxItems"] = most

    def _contained(self) -> int:
        """Return how many items `contains` demands if any item will do."""
        schema = self._schema
        if "contains" not in schema or (
            "minContains" in schema and schema["minContains"] == 0 and "maxContains" not in schema
        ):
            return 0
        if self._translate(self._part.child("contains")) is not True or "maxContains" in schema:
            raise self._part.fail(["contains"], "that an array contains an item cannot be enforced")
        return count(schema, "minContains") or 1

    def _objects(self) -> None:
        schema = self._schema
        properties = {name: self._translate(child) for name, child in self._part.named("properties").items()}
        patterns: dict[str, Emitted] = {}
        for pattern, child in self._part.named("patternProperties").items():
            written = self._pattern(pattern, ["patternProperties", pattern])
            emitted = self._translate(child)
            patterns[written] = {"allOf": [patterns[written], emitted]} if written in patterns else emitted
        additional = (
            self._translate(self._part.child("additionalProperties")) if "additionalProperties" in schema else True
        )
        required = list(dict.fromkeys(schema.get("required", ())))
        least, most = count(schema, "minProperties") or 0, count(schema, "maxProperties")
        if any(properties.get(name) is False for name in required) or (
            most is not None and max(least, len(required)) > most
        ):
            self._types.discard("object")
            return
        for keyword, value, default in (
            ("properties", properties, {}),
            ("patternProperties", patterns, {}),
            ("additionalProperties", additional, True),
            ("required", required, []),
        ):
            if value != default:
                self._emitted[keyword] = value
        optional = [name for name in properties if name not in required and properties[name] is not False]
        is_open = bool(patterns) or additional is not False
        self._numbers_of_properties(least, most, required, optional, is_open)

    def _numbers_of_properties(
        self, least: int, most: int | None, required: list[str], optional: list[str], is_open: bool
    ) -> None:
        """Write `minProperties` and `maxProperties`: the engine only counts properties that are not declared."""
        limits = {"minProperties": least} if least > len(required) else {}
        if most is not None and (is_open or most < len(required) + len(optional)):
            limits["maxProperties"] = most
        if not limits or not optional:
            self._emitted |= limits
            return
        ways = list(islice(selections(limits, len(required), optional, is_open), MAX_SELECTIONS + 1))
        if len(ways) > MAX_SELECTIONS:
            keyword = next(iter(limits))
            raise self._part.fail([keyword], "it cannot be enforced with so many optional properties")
        if ways:
            self._others.append({"anyOf": ways})
        else:
            self._types.discard("object")


def selections(
    limits: dict[str, int], required: int, optional: list[str], is_open: bool
) -> Iterator[dict[str, Any]]:
    """Yield schemas, one for each way to meet limits on the number of properties.

    They say which optional properties are present; `required` further ones always are. An open object may have
    other ones as well.
    """
    least = max(0, limits.get("minProperties", 0) - required)
    most = limits.get("maxProperties")
    if most is None:
        for chosen in combinations(optional, least):
            yield {"required": list(chosen)}
    last = least - 1 if most is None else min(most - required, len(optional))
    for size in range(0 if is_open else least, last + 1):
        for chosen in combinations(optional, size):
            absent = dict.fromkeys((name for name in optional if name not in chosen), False)
            yield {"required": list(chosen), "properties": absent, **(limits if is_open else {})}


def count(schema: dict[str, Any], keyword: str) -> int | None:
    """Return a number of characters, items or properties; a schema may write it as a float."""
    return int(schema[keyword]) if keyword in schema else None
