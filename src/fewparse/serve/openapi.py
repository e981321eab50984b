"""The OpenAPI document, from the table of endpoints and the classes of requests and responses."""

from collections.abc import Sequence
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

from pydantic.json_schema import models_json_schema

from fewparse.serve.endpoints import Endpoint
from fewparse.serve.responses import ErrorResponse

REFERENCE = "#/components/schemas/{model}"
DESCRIPTION = (
    "Semantic parsing: utterances become well-formed programs of the domains of this server. "
    "The events of `/v1/parse/stream` are described in the guide to serving."
)


def openapi_document(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """Return the document of these endpoints."""
    used: list[Any] = [(e.request, "validation") for e in endpoints if e.request is not None]
    used += [(e.response, "serialization") for e in endpoints if e.response is not None]
    used.append((ErrorResponse, "serialization"))
    references, schemas = models_json_schema(list(dict.fromkeys(used)), ref_template=REFERENCE)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        path = endpoint.path.replace(":path}", "}")
        paths.setdefault(path, {})[endpoint.method.lower()] = operation(endpoint, references)
    return {
        "openapi": "3.1.0",
        "info": {"title": "fewparse", "version": version("fewparse"), "description": DESCRIPTION},
        "servers": [{"url": "."}],
        "paths": paths,
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}, {}],
    }


def operation(endpoint: Endpoint, references: Any) -> dict[str, Any]:
    """Return the description of an endpoint."""
    statuses = sorted({401, 403, 421, *endpoint.errors})
    errors = {str(status): error_response(status, references) for status in statuses}
    described: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "responses": {"200": {"description": "Success", "content": content(endpoint, references)}} | errors,
    }
    if "{name" in endpoint.path:
        name = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
        described["parameters"] = [name | {"example": "calendar"}]
    if endpoint.request is not None:
        body = {"schema": references[endpoint.request, "validation"], "example": endpoint.example}
        described["requestBody"] = {"required": True, "content": {"application/json": body}}
    if endpoint.open:
        described["security"] = [{}]
    return described


def content(endpoint: Endpoint, references: Any) -> dict[str, Any]:
    """Return the content of a successful response; text and events are texts."""
    is_json = endpoint.media_type == "application/json"
    schema = references[endpoint.response, "serialization"] if is_json else {"type": "string"}
    return {endpoint.media_type: {"schema": schema}}


def error_response(status: int, references: Any) -> dict[str, Any]:
    """Return the description of an error response."""
    schema = {"application/json": {"schema": references[ErrorResponse, "serialization"]}}
    described: dict[str, Any] = {"description": HTTPStatus(status).phrase, "content": schema}
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        header = {"description": "Seconds until the next attempt", "schema": {"type": "integer"}}
        described["headers"] = {"Retry-After": header}
    return described
