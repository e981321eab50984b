"""Metrics for Prometheus, and of OpenTelemetry if the user has set up its SDK."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST, generate_latest

from fewparse.example import Parse
from fewparse.serve.problems import Problem
from fewparse.serve.scheduler import Scheduler
from fewparse.serve.telemetry import Instruments

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """The metrics of one server; none of them has text of a request."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._otel = Instruments()
        self.requests = Counter("fewparse_requests", "Requests", ["method", "route", "status"], registry=registry)
        self.request_seconds = Histogram(
            "fewparse_request_seconds", "Time of a request", ["route"], buckets=BUCKETS, registry=registry
        )
        self.parses = Counter("fewparse_parses", "Parses", ["domain", "outcome"], registry=registry)
        self.parse_seconds = Histogram(
            "fewparse_parse_seconds",
            "Time of a parse, waiting included",
            ["domain"],
            buckets=BUCKETS,
            registry=registry,
        )
        self.model_seconds = Counter("fewparse_model_seconds", "Time in the model", ["domain"], registry=registry)
        self.tokens = Counter("fewparse_tokens", "Tokens of the model", ["domain", "kind"], registry=registry)
        self.cost = Counter("fewparse_cost_dollars", "Cost of the model", ["domain"], registry=registry)
        self.streams = Gauge("fewparse_streams", "Open event streams", registry=registry)
        self._waiting = Gauge("fewparse_queue_waiting", "Waiting requests", ["queue"], registry=registry)
        self._running = Gauge("fewparse_queue_running", "Running requests", ["queue"], registry=registry)

    def watch(self, searches: Scheduler, grammars: Scheduler) -> None:
        """Report the lengths of the queues."""
        for name, lane in (("search", searches), ("grammar", grammars)):
            self._waiting.labels(name).set_function(partial(getattr, lane, "waiting"))
            self._running.labels(name).set_function(partial(getattr, lane, "running"))

    @contextmanager
    def parse(self, domain: str) -> Iterator[Callable[[Parse], None]]:
        """Record a parse: yield a function that receives it."""
        started = time.perf_counter()
        outcome = "cancelled"

        def record(parse: Parse) -> None:
            nonlocal outcome
            outcome = "failed" if parse.output is None else "parsed"
            usage = parse.usage
            self.model_seconds.labels(domain).inc(usage.seconds)
            self.tokens.labels(domain, "prompt").inc(usage.prompt_tokens)
            self.tokens.labels(domain, "completion").inc(usage.completion_tokens)
            self.cost.labels(domain).inc(usage.cost or 0)

        try:
            yield record
        except Problem as problem:
            outcome = problem.code
            raise
        finally:
            seconds = time.perf_counter() - started
            self.parses.labels(domain, outcome).inc()
            self.parse_seconds.labels(domain).observe(seconds)
            self._otel.parse(domain, outcome, seconds)

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Record a request."""
        self.requests.labels(method, route, str(status)).inc()
        self.request_seconds.labels(route).observe(seconds)
        self._otel.request(method, route, status, seconds)

    def text(self) -> bytes:
        """Return the metrics in the OpenMetrics text format."""
        text: bytes = generate_latest(self._registry)  # type: ignore[no-untyped-call]
        return text
