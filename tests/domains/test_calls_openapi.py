"""OpenAPI documents: operations become functions, and calls become requests that are never sent."""

import json
from pathlib import Path
from typing import Any

import pytest

from fewparse.domains.calls.declarations import Declarations
from fewparse.domains.calls.http_request import HttpRequests
from fewparse.domains.calls.openapi import read_openapi
from fewparse.domains.calls.signatures import describe
from fewparse.errors import SourceError, UsageError

SHOP = """\
openapi: 3.0.3
info: {title: Pet shop, version: "1"}
servers:
  - url: https://{env}.pets.example/v1/
    variables: {env: {default: api}}
paths:
  /pets:
    parameters:
      - {name: X-Trace, in: header, schema: {type: string}}
      - {name: Accept, in: header, schema: {type: string}}
    get:
      operationId: listPets
      summary: List the pets
      parameters:
        - {name: limit, in: query, description: How many, schema: {type: integer, minimum: 1}}
        - {name: tags, in: query, schema: {type: array, items: {type: string}}}
        - $ref: "#/components/parameters/Status"
    post:
      description: |
        Add a pet.

        With many more details.
      requestBody: {$ref: "#/components/requestBodies/NewPet"}
  /pets/{petId}:
    get:
      parameters: [{name: petId, in: path, required: true, schema: {type: integer, format: int64}}]
      responses: {200: {description: ok}}
    patch:
      operationId: changePet
      parameters: [{name: petId, in: path, required: true, schema: {type: string}}]
      requestBody:
        content: {application/merge-patch+json: {schema: {$ref: "#/components/schemas/Pet"}}}
components:
  parameters:
    Status: {name: status, in: query, schema: {type: string, enum: [sold, on, no, 2024-01-01]}}
  requestBodies:
    NewPet:
      required: true
      content: {application/json: {schema: {$ref: "#/components/schemas/Pet"}}}
  schemas:
    Named: {type: object, required: [name], properties: {name: {type: string, minLength: 1}}}
    Pet:
      allOf:
        - $ref: "#/components/schemas/Named"
        - type: object
          required: [kind, id]
          properties:
            id: {type: integer, readOnly: true}
            kind: {type: string, enum: [cat, dog]}
            birthday: {type: string, format: date, nullable: true}
            mother: {$ref: "#/components/schemas/Pet"}
"""


def read(folder: Path, source: str | dict[str, Any], name: str = "spec.yaml") -> Declarations:
    """Return the functions of a document."""
    (folder / name).write_text(source if isinstance(source, str) else json.dumps(source))
    return read_openapi(folder / name)[0]


def one_operation(operation: dict[str, Any], path: str = "/x", version: str = "3.1.0") -> dict[str, Any]:
    """Return a document with one operation."""
    return {"openapi": version, "servers": [{"url": "http://x"}], "paths": {path: {"post": operation}}}


def request(folder: Path, source: str | dict[str, Any], program: str) -> Any:
    """Return the request of a program."""
    (folder / "functions.json").write_text(read(folder, source).to_json())
    return HttpRequests(folder / "functions.json")(program)


def test_operations_become_functions(tmp_path: Path) -> None:
    pet = '"name": string, "kind": "cat" | "dog", "birthday"?: string (date) | null, "mother"?: '
    status = '"sold" | "on" | "no" | "2024-01-01"'
    assert describe(read(tmp_path, SHOP)).split("\n") == [
        f"listPets(limit?: integer, tags?: string[], status?: {status}, X-Trace?: string) - List the pets. "
        "limit: How many",
        'post_pets(name: string, kind: "cat" | "dog", birthday?: string (date) | null, '
        f"mother?: {{{pet}object}}, X-Trace?: string) - Add a pet.",
        "get_pets_by_petId(petId: integer)",
        f"changePet(petId: string, body?: {{{pet}object}})",
    ]


def test_calls_become_requests(tmp_path: Path) -> None:
    assert request(tmp_path, SHOP, 'listPets(limit=5, tags=["a b", "c"], status="on", X-Trace="t")') == {
        "method": "GET",
        "url": "https://api.pets.example/v1/pets?limit=5&tags=a+b&tags=c&status=on",
        "query": [["limit", "5"], ["tags", "a b"], ["tags", "c"], ["status", "on"]],
        "headers": {"X-Trace": "t"},
        "body": None,
    }
    created = request(tmp_path, SHOP, 'post_pets(name="Rex", kind="dog", birthday=null)')
    assert (created["method"], created["url"]) == ("POST", "https://api.pets.example/v1/pets")
    assert created["headers"] == {"Content-Type": "application/json"}
    assert created["body"] == {"name": "Rex", "kind": "dog", "birthday": None}
    changed = request(tmp_path, SHOP, '[changePet(petId="a/b c"), changePet(petId="1", body={"kind": "cat"})]')
    assert changed[0]["url"] == "https://api.pets.example/v1/pets/a%2Fb%20c"
    assert [each["body"] for each in changed] == [None, {"kind": "cat"}]


@pytest.mark.parametrize(
    ("parameter", "value", "query"),
    [
        ({"explode": False, "schema": {"type": "array"}}, [1, 2], "q=1%2C2"),
        ({"style": "pipeDelimited", "schema": {"type": "array"}}, ["a", "b"], "q=a%7Cb"),
        ({"style": "spaceDelimited", "schema": {"type": "array"}}, ["a", "b"], "q=a+b"),
        ({"style": "deepObject", "schema": {"type": "object"}}, {"a": 1, "b": "x"}, "q%5Ba%5D=1&q%5Bb%5D=x"),
        ({"schema": {"type": "object"}}, {"a": 1, "b": True}, "a=1&b=true"),
        ({"explode": False, "schema": {"type": "object"}}, {"a": 1}, "q=a%2C1"),
        ({"content": {"application/json": {"schema": {}}}}, {"a": [1]}, "q=%7B%22a%22%3A%5B1%5D%7D"),
    ],
    ids=["csv", "pipes", "spaces", "deep", "object", "flat object", "json"],
)
def test_query_parameters_are_written_in_their_style(
    parameter: dict[str, Any], value: Any, query: str, tmp_path: Path
) -> None:
    operation = {"operationId": "f", "parameters": [{"name": "q", "in": "query", **parameter}]}
    made = request(tmp_path, one_operation(operation), f"f(q={json.dumps(value)})")
    assert made["url"] == f"http://x/x?{query}"


def test_forms_and_cookies_are_written(tmp_path: Path) -> None:
    form = {"application/x-www-form-urlencoded": {"schema": {"properties": {"a": {}, "b": {}}, "type": "object"}}}
    operation = {
        "operationId": "f",
        "parameters": [{"name": "session", "in": "cookie", "schema": {"type": "string"}}],
        "requestBody": {"content": form},
    }
    made = request(tmp_path, one_operation(operation), 'f(a="x y", b=[1, 2], session="s")')
    assert made["body"] == "a=x+y&b=1&b=2"
    assert made["headers"] == {"Content-Type": "application/x-www-form-urlencoded", "Cookie": "session=s"}


def test_parameters_with_one_name_in_two_places_are_both_arguments(tmp_path: Path) -> None:
    shared = {"name": "id", "required": True, "schema": {"type": "integer"}}
    places = [{**shared, "in": place} for place in ("path", "query")]
    schema = {"properties": {"id": {}}, "type": "object"}
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    document = one_operation({"operationId": "f", "parameters": places, "requestBody": body}, "/x/{id}")
    made = request(tmp_path, document, 'f(id=1, query_id=2, body={"id": 3})')
    assert (made["url"], made["body"]) == ("http://x/x/1?id=2", {"id": 3})


def test_the_body_of_a_request_that_needs_one_may_be_empty(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"note": {"type": "string"}}}
    for required, body in ((True, {}), (False, None)):
        content = {"required": required, "content": {"application/json": {"schema": schema}}}
        document = one_operation({"operationId": "f", "requestBody": content})
        assert request(tmp_path, document, "f()")["body"] == body


def test_json_documents_and_version_3_1_are_read(tmp_path: Path) -> None:
    nullable = {"type": ["string", "null"], "examples": ["x"]}
    parameter = {"name": "q", "in": "query", "schema": nullable}
    document = one_operation({"parameters": [parameter]}, version="3.1.1")
    assert describe(read(tmp_path, document, "spec.json")) == "post_x(q?: string | null)"
    assert describe(read(tmp_path, document, "spec.yml")) == "post_x(q?: string | null)"


def test_operations_without_a_name_have_distinct_names(tmp_path: Path) -> None:
    paths = {"/a-b": {"get": {}}, "/a_b": {"get": {}}, "/a/b": {"get": {"operationId": "get_a_b_2"}}}
    found = read(tmp_path, {"openapi": "3.0.0", "paths": paths})
    assert [function.name for function in found.functions] == ["get_a_b", "get_a_b_3", "get_a_b_2"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('swagger: "2.0"\npaths: {}', "OpenAPI '2.0' is not supported"),
        ("openapi: 4.0.0\npaths: {}", "OpenAPI '4.0.0' is not supported"),
        ("openapi: 3.2.0\npaths: {}", "OpenAPI '3.2.0' is not supported"),
        ("openapi: 3.10.0\npaths: {}", "OpenAPI '3.10.0' is not supported"),
        ("hello: world", "not an OpenAPI document"),
        ("- 1", "not an OpenAPI document"),
        ("", "not an OpenAPI document"),
        ("openapi: 3.1\npaths: {}", "there are no functions"),
        ("openapi: 3.1.0\npaths: [1]", "paths: must be an object"),
        ("openapi: 3.1.0\npaths: {/x: {get: 3}}", "paths./x.get: must be an object"),
        ("openapi: 3.1.0\npaths: {/x: {get: {parameters: 3}}}", "paths./x.get.parameters: must be a list"),
        ("openapi: 3.1.0\npaths: {/x: {get: {parameters: [{name: a}]}}}", "parameters[0]: needs `name`, and `in`"),
        ("openapi: 3.1.0\npaths: {'/x/{id}': {get: {}}}", "the path has {id}, which is not one of its parameters"),
        (
            "openapi: 3.1.0\npaths: {/x: {get: {parameters: [{$ref: other.yaml#/p}]}}}",
            "refers to another document: 'other.yaml#/p'",
        ),
        ("openapi: 3.1.0\npaths: {/x: {$ref: '#/paths/~1x'}}", "its $ref leads in a circle"),
        (
            "openapi: 3.1.0\npaths: {/x: {put: {requestBody: {required: true, content: {image/png: {}}}}}}",
            "the body is required and has no JSON form, but image/png",
        ),
        (
            "openapi: 3.1.0\npaths: {/x: {get: {operationId: f}, put: {operationId: f}}}",
            "two functions have this name",
        ),
        ("openapi: 3.1.0\npaths: {/x: {get: {operationId: [f]}}}", "`operationId` must be a text"),
        ("a: &a [*a]\nopenapi: 3.1.0\npaths: *a", "paths: must be an object"),
        (
            "openapi: 3.1.0\nx: &x {allOf: [*x]}\n"
            "paths: {/x: {get: {parameters: [{name: a, in: query, schema: *x}]}}}",
            "nested too deeply",
        ),
    ],
    ids=lambda text: text[:45],
)
def test_a_mistake_is_reported_with_its_place(source: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError) as caught:
        read(tmp_path, source)
    assert message in caught.value.message
    assert "spec.yaml" in caught.value.message


@pytest.mark.parametrize(
    ("source", "line"),
    [("a: 1\nb: [1, 2\nc: 3", 3), ("openapi: 3.0.0\npaths:\n\t/x: {}", 3), ("a: *nothing", 1), ("a: 'x", 1)],
)
def test_broken_yaml_is_reported_with_its_line(source: str, line: int, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="not valid YAML") as caught:
        read(tmp_path, source)
    assert caught.value.line == line


def test_a_tag_of_python_is_not_executed(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="not valid YAML"):
        read(tmp_path, "openapi: !!python/object/apply:os.system ['true']")


def test_without_pyyaml_a_json_document_can_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "yaml", None)
    with pytest.raises(UsageError, match="PyYAML is not installed"):
        read(tmp_path, SHOP)
    assert describe(read(tmp_path, one_operation({}), "spec.json")) == "post_x()"


def test_operations_that_cannot_be_read_are_left_out_on_request(tmp_path: Path) -> None:
    upload = {"requestBody": {"required": True, "content": {"multipart/form-data": {}}}}
    document = {"openapi": "3.0.0", "paths": {"/a": {"post": upload}, "/b": {"get": {}}}}
    (tmp_path / "spec.json").write_text(json.dumps(document))
    declarations, left_out, _ = read_openapi(tmp_path / "spec.json", skip=True)
    assert describe(declarations) == "get_b()"
    assert "paths./a.post.requestBody: the body is required" in left_out[0]
