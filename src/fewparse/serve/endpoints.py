"""The endpoints of the API: a table from which the routes and the OpenAPI document are made."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request as HttpRequest
from starlette.responses import Response as HttpResponse

from fewparse.serve import requests, responses, tools
from fewparse.serve.connection import read_request, while_connected
from fewparse.serve.output import domain_response, domain_summary, model_response, parse_fields
from fewparse.serve.problems import Problem
from fewparse.serve.scratch import check_scratch
from fewparse.serve.service import Service
from fewparse.serve.streaming import EventStream
from fewparse.text import to_json

Fields = Mapping[str, Any]
EXAMPLE = "when is my next meeting with Elena?"
PROGRAM = "(when (next (meetings (with me Elena))))"


@dataclass(frozen=True)
class Call:
    """One request: the service, the client that is charged for it, and the body or the parameters of the path."""

    service: Service
    client: str
    body: Any
    parameters: Mapping[str, str]


METRICS = "application/openmetrics-text"


@dataclass(frozen=True)
class Endpoint:
    """A method and a path, the classes of its request and its response, and what the document says about it.

    `respond` returns the response, or a stream of events. `open` endpoints need no API key.
    """

    method: str
    path: str
    name: str
    summary: str
    response: type[responses.Response] | None
    respond: Callable[[Call], Awaitable["responses.Response | Fields | HttpResponse"]]
    request: type[requests.Request] | None = None
    example: Fields | None = None
    media_type: str = "application/json"
    open: bool = False
    errors: tuple[int, ...] = field(default=())

    async def handle(self, http: HttpRequest) -> HttpResponse:
        """Respond to a request."""
        service: Service = http.app.state.service
        body = None if self.request is None else await read_request(http, self.request, service.limits)
        call = Call(service, http.state.client, body, http.path_params)
        found = await while_connected(http.receive, self._found(call))
        return found if isinstance(found, HttpResponse) else json_response(found)

    async def _found(self, call: Call) -> "responses.Response | Fields | HttpResponse":
        return await self.respond(call)


def json_response(
    content: responses.Response | Fields, status: int = 200, headers: Mapping[str, str] | None = None
) -> HttpResponse:
    """Return a JSON response."""
    fields = content.model_dump(mode="json") if isinstance(content, responses.Response) else content
    sent = {"Cache-Control": "no-store", **(headers or {})}
    return HttpResponse(to_json(fields), status, sent, "application/json")


async def parse(call: Call) -> Fields:
    """Parse one utterance or many."""
    request: requests.ParseRequest = call.body
    name = call.service.domain(request.domain).name
    parses = []
    for found in await call.service.parse_all(request, call.client):
        if found.parse is not None:
            key = call.service.recent.add(name, found.parse, request.context)
            parses.append(parse_fields(key, found.parse, request.details))
        elif found.problem is not None:
            parses.append({"utterance": found.utterance, "error": found.problem.as_dict()})
    return {"domain": name, "parses": parses}


async def stream(call: Call) -> HttpResponse:
    """Parse one utterance with a stream of events."""
    domain = call.service.open_stream(call.body)
    return EventStream(call.service, domain, call.body, call.client)


async def domains(call: Call) -> responses.Response:
    """List the domains."""
    return responses.DomainsResponse(domains=[domain_summary(each) for each in call.service.domains.values()])


async def one_domain(call: Call) -> responses.Response:
    """Describe a domain."""
    domain = call.service.domain(call.parameters["name"])
    return domain_response(domain, call.service.limits)


async def models(call: Call) -> responses.Response:
    """List the models."""
    return responses.ModelsResponse(models=[model_response(call.service.model)])


async def health(call: Call) -> Fields:
    """Say that the process answers."""
    return {"status": "ok"}


async def ready(call: Call) -> Fields:
    """Say whether new requests are accepted."""
    if call.service.draining:
        raise Problem(503, "shutting_down", "the server is shutting down", "Use another one.", retry_after=1)
    return {"status": "ready"}


async def metrics(call: Call) -> HttpResponse:
    """Return the metrics."""
    found = call.service.metrics
    return HttpResponse(found.text(), headers={"Cache-Control": "no-store"}, media_type=found.content_type)


def post(
    path: str,
    name: str,
    summary: str,
    request: type[requests.Request],
    response: type[responses.Response],
    respond: Callable[[Call], Awaitable[responses.Response | Fields | HttpResponse]],
    example: Fields,
    errors: tuple[int, ...] = (),
    media_type: str = "application/json",
) -> Endpoint:
    """Return an endpoint with a body."""
    common = (400, 404, 408, 413, 415, 422, 429, 503, 504)
    return Endpoint(
        "POST", path, name, summary, response, respond, request, example, media_type, errors=(*common, *errors)
    )


ENDPOINTS: tuple[Endpoint, ...] = (
    post(
        "/v1/parse",
        "parse",
        "Parse one utterance, or many, into well-formed programs",
        requests.ParseRequest,
        responses.ParsesResponse,
        parse,
        {"domain": "calendar", "utterance": EXAMPLE},
        errors=(403, 502),
    ),
    post(
        "/v1/parse/stream",
        "stream",
        "Parse an utterance, with the events of the search as server-sent events",
        requests.StreamRequest,
        responses.ParseResponse,
        stream,
        {"domain": "calendar", "utterance": EXAMPLE},
        media_type="text/event-stream",
    ),
    post(
        "/v1/execute",
        "execute",
        "Execute a program",
        requests.ExecuteRequest,
        responses.ExecuteResponse,
        lambda call: tools.execute(call.service, call.body, call.client),
        {"domain": "calendar", "program": PROGRAM},
        errors=(403,),
    ),
    post(
        "/v1/check",
        "check",
        "Check whether a program or a canonical utterance is well-formed",
        requests.CheckRequest,
        responses.CheckResponse,
        lambda call: tools.check(call.service, call.body, call.client),
        {"domain": "calendar", "text": "(when (next (meetings (with me Elen))))", "target": "program"},
    ),
    post(
        "/v1/translate",
        "translate",
        "Translate a canonical utterance to a program, or back",
        requests.TranslateRequest,
        responses.TranslateResponse,
        lambda call: tools.translate(call.service, call.body, call.client),
        {"domain": "calendar", "text": PROGRAM, "to": "utterance"},
    ),
    post(
        "/v1/complete",
        "complete",
        "List what may follow the start of an output",
        requests.CompleteRequest,
        responses.CompleteResponse,
        lambda call: tools.complete(call.service, call.body, call.client),
        {"domain": "calendar", "text": "(when (", "target": "program"},
    ),
    post(
        "/v1/feedback",
        "feedback",
        "Say whether a parse was right",
        requests.FeedbackRequest,
        responses.FeedbackResponse,
        lambda call: tools.feedback(call.service, call.body, call.client),
        {"id": "the id of a parse", "outcome": "corrected", "program": PROGRAM},
    ),
    post(
        "/v1/scratch",
        "scratch",
        "Check a grammar and its examples, and write random sentences",
        requests.ScratchRequest,
        responses.ScratchResponse,
        lambda call: check_scratch(call.service, call.body, call.client),
        {
            "grammar": 'start: "(" ("on" | "off") " lamp)"\n',
            "dialect": "lark",
            "examples": [{"utterance": "light please", "program": "(on lamp)"}],
        },
    ),
    Endpoint("GET", "/v1/domains", "domains", "List the domains", responses.DomainsResponse, domains),
    Endpoint(
        "GET",
        "/v1/domains/{name:path}",
        "domain",
        "Describe a domain: settings, examples, grammar",
        responses.DomainResponse,
        one_domain,
        errors=(404,),
    ),
    Endpoint("GET", "/v1/models", "models", "List the language models", responses.ModelsResponse, models),
    Endpoint("GET", "/healthz", "health", "Does the process answer", responses.StatusResponse, health, open=True),
    Endpoint(
        "GET",
        "/readyz",
        "ready",
        "Are new requests accepted",
        responses.StatusResponse,
        ready,
        open=True,
        errors=(503,),
    ),
    Endpoint("GET", "/metrics", "metrics", "Metrics for Prometheus", None, metrics, media_type=METRICS),
)
