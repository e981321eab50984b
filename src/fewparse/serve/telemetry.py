"""Traces and metrics of OpenTelemetry, if its API is installed; without an SDK they do nothing."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

try:
    from opentelemetry import metrics, propagate, trace
except ImportError:
    INSTALLED = False
else:
    INSTALLED = True


@contextmanager
def span(name: str, headers: Mapping[str, str] | None = None, **attributes: str) -> Iterator[None]:
    """Record a span with these attributes; `headers` are those of a request that may continue a trace."""
    if not INSTALLED:
        yield
        return
    context = None if headers is None else propagate.extract(headers)
    kind = trace.SpanKind.INTERNAL if headers is None else trace.SpanKind.SERVER
    tracer = trace.get_tracer("fewparse")
    with tracer.start_as_current_span(
        name, context, kind=kind, attributes=attributes, record_exception=False, set_status_on_exception=False
    ):
        yield


class Instruments:
    """The metrics that the server reports to OpenTelemetry."""

    def __init__(self) -> None:
        if not INSTALLED:
            return
        meter = metrics.get_meter("fewparse")
        self._requests = meter.create_histogram("http.server.request.duration", "s", "Time of a request")
        self._parses = meter.create_histogram("fewparse.parse.duration", "s", "Time of a parse, waiting included")

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Record a request."""
        if INSTALLED:
            attributes: dict[str, str | int] = {
                "http.request.method": method,
                "http.route": route,
                "http.response.status_code": status,
            }
            self._requests.record(seconds, attributes)

    def parse(self, domain: str, outcome: str, seconds: float) -> None:
        """Record a parse."""
        if INSTALLED:
            self._parses.record(seconds, {"fewparse.domain": domain, "fewparse.outcome": outcome})
