"""A parse as server-sent events: the queue, the prompt, the events of the search, and the result."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from fewparse.events import Event, Prompted, event_fields
from fewparse.serve.connection import while_connected
from fewparse.serve.domain import ServedDomain
from fewparse.serve.output import parse_fields
from fewparse.serve.problems import problem_of
from fewparse.serve.requests import StreamRequest
from fewparse.serve.service import Service
from fewparse.text import to_json

PING_SECONDS = 15.0
Message = tuple[str, dict[str, Any]]
"""The name of an event and its data."""


class EventStream(Response):
    """The response with the events of a parse. The search is cancelled when the client goes.

    Its own class, because those of libraries end streams when the process receives a signal; here, a search under
    way is finished then.
    """

    media_type = "text/event-stream"

    def __init__(self, service: Service, domain: ServedDomain, request: StreamRequest, client: str) -> None:
        self._service, self._domain, self._request, self._client = service, domain, request, client
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await while_connected(receive, self._send_events(send))
        except ClientDisconnect:
            pass
        finally:
            self._service.close_stream()

    async def _send_events(self, send: Send) -> None:
        async with aclosing(self._messages()) as messages:
            async for message in messages:
                body = ": ping\n\n" if message is None else f"event: {message[0]}\ndata: {to_json(message[1])}\n\n"
                await send({"type": "http.response.body", "body": body.encode(), "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _messages(self) -> AsyncGenerator[Message | None]:
        """Yield the events up to the result; None now and then while there is none, to keep the connection."""
        messages: asyncio.Queue[Message] = asyncio.Queue()
        parsing = asyncio.create_task(self._parse(messages))
        yield "Queued", {"waiting": self._service.searches.waiting}
        try:
            while True:
                try:
                    # Not `wait_for`, which may swallow a cancellation in Python 3.11.
                    async with asyncio.timeout(PING_SECONDS):
                        message = await messages.get()
                except TimeoutError:
                    yield None
                    continue
                yield message
                if message[0] in ("Parsed", "Failed"):
                    return
        finally:
            parsing.cancel()

    async def _parse(self, messages: "asyncio.Queue[Message]") -> None:
        """Parse the utterance, and put the events of the search and the result into the queue."""
        loop = asyncio.get_running_loop()
        service, request = self._service, self._request

        def emit(event: Event) -> None:
            fields = event_fields(event) | self._similarities(event)
            loop.call_soon_threadsafe(messages.put_nowait, (type(event).__name__, fields))

        def start() -> None:
            messages.put_nowait(("Started", {}))

        try:
            async with service.deadline(request.deadline):
                parse = await service.parse(self._domain, request, request.utterance, self._client, emit, start)
            key = service.recent.add(self._domain.name, parse, request.context)
            messages.put_nowait(("Parsed", parse_fields(key, parse, request.details)))
        except Exception as error:
            messages.put_nowait(("Failed", {"error": problem_of(error).as_dict()}))

    def _similarities(self, event: Event) -> dict[str, Any]:
        """Return how similar the examples of a prompt are to the utterance, if the retriever says so."""
        if not isinstance(event, Prompted):
            return {}
        parser = self._domain.parser(self._request.options)
        examples = [utterance for utterance, _ in event.examples]
        return {"similarities": parser.similarities(self._request.utterance, examples) if examples else []}
