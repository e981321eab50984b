"""Agents: a client of the official package lists and calls the tools, over HTTP and over pipes."""

import asyncio
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from fewparse.lm.embedded import EmbeddedModel
from support.serving import PROGRAM, UTTERANCE, Served, running

TOOLS = ["check_calendar", "execute_calendar", "parse_calendar"]


@pytest.fixture(scope="module")
def served(embedded: EmbeddedModel) -> Iterator[Served]:
    with running(embedded, "calendar", mcp=True) as started:
        yield started


async def use(client: Any) -> dict[str, Any]:
    """List the tools, and call each of them."""
    async with client:
        listed = await client.list_tools()
        calls = {
            "parse": await client.call_tool("parse_calendar", {"utterance": UTTERANCE}),
            "check": await client.call_tool("check_calendar", {"program": PROGRAM.replace("Elena", "Elen")}),
            "execute": await client.call_tool("execute_calendar", {"program": PROGRAM}),
            "wrong": await client.call_tool("parse_calendar", {"utterance": "x" * 3_000}),
        }
    return {"tools": sorted(tool.name for tool in listed.tools), **calls}


def check_results(found: dict[str, Any]) -> None:
    assert found["tools"] == TOOLS
    assert found["parse"].structured_content["program"] == PROGRAM
    assert found["check"].structured_content["accepted"] is False
    assert found["execute"].structured_content["answer"] == "Wed 2026-03-11 3:00pm"
    assert found["wrong"].is_error
    assert "characters" in found["wrong"].content[0].text


def test_a_client_lists_and_calls_the_tools_over_http(served: Served) -> None:
    check_results(asyncio.run(use(Client(f"{served.url}/mcp"))))


def test_a_client_lists_and_calls_the_tools_over_pipes() -> None:
    command = ["-m", "fewparse.cli.main", "serve", "calendar", "--mcp", "stdio"]
    program = "import sys; from fewparse.cli.main import run; sys.argv[1:] = sys.argv[1:]; run()"
    parameters = StdioServerParameters(command=sys.executable, args=["-c", program, *command[2:]])
    check_results(asyncio.run(use(Client(stdio_client(parameters)))))
