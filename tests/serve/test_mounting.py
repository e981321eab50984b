"""The application within another one, and its traces if OpenTelemetry is set up."""

import contextlib
import threading
import time
from collections.abc import AsyncIterator

import httpx2
import pytest
import uvicorn
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.applications import Starlette
from starlette.routing import Mount

from fewparse.lm.embedded import EmbeddedModel
from fewparse.serve.app import create_app
from fewparse.serve.server import open_socket
from support.serving import LIMITS, PROGRAM, Served, served_domain

TRACE = "0af7651916cd43dd8448eb211c80319c"


def test_the_application_works_below_a_path_of_another_one(embedded: EmbeddedModel) -> None:
    keys = ["a-key-of-twenty-characters"]
    inner = create_app([served_domain("calendar", embedded)], embedded, limits=LIMITS, api_keys=keys)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with inner.router.lifespan_context(inner):
            yield

    outer = Starlette(routes=[Mount("/parsing", inner)], lifespan=lifespan)
    with open_socket("127.0.0.1", 0) as listening:
        server = uvicorn.Server(uvicorn.Config(outer, log_config=None, lifespan="on"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/parsing"
        assert httpx2.get(f"{url}/healthz").json() == {"status": "ok"}
        assert httpx2.get(f"{url}/").headers["content-type"].startswith("text/html")
        assert httpx2.get(f"{url}/v1/domains").status_code == 401
        checked = httpx2.post(
            f"{url}/v1/check", json={"text": PROGRAM, "target": "program"}, headers={"X-API-Key": keys[0]}
        )
        assert checked.json()["accepted"] is True
        server.should_exit = True
        thread.join(20)


def test_a_request_continues_the_trace_of_its_client(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr("opentelemetry.trace.get_tracer", provider.get_tracer)
    headers = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
    served.post("/v1/parse", {"utterance": "who works with Ben?"}, headers=headers)
    spans = {span.name: span for span in exporter.get_finished_spans()}
    assert {"POST /v1/parse", "fewparse.parse"} <= set(spans)
    for span in spans.values():
        assert span.context is not None
        assert f"{span.context.trace_id:032x}" == TRACE
        assert "Ben" not in str(dict(span.attributes or {}))
