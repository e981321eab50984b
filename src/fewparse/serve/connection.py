"""Read the body of a request within limits, and end work whose client has gone."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from pydantic import ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive

from fewparse.serve import requests
from fewparse.serve.limits import ServeLimits
from fewparse.serve.problems import Problem

T = TypeVar("T")
SomeRequest = TypeVar("SomeRequest", bound=requests.Request)
MAX_DETAILS = 10


async def read_request(http: Request, schema: type[SomeRequest], limits: ServeLimits) -> SomeRequest:
    """Return the body of a request; raise `Problem` if it is too large, too slow, or not as the schema says."""
    if http.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        hint = "Send JSON, with the header Content-Type: application/json."
        raise Problem(415, "unsupported_media_type", "the body is not declared as JSON", hint)
    body = await read_body(http, limits)
    try:
        return schema.model_validate_json(body)
    except ValidationError as error:
        raise invalid_request(error) from None


async def read_body(http: Request, limits: ServeLimits) -> bytes:
    """Return the body of a request; raise `Problem` if it is too large or arrives too slowly."""
    too_large = Problem(
        413, "body_too_large", f"the body has more than {limits.body_bytes:,} bytes", "Send a smaller request."
    )
    declared = http.headers.get("content-length", "0")
    if declared.isdecimal() and int(declared[:18]) > limits.body_bytes:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for chunk in http.stream():
                body += chunk
                if len(body) > limits.body_bytes:
                    raise too_large
    except TimeoutError:
        message = f"the body did not arrive within {limits.body_seconds:g} seconds"
        raise Problem(408, "body_too_slow", message, "Send the request again.") from None
    return bytes(body)


def invalid_request(error: ValidationError) -> Problem:
    """Return the response to a body that is not as its schema says: every mistake with its field."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    if found[0]["type"] == "json_invalid":
        message = found[0]["msg"].removeprefix("Invalid JSON: ")
        return Problem(400, "invalid_json", f"the body is not JSON in UTF-8: {message}", "Check its syntax.")
    details = [
        {"field": ".".join(map(str, each["loc"])) or "body", "message": each["msg"]}
        for each in found[:MAX_DETAILS]
    ]
    more = f" (and {len(found) - 1} more mistakes)" if len(found) > 1 else ""
    message = f"`{details[0]['field']}`: {details[0]['message']}{more}"
    return Problem(422, "invalid_request", message, "The fields are described in openapi.json.", details)


async def while_connected(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of work, which is cancelled when the client goes; then raise `ClientDisconnect`."""
    working = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(disconnected(receive))
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        for task in (working, watching):
            task.cancel()
        await asyncio.gather(working, watching, return_exceptions=True)


async def disconnected(receive: Receive) -> None:
    """Return when the client of a request, whose body has been read, has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
