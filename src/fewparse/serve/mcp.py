"""Tools for agents by the Model Context Protocol: parse, check and execute, for each domain."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import wraps
from importlib.metadata import version
from typing import Any, ParamSpec, TypeVar

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import ToolAnnotations
from starlette.applications import Starlette
from starlette.routing import BaseRoute

from fewparse.serve import tools
from fewparse.serve.domain import ServedDomain
from fewparse.serve.output import parse_fields
from fewparse.serve.problems import problem_of
from fewparse.serve.requests import CheckRequest, ExecuteRequest, ParseRequest
from fewparse.serve.service import Service

PATH = "/mcp"
CLIENT = "mcp"
INSTRUCTIONS = (
    "Each domain has a small formal language. `parse_*` translates what a person says into a program that is "
    "always well-formed, `check_*` says whether a program is, `execute_*` runs one. A parse may still be wrong: "
    "if its decision is `confirm`, ask the person its question before you execute the program."
)
P = ParamSpec("P")
T = TypeVar("T")


def mcp_server(service: Service) -> MCPServer[Any]:
    """Return a server with the tools of all domains."""
    server: MCPServer[Any] = MCPServer("fewparse", instructions=INSTRUCTIONS, version=version("fewparse"))
    for domain in service.domains.values():
        add_tools(server, service, domain)
    return server


def add_tools(server: MCPServer[Any], service: Service, domain: ServedDomain) -> None:
    """Add the tools of a domain."""
    name, suffix = domain.name, re.sub(r"[^A-Za-z0-9_-]", "_", domain.name)
    about = domain.domain.table.description
    examples = "; ".join(domain.samples[:3])
    reading = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    acting = ToolAnnotations(read_only_hint=domain.domain.executes)

    @explained
    async def parse(utterance: str) -> dict[str, Any]:
        (found,) = await service.parse_all(ParseRequest(domain=name, utterance=utterance), CLIENT)
        assert found.parse is not None  # otherwise its problem was raised
        key = service.recent.add(name, found.parse, "")
        return parse_fields(key, found.parse, details=False)

    @explained
    async def check(program: str) -> dict[str, Any]:
        request = CheckRequest(domain=name, text=program, target="program")
        return (await tools.check(service, request, CLIENT)).model_dump()

    @explained
    async def execute(program: str) -> dict[str, Any]:
        return (await tools.execute(service, ExecuteRequest(domain=name, program=program), CLIENT)).model_dump()

    said = f"Translate an utterance into a program of the domain {name}. {about} For example: {examples}"
    server.add_tool(parse, f"parse_{suffix}", description=said, annotations=reading)
    checked = f"Check whether a program of the domain {name} is well-formed; if not, where and what was expected."
    server.add_tool(check, f"check_{suffix}", description=checked, annotations=reading)
    if domain.may_execute:
        executed = f"Execute a program of the domain {name} and return its answer."
        server.add_tool(execute, f"execute_{suffix}", description=executed, annotations=acting)


def explained(function: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Turn the errors of a function into messages for the agent."""

    @wraps(function)
    async def call(*arguments: P.args, **named: P.kwargs) -> T:
        try:
            return await function(*arguments, **named)
        except Exception as error:
            problem = problem_of(error)
            raise ToolError(" ".join(filter(None, (f"{problem.message}.", problem.hint)))) from None

    return call


def mcp_route(service: Service) -> tuple[BaseRoute, Callable[[Starlette], AbstractAsyncContextManager[None]]]:
    """Return the route of streamable HTTP, and its lifespan. Hosts and keys are checked before it."""
    server = mcp_server(service)
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        max_request_body_size=service.limits.body_bytes,
        transport_security=unchecked,
    )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with server.session_manager.run():
            yield

    return app.routes[0], lifespan


def run_stdio(service: Service) -> None:
    """Serve the tools on standard input and output until it ends."""
    server = mcp_server(service)

    async def run() -> None:
        try:
            await server.run_stdio_async()
        finally:
            await service.close()

    anyio.run(run)
