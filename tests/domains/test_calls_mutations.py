"""Damaged documents of functions: whatever is wrong in them, they are read or refused with a message."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewparse.domains.calls.declarations import declarations_of
from fewparse.domains.calls.folder import enforceable
from fewparse.domains.calls.openapi import operations_of
from fewparse.domains.calls.references import SpecDocument
from fewparse.domains.calls.signatures import describe
from fewparse.errors import FewparseError

KEYWORDS = (
    *("type", "enum", "const", "properties", "required", "items", "prefixItems", "additionalProperties", "anyOf"),
    *("oneOf", "allOf", "$ref", "minimum", "exclusiveMaximum", "minLength", "maxItems", "minItems", "format"),
    *("pattern", "nullable", "description", "default", "not", "$defs", "readOnly", "uniqueItems", "name", "in"),
    *("parameters", "schema", "content", "requestBody", "servers", "variables", "explode", "style"),
)
TEXTS = ("object", "string", "array", "#/$defs/A", "#", "#/", "date", "path", "f", "", "3.1.0", "\x00", "ü")
scalars = st.none() | st.booleans() | st.integers(-3, 300) | st.sampled_from([0.5, -1e30]) | st.sampled_from(TEXTS)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=4),
    max_leaves=8,
)
TOOL = {
    "name": "f",
    "parameters": {
        "type": "object",
        "properties": {
            "a": {"type": "string", "enum": ["x", "y"], "description": "An a"},
            "b": {"type": "array", "items": {"$ref": "#/$defs/A"}, "minItems": 1},
            "c": {"anyOf": [{"type": "integer", "minimum": 3}, {"type": "null"}]},
        },
        "required": ["a"],
        "$defs": {"A": {"type": "object", "properties": {"next": {"$ref": "#/$defs/A"}}}},
    },
}
SPEC = {
    "openapi": "3.0.0",
    "servers": [{"url": "https://{x}", "variables": {"x": {"default": "y"}}}],
    "paths": {
        "/a/{id}": {
            "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}],
            "post": {
                "operationId": "f",
                "summary": "Do it",
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}},
                },
            },
        }
    },
    "components": {"schemas": {"A": {"type": "object", "properties": {"x": {"readOnly": True}, "y": {}}}}},
}


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values in a document."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(below for key, each in members for below in paths_of(each, (*path, key)))]


def damaged(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a copy of a document with another value at a path."""
    if not path:
        return value
    copy = json.loads(json.dumps(document))
    owner = copy
    for key in path[:-1]:
        owner = owner[key]
    owner[path[-1]] = value
    return copy


def read_tools(document: Any) -> None:
    """Read a list of tools as `fewparse new` does."""
    declarations = declarations_of(SpecDocument(document, "tools.json"))
    describe(declarations)
    enforceable(declarations, "call", skip=False)


def read_spec(document: Any) -> None:
    """Read an OpenAPI document as `fewparse new` does."""
    declarations, _, _ = operations_of(SpecDocument(document, "spec.json"))
    describe(declarations)
    enforceable(declarations, "call", skip=True)


@pytest.mark.parametrize(("document", "read"), [([TOOL], read_tools), (SPEC, read_spec)], ids=["tools", "openapi"])
@given(data=st.data())
@settings(max_examples=300)
def test_a_damaged_document_is_read_or_refused(document: Any, read: Any, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(paths_of(document)))
    with suppress(FewparseError):
        read(damaged(document, path, data.draw(values)))


def test_the_documents_are_readable_unless_they_are_damaged() -> None:
    read_tools([TOOL])
    read_spec(SPEC)
