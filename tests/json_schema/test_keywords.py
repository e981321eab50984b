"""Each keyword, and how keywords interact: texts that are accepted and rejected, and schemas that are refused."""

import json
import random
from typing import Any

import jsonschema
import pytest

from fewparse.constrain.json import JsonConstraint
from fewparse.constrain.json_writer import JsonWriter
from fewparse.errors import SchemaError
from fewparse.json_schema.document import Document, parse_schema
from fewparse.json_schema.translate import translate
from fewparse.testing.constraints import end_of_walk
from fewparse.vocabulary import BYTES

DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
TREE = {
    "$defs": {
        "node": {"type": "object", "properties": {"left": {"$ref": "#/$defs/node"}}, "additionalProperties": False}
    },
    "$ref": "#/$defs/node",
}
BASES = {
    "$id": "https://example.org/root.json",
    "$ref": "item.json",
    "$defs": {"x": {"$id": "item.json", "$ref": "#/$defs/n", "$defs": {"n": {"type": "null"}}}},
}
ESCAPED_POINTER = {"$ref": "#/$defs/a~1b~0%20c", "$defs": {"a/b~ c": {"const": 1}}}
ACCEPTED_AND_REJECTED: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "empty schema": ({}, [None, {"a": [1]}, "x"], []),
    "true": (True, [None, 1.5], []),
    "1.0 is an integer": ({"type": "integer"}, [1, 1.0, -0.0, 1e3], [1.5, "1", True, None]),
    "true is no number": ({"enum": [1, 0]}, [1, 0, 1.0], [True, False]),
    "1 is not true": ({"const": True}, [True], [1]),
    "enum of mixed types": (
        {"enum": [1, "1", None, [1, {"a": None}], {"a": 1, "b": [2]}]},
        [1, "1", None, [1, {"a": None}], {"b": [2], "a": 1}],
        [[1], {"a": 1}, "null", {"a": 1, "b": [2], "c": 3}],
    ),
    "enum beside type": ({"enum": [1, "a", None], "type": ["string", "null"]}, ["a", None], [1, "b"]),
    "nullable by type": ({"type": ["string", "null"], "maxLength": 1}, [None, "a", ""], ["ab", 1]),
    "bounds": ({"type": "number", "exclusiveMinimum": 0, "maximum": 1.5}, [1, 1.5, 0.001], [0, -1, 1.6, 2]),
    "draft 4 bounds": (
        {"$schema": DRAFT_4, "type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 1},
        [1, 0.5],
        [0, 2],
    ),
    "multipleOf": ({"type": "integer", "multipleOf": 3, "minimum": 4}, [6, 9.0], [3, 7]),
    "multipleOf a quarter": ({"type": "number", "multipleOf": 0.25}, [0.5, 1, -0.75], [0.3, 0.1]),
    "length in characters": ({"type": "string", "minLength": 2, "maxLength": 2}, ["😀é", 'q"'], ["😀", "abc"]),
    "long texts": ({"type": "string", "minLength": 300}, ["é" * 300], ["é" * 299]),
    "pattern is searched": ({"type": "string", "pattern": "a.c"}, ["xabcx", "a😀c"], ["ac", "a\nc"]),
    "pattern and length": ({"type": "string", "pattern": "^a+$", "maxLength": 2}, ["a", "aa"], ["", "aaa", "b"]),
    "format": ({"type": "string", "format": "date"}, ["2024-02-29"], ["2023-02-29", "2024-1-1", ""]),
    "unique items of few values": (
        {"type": "array", "items": {"enum": [1, 2]}, "minItems": 2, "uniqueItems": True},
        [[1, 2], [2, 1]],
        [[1], [1, 1], [1, 2, 1]],
    ),
    "unique items of an integer range, after others": (
        {"type": "array", "prefixItems": [{"const": 1}, {"type": "null"}], "uniqueItems": True}
        | {"items": {"type": "integer", "minimum": 1, "maximum": 2}, "minItems": 3},
        [[1, None, 2]],
        [[1, None], [1, None, 1]],
    ),
    "format that no standard defines": ({"type": "string", "format": "textarea"}, ["", "x"], [1]),
    "its negation": ({"not": {"type": "string", "format": "textarea"}}, [1, None], ["", "x"]),
    "format of another type": ({"format": "date"}, [1, None, "2024-02-29"], ["x"]),
    "items": ({"type": "array", "items": {"type": "null"}, "maxItems": 2}, [[], [None, None]], [[1], [None] * 3]),
    "tuples": (
        {"type": "array", "prefixItems": [{"type": "null"}, {"const": 1}], "items": False},
        [[], [None], [None, 1]],
        [[1], [None, 2], [None, 1, 1]],
    ),
    "tuples of draft 7": (
        {"$schema": DRAFT_7, "items": [{"type": "null"}], "additionalItems": {"type": "boolean"}},
        [[], [None, True], 1],
        [[1], [None, 1]],
    ),
    "large numbers": ({"type": "number", "multipleOf": 5}, [25, 1e22], [9.79290837729756e42, 12]),
    "many items": ({"type": "array", "maxItems": 2000, "items": {"type": "null"}}, [[None] * 1999], [[1]]),
    "unique items": (
        {"type": "array", "uniqueItems": True, "items": {"enum": [1, True, "a", {"b": 1, "c": 2}]}},
        [[1, True, "a"], [{"b": 1, "c": 2}]],
        [[1, 1.0], ["a", "a"], [{"b": 1, "c": 2}, {"c": 2, "b": 1}]],
    ),
    "required and optional": (
        {"type": "object", "properties": {"a": {"type": "null"}, "b": {}}, "required": ["b"]},
        [{"b": 1}, {"b": 1, "a": None, "c": 2}],
        [{"a": None}, {"a": 1, "b": 1}],
    ),
    "required without a declaration": ({"type": "object", "required": ["a"]}, [{"a": 1, "z": 0}], [{}, {"b": 1}]),
    "patternProperties beside additionalProperties": (
        {"type": "object", "patternProperties": {"^n": {"type": "null"}}, "additionalProperties": {"const": 1}},
        [{}, {"n": None, "x": 1}],
        [{"n": 1}, {"x": None}],
    ),
    "patternProperties beside properties": (
        {"type": "object", "properties": {"na": {"const": 1}}, "patternProperties": {"^n": {"type": "integer"}}},
        [{"na": 1}, {"nb": 2}, {"x": "y"}],
        [{"na": 2}, {"nb": "b"}],
    ),
    "closed with patterns": (
        {"type": "object", "patternProperties": {"^x-": {}}, "additionalProperties": False},
        [{}, {"x-a": 1}],
        [{"a": 1}],
    ),
    "keys with quotes and other letters": (
        {"type": "object", "properties": {'q"\\\n': {"const": 1}, "größe/~1": {}}, "additionalProperties": False},
        [{'q"\\\n': 1, "größe/~1": 0}],
        [{'q"\\\n': 2}, {"q": 1}],
    ),
    "an empty key": ({"type": "object", "properties": {"": {"const": 1}}, "required": [""]}, [{"": 1}], [{"": 2}]),
    "numbers of properties": (
        {"type": "object", "properties": {"a": {}, "b": {}}, "minProperties": 1, "maxProperties": 2},
        [{"a": 1}, {"a": 1, "b": 2}, {"z": 1}],
        [{}, {"a": 1, "b": 2, "c": 3}],
    ),
    "property names": (
        {"type": "object", "propertyNames": {"pattern": "^[ab]+$"}},
        [{}, {"ab": 1}],
        [{"c": 1}, {"": 1}],
    ),
    "dependentRequired": (
        {"type": "object", "dependentRequired": {"a": ["b"]}},
        [{}, {"b": 1}, {"a": 1, "b": 2}],
        [{"a": 1}],
    ),
    "dependencies of draft 7": (
        {
            "$schema": DRAFT_7,
            "type": "object",
            "dependencies": {"a": ["b"], "c": {"properties": {"d": {"const": 1}}}},
        },
        [{"a": 1, "b": 1}, {"c": 1, "d": 1}, {"d": 2}],
        [{"a": 1}, {"c": 1, "d": 2}],
    ),
    "if, then, else": (
        {
            "type": "object",
            "properties": {"kind": {"enum": ["a", "b"]}, "n": {}},
            "required": ["kind"],
            "if": {"properties": {"kind": {"const": "a"}}},
            "then": {"required": ["n"]},
            "else": {"properties": {"n": False}},
        },
        [{"kind": "a", "n": 1}, {"kind": "b"}],
        [{"kind": "a"}, {"kind": "b", "n": 1}, {"n": 1}],
    ),
    "then without if": ({"then": False, "else": False}, [1], []),
    "not": ({"type": ["string", "integer"], "not": {"enum": ["a", 1]}}, ["b", 2, "aa"], ["a", 1, 1.0]),
    "not required": ({"type": "object", "not": {"required": ["a", "b"]}}, [{}, {"a": 1}], [{"a": 1, "b": 1}]),
    "not a pattern": ({"type": "string", "not": {"pattern": "^a"}}, ["", "ba"], ["a", "ab"]),
    "not an object": ({"not": {"const": {"a": 1}}}, [{}, {"a": 2}, {"a": 1, "b": 1}, 1], [{"a": 1}, {"a": 1.0}]),
    "anyOf": ({"anyOf": [{"type": "null"}, {"minimum": 3, "type": "integer"}]}, [None, 3], [2, "a"]),
    "oneOf with an overlap": (
        {"type": "integer", "oneOf": [{"minimum": 3}, {"maximum": 5}]},
        [2, 6],
        [3, 4, 5],
    ),
    "allOf merges": (
        {"allOf": [{"type": "integer", "minimum": 2}, {"maximum": 4}], "multipleOf": 2},
        [2, 4],
        [3, 6, 0],
    ),
    "keywords beside a reference": (
        {"$ref": "#/$defs/a", "maximum": 3, "$defs": {"a": {"type": "integer"}}},
        [3],
        [4, "a"],
    ),
    "a reference of draft 7 hides what is beside it": (
        {
            "$schema": DRAFT_7,
            "properties": {"x": {"$ref": "#/definitions/a", "maximum": 3}},
            "definitions": {"a": {"type": "integer"}},
        },
        [{"x": 4}],
        [{"x": "a"}],
    ),
    "recursion": (TREE, [{}, {"left": {"left": {}}}], [{"left": 1}, {"right": {}}]),
    "a recursion that cannot end": (
        {"$defs": {"a": {"type": "array", "items": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a"},
        [[], [[], [[]]]],
        [1, [1]],
    ),
    "references relative to $id": (BASES, [None], [1]),
    "anchors": ({"$ref": "#here", "$defs": {"a": {"$anchor": "here", "const": 2}}}, [2], [1]),
    "escapes in a pointer": (ESCAPED_POINTER, [1], [2]),
    "unevaluatedProperties": (
        {"allOf": [{"properties": {"a": {}}}], "type": "object", "unevaluatedProperties": False},
        [{}, {"a": 1}],
        [{"b": 1}],
    ),
    "annotations": (
        {"title": "t", "default": 3, "examples": [1], "deprecated": True, "x-own": {"type": "null"}, "const": 1},
        [1],
        [2],
    ),
    "contradictory bounds in one branch": (
        {"anyOf": [{"type": "integer", "minimum": 3, "maximum": 1}, {"type": "null"}]},
        [None],
        [2],
    ),
    "contradictory bounds of an optional property": (
        {"type": "object", "properties": {"a": {"type": "string", "minLength": 3, "maxLength": 1}}},
        [{}, {"b": 1}],
        [{"a": "xx"}],
    ),
}
REFUSED: dict[str, tuple[Any, str]] = {
    "remote": ({"items": {"$ref": "https://example.org/x.json"}}, r"#/items/\$ref: a reference to another schema"),
    "missing": ({"$ref": "#/$defs/no"}, r"#/\$ref: the schema has no part"),
    "circle": ({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#"}]}}}, "lead in a circle"),
    "contradiction": ({"type": "integer", "minimum": 2, "maximum": 1}, "no JSON text is valid"),
    "more unique items than values": (
        {"type": "array", "items": {"enum": [1, 2, 1.0]}, "minItems": 3, "uniqueItems": True},
        "no JSON text is valid",
    ),
    "false": (False, "no JSON text is valid"),
    "endless": (
        {"$defs": {"a": {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/$defs/a"}}}}}
        | {"$ref": "#/$defs/a"},
        "no JSON text is valid",
    ),
    "invalid regex": (
        {"properties": {"a": {"type": "string", "pattern": "(a"}}},
        "#/properties/a/pattern: .* not a valid regular expression",
    ),
    "invalid regex of names": ({"patternProperties": {"[": {}}}, r"#/patternProperties"),
    "lookahead": ({"type": "string", "pattern": "(?=a)b"}, "#/pattern: .*lookahead"),
    "back reference": ({"type": "string", "pattern": r"(a)\1"}, "#/pattern: .*references to groups"),
    **{
        f"standard format {name}": ({"format": name}, f"#/format: the format '{name}' cannot be enforced")
        for name in ("idn-email", "idn-hostname", "iri", "iri-reference", "regex", "uri-template")
    },
    "contains": ({"type": "array", "contains": {"const": 1}}, "#/contains"),
    "dynamic reference": ({"$dynamicRef": "#a", "$defs": {"a": {"$dynamicAnchor": "a"}}}, r"#/\$dynamicRef"),
    "fraction": ({"type": "number", "multipleOf": 0.01}, "#/multipleOf"),
    "invalid schema": ({"properties": {"a": {"type": "text"}}}, "#/properties/a/type: not a valid JSON Schema"),
    "additionalItems beside a schema of all items": (
        {"$schema": DRAFT_7, "items": True, "additionalItems": {"type": "null"}},
        "#/additionalItems: it has no effect",
    ),
    "a length that no output has": ({"items": {"minLength": 10**9}}, "#/items/minLength: more than 10,000"),
    "unknown draft": ({"$schema": "http://json-schema.org/draft-99/schema#"}, r"#/\$schema"),
    "unevaluated beside anyOf": (
        {"anyOf": [{"properties": {"a": {}}}, {}], "unevaluatedProperties": False},
        "#/unevaluatedProperties",
    ),
}


def constraint_of(schema: Any) -> JsonConstraint:
    return JsonConstraint(translate(Document(schema)), BYTES)


@pytest.mark.parametrize("name", ACCEPTED_AND_REJECTED)
def test_exactly_the_valid_values_are_accepted(name: str) -> None:
    schema, accepted, rejected = ACCEPTED_AND_REJECTED[name]
    translation = translate(Document(schema))
    constraint, writer = JsonConstraint(translation, BYTES), JsonWriter(translation)
    for value in accepted:
        assert json.loads(constraint.canonical(json.dumps(value, indent=2))) == value
    for value in rejected:
        assert writer.write(value, constraint.start()) is None, value


@pytest.mark.parametrize("name", ACCEPTED_AND_REJECTED)
def test_random_walks_end_in_valid_texts(name: str) -> None:
    schema = ACCEPTED_AND_REJECTED[name][0]
    constraint, draft = constraint_of(schema), jsonschema.validators.validator_for(schema)
    for seed in range(3):
        last = end_of_walk(constraint, random.Random(seed))
        draft(schema).validate(json.loads(last.text))


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_enforced_is_refused_with_its_path(name: str) -> None:
    schema, message = REFUSED[name]
    with pytest.raises(SchemaError, match=message):
        constraint_of(schema)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "not valid JSON"),
        ("{", "not valid JSON"),
        ('{"type": "null", "type": "string"}', "the key 'type' occurs twice"),
        ('{"maximum": NaN}', "NaN is not a number"),
        ('{"maximum": 1e999}', "#/maximum: the number is too large"),
        ("[]", "an object, true or false"),
        ('{"title": "\\ud800"}', "lone surrogate"),
    ],
)
def test_a_text_that_is_no_schema_is_refused(source: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        parse_schema(source, "a.schema.json")


def test_properties_are_written_in_the_order_of_the_schema() -> None:
    constraint = constraint_of({"type": "object", "properties": {"b": {}, "a": {}}, "required": ["a"]})
    assert constraint.canonical('{"z": 0, "a": 1, "b": 2}') == '{"b":2,"a":1,"z":0}'
    assert not constraint.accepts(b'{"a":1,"b":2}')


def test_a_repeated_key_is_never_accepted() -> None:
    constraint = constraint_of({"type": "object"})
    assert constraint.start().advance(b'{"a":1,"b":2,"a"') is None
    assert constraint.start().advance(b'{"a":1,"\\u0061"') is None
