"""The OpenAPI document: valid, true to the responses, and no request that it describes fails with 5xx."""

import json
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from jsonschema import Draft202012Validator
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from fewparse.lm.embedded import EmbeddedModel
from fewparse.serve.endpoints import ENDPOINTS
from fewparse.serve.openapi import openapi_document
from support.serving import UTTERANCE, Served

EXAMPLES = 6
CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance, status_code_conformance]
FIXED = {"/v1/parse", "/v1/parse/stream", "/v1/scratch"}
"""Requests that may take seconds each: these have their own tests."""
OPERATIONS = [e for e in ENDPOINTS if e.path not in FIXED]


@pytest.fixture(scope="module")
def document() -> Any:
    return openapi_document(ENDPOINTS)


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_the_example_of_an_endpoint_gets_what_the_document_says(
    served: Served, document: Any, endpoint: Any
) -> None:
    path = endpoint.path.replace("{name:path}", "calendar")
    response = served.client.request(endpoint.method, path, json=endpoint.example)
    operation = document["paths"][endpoint.path.replace(":path", "")][endpoint.method.lower()]
    described = operation["responses"][str(response.status_code)]["content"]
    media_type = response.headers["content-type"].partition(";")[0]
    assert response.status_code == (404 if endpoint.name == "feedback" else 200)
    if media_type == "application/json":
        schema = {**described[media_type]["schema"], "components": document["components"]}
        Draft202012Validator(schema).validate(response.json())


def test_the_server_returns_the_document(served: Served, document: Any) -> None:
    assert served.client.get("/openapi.json").json() == json.loads(json.dumps(document))


@pytest.mark.parametrize("endpoint", OPERATIONS, ids=lambda endpoint: endpoint.name)
def test_no_request_fails_on_the_server(served: Served, document: Any, endpoint: Any) -> None:
    schema = schemathesis.openapi.from_dict(document)
    operation = schema[endpoint.path.replace(":path", "")][endpoint.method]

    @settings(
        max_examples=EXAMPLES,
        phases=[Phase.generate],
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def check(case: Any) -> None:
        response = case.call(base_url=served.url)
        assert response.status_code < 500, response.text
        case.validate_response(response, checks=CHECKS)

    check()


def test_a_parse_with_every_option_is_a_parse_or_an_explained_error(
    served: Served, embedded: EmbeddedModel
) -> None:
    everything = {
        "decoder": "greedy",
        "max_tokens": 20,
        "seed": 1,
        "n_best": 1,
        "execute": True,
        "target": "canonical",
    }
    found = served.post("/v1/parse", {"utterance": UTTERANCE, "options": everything})
    assert found.status_code == 200
