"""Hypothesis strategies of JSON Schemas with all kinds of keywords, and of JSON values that often fit them."""

import random
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

NAMES = ["a", "b", "ab", "x-y", "é", 'q"', "a/b"]
PATTERNS = ["^a", "b$", "^[ab]*$", "^x-", r"^\d+$", "a|b", "^(a|é)$", "", r"\w", "^.{2,3}$"]
FORMATS = ["date", "time", "date-time", "uuid", "ipv4", "email", "uri", "duration", "hostname", "int32", "phone"]
TEXTS = ["", "a", "b", "ab", "é", "aa", "12", "x-y", 'q"', "a/b", "2024-02-29", "1.2.3.4", "a\nb", "😀"]
NUMBERS = [0, 1, -1, 2, 3, 1.0, 0.5, -0.5, 2.5, 10, 100, 1e3, 1.5e-3, 3.14, -7, 12]
TYPES = ["null", "boolean", "number", "integer", "string", "array", "object"]
DRAFTS = [
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
]
Schema = Any

scalars = st.one_of(
    st.none(), st.booleans(), st.sampled_from(NUMBERS), st.sampled_from(TEXTS), st.integers(-20, 20)
)
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=6,
)


def keywords(inner: st.SearchStrategy[Schema], draft: str) -> dict[str, st.SearchStrategy[Any]]:
    """Return strategies of the values of keywords that a version of JSON Schema has."""
    names, sizes = st.sampled_from(NAMES), st.integers(0, 3)
    schemas = st.lists(inner, min_size=1, max_size=3)
    by_name = st.dictionaries(names, inner, min_size=1, max_size=3)
    number = st.sampled_from(NUMBERS)
    is_draft_4 = "draft-04" in draft
    found: dict[str, st.SearchStrategy[Any]] = {
        "type": st.sampled_from(TYPES) | st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True),
        "enum": st.lists(values, min_size=1, max_size=4, unique_by=repr),
        "minimum": number,
        "maximum": number,
        "multipleOf": st.sampled_from([1, 2, 3, 5, 0.5, 0.25, 1.0, 2.0]),
        "minLength": sizes,
        "maxLength": sizes,
        "pattern": st.sampled_from(PATTERNS),
        "format": st.sampled_from(FORMATS),
        "minItems": sizes,
        "maxItems": sizes,
        "uniqueItems": st.booleans(),
        "properties": by_name,
        "patternProperties": st.dictionaries(st.sampled_from(PATTERNS), inner, min_size=1, max_size=2),
        "additionalProperties": st.booleans() | inner,
        "required": st.lists(names, min_size=1, max_size=2, unique=True),
        "minProperties": sizes,
        "maxProperties": sizes,
        "items": inner,
        "allOf": schemas,
        "anyOf": schemas,
        "oneOf": schemas,
        "not": inner,
    }
    if is_draft_4:
        exclusive = st.booleans()
        return found | {"exclusiveMinimum": exclusive, "exclusiveMaximum": exclusive}
    found |= {
        "const": values,
        "exclusiveMinimum": number,
        "exclusiveMaximum": number,
        "propertyNames": inner,
        "contains": inner,
        "if": inner,
        "then": inner,
        "else": inner,
    }
    if "draft/" not in draft:
        tuples = {"items": inner | schemas, "additionalItems": inner}
        return found | tuples | {"dependencies": by_name | lists_of_names(names)}
    found |= {
        "dependentRequired": lists_of_names(names),
        "dependentSchemas": by_name,
        "unevaluatedProperties": st.booleans(),
        "minContains": sizes,
        "maxContains": sizes,
    }
    if "2020" in draft:
        found |= {"prefixItems": schemas, "unevaluatedItems": st.booleans()}
    return found


def lists_of_names(names: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, list[str]]]:
    """Return a strategy of names that other names demand."""
    return st.dictionaries(names, st.lists(names, max_size=2, unique=True), min_size=1, max_size=2)


TOGETHER = {
    "exclusiveMinimum": "minimum",
    "exclusiveMaximum": "maximum",
    "then": "if",
    "else": "if",
    "minContains": "contains",
    "maxContains": "contains",
    "additionalItems": "items",
}
"""Keywords that have an effect only beside another one; draft 4 demands it."""


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[Schema], draft: str, with_refs: bool) -> Schema:
    """Draw a schema with a few keywords."""
    known = keywords(inner, draft)
    if with_refs:
        known["$ref"] = st.sampled_from(["#/definitions/one", "#/definitions/two", "#"])
    chosen = draw(st.lists(st.sampled_from(sorted(known)), max_size=4, unique=True))
    chosen += [TOGETHER[name] for name in chosen if name in TOGETHER and TOGETHER[name] not in chosen]
    return {name: draw(known[name]) for name in chosen}


def schemas_of(draft: str, with_refs: bool = False, max_leaves: int = 5) -> st.SearchStrategy[Schema]:
    """Return a strategy of schemas of a draft."""
    leaf: st.SearchStrategy[Schema] = objects(st.just({}), draft, with_refs)
    if "draft-04" not in draft:
        leaf |= st.booleans()
    extend: Callable[[Any], Any] = lambda inner: objects(inner, draft, with_refs)  # noqa: E731
    return st.recursive(leaf, extend, max_leaves=max_leaves)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a whole schema: its version, and definitions that references may name."""
    draft = draw(st.sampled_from(DRAFTS))
    with_refs = draw(st.booleans())
    root = draw(schemas_of(draft, with_refs))
    if not isinstance(root, dict):
        root = {"allOf": [root]}
    definitions = {name: draw(schemas_of(draft, with_refs, max_leaves=2)) for name in ("one", "two")}
    return {"$schema": draft, **root, **({"definitions": definitions} if with_refs else {})}


def neighbours(value: Any, rng: random.Random, count: int = 6) -> list[Any]:
    """Return values that differ from a value in one place, and the value itself."""
    return [value, *(changed(value, rng) for _ in range(count))]


def changed(value: Any, rng: random.Random) -> Any:
    """Return a value that differs in one place."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        name = rng.choice([*value])
        rest = {key: member for key, member in value.items() if key != name}
        return rng.choice(
            [rest, value | {name: changed(value[name], rng)}, rest | {rng.choice(NAMES): value[name]}]
        )
    if isinstance(value, list) and value and rng.random() < 0.8:
        i = rng.randrange(len(value))
        return rng.choice([value[:i] + value[i + 1 :], [*value, value[i]], replaced(value, i, rng)])
    if isinstance(value, int | float) and not isinstance(value, bool) and rng.random() < 0.8:
        return rng.choice([value + 1, value - 1, value + 0.5, -value, float(value), value * 2, value / 4])
    if isinstance(value, str) and rng.random() < 0.8:
        return rng.choice([value + "a", value[1:], value[:-1], f"b{value}", value + value])
    return rng.choice([None, True, False, {}, [], [1, 1], {"a": 1}, *NUMBERS, *TEXTS])


def replaced(items: list[Any], i: int, rng: random.Random) -> list[Any]:
    """Return a list with another item in one place."""
    return [*items[:i], changed(items[i], rng), *items[i + 1 :]]
