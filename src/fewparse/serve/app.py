"""The ASGI application: routes, middleware, and the life of its threads."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from fewparse.lm.model import LanguageModel
from fewparse.serve.domain import ServedDomain
from fewparse.serve.endpoints import ENDPOINTS, Endpoint, json_response
from fewparse.serve.limits import ServeLimits
from fewparse.serve.metrics import Metrics
from fewparse.serve.openapi import openapi_document
from fewparse.serve.page import page_routes
from fewparse.serve.problems import Problem, problem_of
from fewparse.serve.reload import watch_domains
from fewparse.serve.security import ApiKeys, SecurityMiddleware, check_keys
from fewparse.serve.service import Service
from fewparse.serve.telemetry import span

Lifespan = Callable[[Starlette], AbstractAsyncContextManager[None]]

CLIENT_CLOSED = 499
PAGE = page_routes()
OPEN_PATHS = {endpoint.path for endpoint in ENDPOINTS if endpoint.open} | {route.path for route in PAGE}


def create_app(
    domains: Sequence[ServedDomain],
    model: LanguageModel,
    *,
    limits: ServeLimits | None = None,
    api_keys: Sequence[str] = (),
    hosts: Collection[str] = (),
    cors_origins: Sequence[str] = (),
    reload: bool = False,
    mcp: bool = False,
    playground: bool = True,
) -> Starlette:
    """Return the application, which can be mounted in another one.

    With `api_keys`, requests need one of them; with `hosts`, only these values of the header Host are allowed.
    `cors_origins` may send requests from a browser. With `reload`, domains whose files change are read again; with
    `mcp`, the endpoint /mcp is for agents. Another application in which this one is mounted must run its lifespan:
    see docs/serving.md.
    """
    check_keys(api_keys)
    metrics = Metrics()
    service = Service(domains, model, limits or ServeLimits(), metrics)
    routes: list[BaseRoute] = [Route(e.path, handler(e), methods=[e.method]) for e in ENDPOINTS]
    document = openapi_document(ENDPOINTS)
    routes.append(Route("/openapi.json", lambda request: json_response(document), methods=["GET"]))
    lifespans: list[Lifespan] = []
    if mcp:
        from fewparse.serve.mcp import mcp_route

        route, lifespan = mcp_route(service)
        routes.append(route)
        lifespans.append(lifespan)
    if playground:
        routes += PAGE
    middleware = [
        Middleware(
            SecurityMiddleware,
            keys=ApiKeys(api_keys),
            hosts=frozenset(hosts),
            origins=frozenset(cors_origins),
            needs_key=needs_key,
            observe=metrics.request,
        )
    ]
    if cors_origins:
        allowed = ["Authorization", "Content-Type"]
        middleware.insert(
            0,
            Middleware(
                CORSMiddleware,
                allow_origins=list(cors_origins),
                allow_methods=["GET", "POST"],
                allow_headers=allowed,
            ),
        )
    app = Starlette(
        routes=routes,
        middleware=middleware,
        exception_handlers={Exception: failed, HTTPException: refused, Problem: failed, ClientDisconnect: gone},
        lifespan=life(service, reload, lifespans),
    )
    app.router.redirect_slashes = False
    app.state.service = service
    return app


def handler(endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    """Return the function that Starlette calls for an endpoint; any error becomes a response."""

    async def handle(request: Request) -> Response:
        with span(f"{endpoint.method} {endpoint.path}", request.headers, route=endpoint.path):
            try:
                return await endpoint.handle(request)
            except ClientDisconnect:
                raise
            except Exception as error:
                return problem_response(problem_of(error))

    handle.__name__ = endpoint.name
    return handle


def life(service: Service, reload: bool, others: Sequence[Lifespan]) -> Lifespan:
    """Return the lifespan: watch the folders of the domains, and end all threads."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for other in others:
                await stack.enter_async_context(other(app))
            app.state.loop = asyncio.get_running_loop()
            watching = asyncio.create_task(watch_domains(service)) if reload else None
            try:
                yield
            finally:
                if watching is not None:
                    watching.cancel()
                await service.close()

    return lifespan


def needs_key(path: str) -> bool:
    """Return whether a path needs an API key: all but the health checks and the files of the page."""
    return path not in OPEN_PATHS


def problem_response(problem: Problem) -> Response:
    """Return an error response."""
    return json_response({"error": problem.as_dict()}, problem.status, problem.headers)


async def failed(request: Request, error: Exception) -> Response:
    """Respond to a request that failed."""
    return problem_response(problem_of(error))


async def gone(request: Request, error: Exception) -> Response:
    """Respond to a client that has gone."""
    return Response(status_code=CLIENT_CLOSED)


async def refused(request: Request, error: Exception) -> Response:
    """Respond to an unknown path or a wrong method."""
    assert isinstance(error, HTTPException)
    known = {404: ("not_found", "there is nothing at this path"), 405: ("method_not_allowed", "wrong method")}
    code, message = known.get(error.status_code, ("refused", str(error.detail)))
    problem = Problem(error.status_code, code, message, "The paths are listed in openapi.json.")
    response = problem_response(problem)
    for name, value in (error.headers or {}).items():
        response.headers[name] = value
    return response
