"""Grammars of JSON values: what they derive is valid, what is valid they derive, and the rest is refused."""

import json
import random
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewparse.constrain.cfg import CfgConstraint
from fewparse.domains.calls.decimals import Rules
from fewparse.domains.calls.values import NotEnforceable, ValueRules
from fewparse.errors import ConstraintError
from fewparse.grammar.rules import Grammar
from fewparse.json_schema.formats import format_checker
from fewparse.testing.constraints import end_of_walk
from fewparse.vocabulary import BYTES

Schema = dict[str, Any]
names = st.sampled_from(["a", "b c", "ü", 'q"'])
numbers = st.integers(-20, 20) | st.sampled_from([0.5, -2.25, 99.9])


def bounded(kind: str) -> st.SearchStrategy[Schema]:
    """Return schemas of numbers."""
    keys = st.sampled_from(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"])
    return st.dictionaries(keys, numbers, max_size=2).map(lambda bounds: {"type": kind, **bounds})


def sized(kind: str, low: str, high: str) -> st.SearchStrategy[Schema]:
    """Return schemas with a length."""
    return st.fixed_dictionaries(
        {"type": st.just(kind)}, optional={low: st.integers(0, 2), high: st.integers(0, 4)}
    )


simple = st.one_of(
    st.sampled_from([{}, {"type": "boolean"}, {"type": ["null", "string"]}, {"type": "string", "format": "date"}]),
    bounded("integer"),
    bounded("number"),
    sized("string", "minLength", "maxLength"),
    st.lists(st.sampled_from(["x", 1, 2.5, None, True, 'say "hi"\n', {"a": [1]}]), min_size=1).map(
        lambda values: {"enum": values}
    ),
)


def compound(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    """Return schemas of arrays, objects and alternatives."""
    members = st.dictionaries(names, inner, max_size=3)
    return st.one_of(
        st.tuples(sized("array", "minItems", "maxItems"), inner).map(lambda p: {**p[0], "items": p[1]}),
        st.lists(inner, min_size=1, max_size=2).map(lambda each: {"type": "array", "prefixItems": each}),
        st.tuples(members, st.sets(names)).map(
            lambda p: {"type": "object", "properties": p[0], "required": sorted(p[1] & p[0].keys())}
        ),
        inner.map(lambda each: {"type": "object", "additionalProperties": each}),
        st.lists(inner, min_size=1, max_size=3).map(lambda each: {"anyOf": each}),
    )


schemas = st.recursive(simple, compound, max_leaves=4)


def constraint_of(schema: Schema, definitions: dict[str, Schema] | None = None) -> CfgConstraint:
    """Return the constraint of the values of a schema."""
    rules: Rules = {"start": ()}
    rules["start"] = ((ValueRules(rules, definitions or {}).value(schema, "value"),),)
    return CfgConstraint(Grammar(rules), BYTES)


def walks(constraint: CfgConstraint, count: int) -> Iterator[Any]:
    """Yield the values at the ends of random walks."""
    for seed in range(count):
        last = end_of_walk(constraint, random.Random(seed))
        yield json.loads(last.text)


def is_empty(schema: Schema) -> bool:
    """Return whether no value is valid, so that a grammar derives nothing."""
    try:
        constraint_of(schema)
    except NotEnforceable:
        raise
    except ConstraintError:
        return True
    return False


@given(schema=schemas)
@settings(max_examples=150)
def test_random_walks_end_in_valid_values(schema: Schema) -> None:
    if is_empty(schema):
        return
    validator = jsonschema.Draft202012Validator(schema, format_checker=format_checker())
    for value in walks(constraint_of(schema), 3):
        validator.validate(value)


values = st.recursive(
    st.sampled_from([None, True, 0, 1, -7, 2.5, 19.75, "", "x", "ab", 'say "hi"\n', "2024-02-29", "日本"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=4,
)


@given(schema=simple | st.builds(lambda s: {"type": "array", "items": s}, simple), value=values)
@settings(max_examples=300)
def test_a_value_is_derived_iff_it_is_valid(schema: Schema, value: Any) -> None:
    valid = jsonschema.Draft202012Validator(schema, format_checker=format_checker()).is_valid(value)
    found = not is_empty(schema) and constraint_of(schema).accepts(json.dumps(value, ensure_ascii=False).encode())
    assert found == valid


@pytest.mark.parametrize(
    ("schema", "texts", "others"),
    [
        ({"type": "string", "minLength": 2, "maxLength": 3}, ['"ab"', '"é日😀"', r'"\"\\"'], ['"a"', '"abcd"']),
        ({"type": "string", "maxLength": 10**6}, ['""', '"abc"'], ["abc"]),
        ({"enum": ["2024-02-29", "soon", 1], "format": "date"}, ['"2024-02-29"', "1"], ['"soon"']),
        ({"type": "integer", "enum": [1, 300], "format": "int8"}, ["1"], ["300"]),
        ({"type": "string", "format": "date"}, ['"2024-02-29"'], ['"2023-02-29"', '"2024-13-01"', '"today"']),
        ({"type": "string", "format": "date-time"}, ['"2024-02-29T12:00:00Z"'], ['"2024-02-29 12:00"']),
        ({"type": "string", "format": "email"}, ['"a.b@x.org"'], ['"a.b"']),
        ({"type": "string", "format": "uri"}, ['"https://x.org/a?b=1"'], ['"x y"']),
        ({"type": "integer"}, ["0", "-12", "99999999999999999999999"], ["01", "-0", "1.0", "1e3"]),
        ({"type": "number"}, ["0", "1.50", "-0.5", "6.02e23", "1e-07"], ["1.", ".5", "1e999", "NaN"]),
        ({"type": "integer", "format": "int32"}, ["2147483647", "-2147483648"], ["2147483648"]),
        ({"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 2}, ["[true]"], ["[]", "[1]"]),
        ({"type": "array"}, ["[]", '[1, "a", {"b": []}]'], ["[1,2]", "[1, ]"]),
        ({"type": "object"}, ["{}", '{"a": 1, "b": {"c": null}}'], ['{"a":1}', "{a: 1}"]),
        ({"type": "object", "additionalProperties": False}, ["{}"], ['{"a": 1}']),
        ({}, ["null", "1", '"a"', "[]", "{}", "true"], ["nul", ""]),
        ({"enum": ["a", 1, None]}, ['"a"', "1", "null"], ["2"]),
        ({"type": "string", "enum": ["a", 1]}, ['"a"'], ["1"]),
    ],
    ids=str,
)
def test_texts(schema: Schema, texts: list[str], others: list[str]) -> None:
    constraint = constraint_of(schema)
    assert [text for text in texts if not constraint.accepts(text.encode())] == []
    assert [text for text in others if constraint.accepts(text.encode())] == []


def test_properties_are_in_order_and_optional_ones_may_be_left_out() -> None:
    properties = {"a": {"type": "integer"}, "b": {"type": "boolean"}, "c": {"type": "null"}}
    constraint = constraint_of({"type": "object", "properties": properties, "required": ["b"]})
    accepted = ['{"b": true}', '{"a": 1, "b": true}', '{"b": true, "c": null}', '{"a": 1, "b": true, "c": null}']
    assert all(constraint.accepts(text.encode()) for text in accepted)
    for text in ("{}", '{"a": 1}', '{"b": true, "a": 1}', '{"b": true, "d": 1}', '{, "b": true}'):
        assert not constraint.accepts(text.encode())


def test_a_recursive_schema_has_finite_values() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}, "n": {"type": "integer"}}}
    constraint = constraint_of({"$ref": "#/$defs/Node"}, {"Node": node})
    assert constraint.accepts(b'{"next": {"next": {}, "n": 1}}')
    for value in walks(constraint, 5):
        jsonschema.validate(value, {"$ref": "#/$defs/Node", "$defs": {"Node": node}})


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"type": "string", "pattern": "a+"}, "value.pattern"),
        ({"type": "number", "multipleOf": 5}, "value.multipleOf"),
        ({"type": "array", "uniqueItems": True}, "value.uniqueItems"),
        ({"not": {}}, "value.not"),
        ({"allOf": [{"pattern": "a"}, {"pattern": "b"}]}, "value.allOf"),
        ({"type": "array", "items": {"type": "object", "patternProperties": {}}}, "value.items.patternProperties"),
        ({"type": "object", "properties": {"x": {"if": {}}}}, "value.x.if"),
        ({"anyOf": [{"type": "null"}, {"contains": {}}]}, "value.anyOf[1].contains"),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "value.oneOf[1]"),
        ({"type": "string", "minLength": 10**6}, "value.minLength"),
        ({"type": "string", "format": "json-pointer"}, "value.format"),
        ({"type": "string", "format": "regex"}, "value.format"),
        ({"type": "object", "properties": {"a": {}}, "minProperties": 1}, "value.minProperties"),
        ({"enum": ["a"], "minLength": 1}, "value.minLength"),
        ({"type": "integer", "minimum": 10**30}, "value"),
        ({"enum": ["\ud800"]}, "value.enum"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_grammar_cannot_enforce_is_refused_with_its_path(schema: Schema, path: str) -> None:
    with pytest.raises(NotEnforceable, match="--notation json") as caught:
        constraint_of(schema)
    assert caught.value.message.startswith(f"{path}: ")


@pytest.mark.parametrize(
    "branches",
    [
        [{"type": "string"}, {"type": "integer"}, {"type": "null"}],
        [{"enum": ["a"]}, {"enum": ["b", "c"]}],
        [
            {"type": "object", "properties": {"kind": {"enum": ["a"]}}, "required": ["kind"]},
            {"type": "object", "properties": {"kind": {"enum": ["b"]}, "x": {}}, "required": ["kind"]},
        ],
        [
            {"type": "object", "properties": {"a": {}}, "required": ["a"]},
            {"type": "object", "properties": {"b": {}}, "required": ["b"]},
        ],
    ],
    ids=["types", "constants", "discriminator", "required"],
)
def test_one_of_is_enforced_if_its_branches_exclude_each_other(branches: list[Schema]) -> None:
    for value in walks(constraint_of({"oneOf": branches}), 10):
        jsonschema.validate(value, {"oneOf": branches})
