"""Lists of tools: OpenAI's format, MCP, other dialects of JSON Schema, and mistakes in them."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from fewparse.domains.calls.declarations import Declarations, read_declarations
from fewparse.domains.calls.signatures import describe
from fewparse.errors import FewparseError, SourceError

WEATHER: dict[str, Any] = {
    "name": "get_weather",
    "description": "Weather of\n a city",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Its name."},
            "unit": {"type": "string", "enum": ["C", "F"], "default": "C"},
        },
        "required": ["city"],
    },
}

PARAMETERS = WEATHER["parameters"]
ODD_NAMES = ["math.sqrt", "get weather", "größe", "日本", 'say "hi"', "a(b)", "x=y", "1st", "-"]


def read(folder: Path, value: Any) -> Declarations:
    """Return the declarations of a JSON file."""
    (folder / "tools.json").write_text(value if isinstance(value, str) else json.dumps(value))
    return read_declarations(folder / "tools.json")


def parameters(folder: Path, schema: Any, **root: Any) -> dict[str, Any]:
    """Return the normalised schema of the argument `x`."""
    function = {"name": "f", "parameters": {"type": "object", "properties": {"x": schema}}}
    found: dict[str, Any] = read(folder, {"functions": [function], **root}).functions[0].arguments["x"]
    return found


@pytest.mark.parametrize(
    "document",
    [
        [{"type": "function", "function": WEATHER}],
        [WEATHER],
        WEATHER,
        {"type": "function", "function": WEATHER},
        {"tools": [{"name": "get_weather", "description": "Weather of a city", "inputSchema": PARAMETERS}]},
        {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{**WEATHER, "inputSchema": PARAMETERS}]}},
        {"functionDeclarations": [WEATHER]},
        {"functions": [WEATHER]},
        [{"name": "get_weather", "description": "Weather of a city", "input_schema": PARAMETERS}],
    ],
    ids=["openai", "bare", "one bare", "one openai", "mcp", "json-rpc", "gemini", "functions", "anthropic"],
)
def test_every_format_of_a_list_of_tools_is_read(document: Any, tmp_path: Path) -> None:
    (function,) = read(tmp_path, document).functions
    assert (function.name, function.description) == ("get_weather", "Weather of a city")
    assert list(function.arguments) == ["city", "unit"]
    assert function.required == {"city"}


def test_the_file_of_a_domain_is_read_without_loss(tmp_path: Path) -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    tree = {"name": "grow", "parameters": {"properties": {"n": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}}}
    first = read(tmp_path, [WEATHER, tree, {**tree, "name": "fell"}])
    again = read(tmp_path, first.to_json())
    assert again == first
    assert read(tmp_path, again.to_json()) == first


def test_a_function_without_parameters_takes_none(tmp_path: Path) -> None:
    for given in ({"name": "stop"}, {"name": "stop", "parameters": None}, {"name": "stop", "parameters": {}}):
        declarations = read(tmp_path, [given])
        assert describe(declarations) == "stop()"
        schema = declarations.schema_of(declarations.functions[0])
        assert not jsonschema.Draft202012Validator(schema).is_valid({"x": 1})


@pytest.mark.parametrize(
    ("given", "normal"),
    [
        ({"type": "dict", "properties": {}}, {"type": "object", "properties": {}}),
        ({"type": "float"}, {"type": "number"}),
        ({"type": "tuple", "items": {"type": "int"}}, {"type": "array", "items": {"type": "integer"}}),
        ({"type": "any"}, {}),
        ({"type": "String"}, {"type": "string"}),
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "string", "enum": ["a"], "nullable": True}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"minimum": 0, "exclusiveMinimum": True, "type": "integer"}, {"exclusiveMinimum": 0, "type": "integer"}),
        ({"minimum": 0, "exclusiveMinimum": False}, {"minimum": 0}),
        ({"const": 3}, {"enum": [3]}),
        ({"title": "X", "example": 1, "x-y": 2, "readOnly": True, "hint": 3, "type": "null"}, {"type": "null"}),
        ({"type": "string", "format": "phone"}, {"type": "string"}),
        ({"items": [{}, {}], "additionalItems": False}, {"prefixItems": [{}, {}], "items": False}),
        (
            {"items": {"type": "null"}, "additionalItems": False, "uniqueItems": False, "unevaluatedItems": True},
            {"items": {"type": "null"}},
        ),
        (True, {}),
        (False, {"not": {}}),
        ({"type": "string", "description": " two\n lines "}, {"type": "string", "description": "two lines"}),
        ({"allOf": [{"type": "string"}], "description": "d"}, {"type": "string", "description": "d"}),
        (
            {"allOf": [{"minimum": 1, "type": "number"}, {"minimum": 3, "type": "integer"}]},
            {"minimum": 3, "type": "integer"},
        ),
        (
            {"properties": {"a": {"type": "string", "required": True}, "b": {}}, "type": "object"},
            {"properties": {"a": {"type": "string"}, "b": {}}, "type": "object", "required": ["a"]},
        ),
        ({"required": ["a"], "type": "object"}, {"type": "object", "required": ["a"], "properties": {"a": {}}}),
    ],
    ids=lambda value: "" if isinstance(value, bool) else str(value)[:40],
)
def test_other_dialects_become_json_schema(given: Any, normal: Any, tmp_path: Path) -> None:
    assert parameters(tmp_path, given) == normal


def test_all_of_objects_are_merged_and_others_are_kept(tmp_path: Path) -> None:
    one = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    two = {"properties": {"a": {"minimum": 1}, "b": {}}, "required": ["b"]}
    assert parameters(tmp_path, {"allOf": [one, two]}) == {
        "type": "object",
        "properties": {"a": {"type": "integer", "minimum": 1}, "b": {}},
        "required": ["a", "b"],
    }
    closed = {**one, "additionalProperties": False}
    assert parameters(tmp_path, {"allOf": [closed, two]}) == {"allOf": [closed, two]}
    patterns = [{"pattern": "a"}, {"pattern": "b"}]
    assert parameters(tmp_path, {"allOf": patterns}) == {"allOf": patterns}


def test_references_are_followed_within_the_parameters_or_the_document(tmp_path: Path) -> None:
    assert parameters(tmp_path, {"$ref": "#/$defs/a~1b"}, **{"$defs": {"a/b": {"type": "int"}}}) == {
        "$ref": "#/$defs/a_1b"
    }
    own = {"properties": {"x": {"$ref": "#/definitions/N"}}, "definitions": {"N": {"type": "int"}}}
    declarations = read(tmp_path, [{"name": "f", "parameters": own}, {"name": "g", "parameters": own}])
    assert [d["type"] for d in declarations.definitions.values()] == ["integer", "integer"]
    for function in declarations.functions:
        jsonschema.validate({"x": 1}, declarations.schema_of(function))
        assert not jsonschema.Draft202012Validator(declarations.schema_of(function)).is_valid({"x": "1"})


@pytest.mark.parametrize("name", ODD_NAMES)
def test_every_printable_name_is_possible(name: str, tmp_path: Path) -> None:
    assert read(tmp_path, [{"name": name}]).functions[0].name == name


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("[", ":1:2: not valid JSON"),
        ('{"tools": [],\n "tools": []}', "the key 'tools' occurs twice"),
        ("[" * 100_000, "nested too deeply"),
        ('[{"name": "f", "parameters": {"minimum": NaN}}]', "NaN is not a number"),
        ("3", "not a list of functions"),
        ('{"openapi": "3.0.0"}', "not a list of functions"),
        ("[]", "there are no functions"),
        ("[3]", "tools[0]: must be an object"),
        ('[{"parameters": {}}]', "tools[0]: `name` is missing"),
        ('[{"name": ["f"]}]', "tools[0]: `name` is missing or not a text"),
        ('[{"type": "web_search"}]', "a tool of the type 'web_search' is not a function"),
        ('[{"name": "f"}, {"name": "f"}]', "'f': two functions have this name"),
        ('[{"name": "a\\nb"}]', "must be printable text"),
        ('[{"name": "\\ud800"}]', "must be printable text"),
        ('[{"name": "f", "parameters": 3}]', "f.parameters: a schema must be an object"),
        ('[{"name": "f", "parameters": {"type": "array"}}]', "f: `parameters` must be the schema of an object"),
        (
            '[{"name": "f", "parameters": {"properties": 3}}]',
            ".properties: must be an object of schemas",
        ),
        ('[{"name": "f", "parameters": {"required": "x"}}]', "f.parameters.required: must be a list of names"),
        ('[{"name": "f", "parameters": {"properties": {"x": {"type": "thing"}}}}]', "unknown type 'thing'"),
        ('[{"name": "f", "parameters": {"anyOf": {}}}]', "f.parameters.anyOf: must be a list of schemas"),
        ('[{"name": "f", "parameters": {"$ref": "http://x.org/a.json"}}]', "refers to another document"),
        ('[{"name": "f", "parameters": {"$ref": "#/$defs/X"}}]', "which is not in the document"),
        (
            '{"functions": [{"name": "f", "parameters": {"$ref": "#/$defs/A"}}], '
            '"$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}}',
            "its $ref leads in a circle",
        ),
    ],
    ids=lambda text: text[:40],
)
def test_a_mistake_is_reported_with_its_place(document: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError) as caught:
        read(tmp_path, document)
    assert message in caught.value.message
    assert "tools.json" in caught.value.message


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FewparseError, match=r"no\.json: cannot be read: No such file"):
        read_declarations(tmp_path / "no.json")


def test_a_line_describes_the_signature_the_function_and_its_arguments(tmp_path: Path) -> None:
    assert describe(read(tmp_path, [WEATHER])) == (
        'get_weather(city: string, unit?: "C" | "F") - Weather of a city. city: Its name'
    )
    point = {"type": "object", "properties": {"x": {"type": "number"}, "y": {}}, "required": ["x"]}
    shapes = {"anyOf": [{"type": "array", "items": {"type": ["integer", "null"]}}, {"type": "null"}]}
    plot = {"name": "plot it", "parameters": {"properties": {"at": point, "shapes": shapes, "when": DATE}}}
    assert describe(read(tmp_path, [plot])) == (
        '"plot it"(at?: {"x": number, "y"?: any}, shapes?: (integer | null)[] | null, when?: string (date))'
    )


DATE = {"type": "string", "format": "date"}


def test_long_descriptions_are_shortened(tmp_path: Path) -> None:
    many = {"enum": [f"value {i}" for i in range(1000)]}
    long = {"name": "f", "description": "word " * 1000, "parameters": {"properties": {"x": many}}}
    line = describe(read(tmp_path, [long]))
    assert len(line) < 1000
    assert "\n" not in line
