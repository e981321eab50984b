"""A parser that asks a server, `fewparse serve`."""

import json
import os
import socket
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Self, TypedDict, Unpack, get_args
from urllib.parse import urljoin

import httpx2
from pydantic import TypeAdapter, ValidationError

from fewparse.concurrent_parser import ConcurrentParser
from fewparse.errors import ParseCancelled, ServerRejected, ServerUnavailable, ServerUnsupported, UsageError
from fewparse.events import Event, Listener, Prompted, ignore
from fewparse.example import Candidate, Example, Parse, Question, Target, check_utterance
from fewparse.lm.usage import Usage
from fewparse.prompt import Part, Prompt
from fewparse.retrieve.retriever import Order
from fewparse.retry import RetryableError, RetryPolicy, jittered_wait, parse_retry_after

KEY_VARIABLE = "FEWPARSE_API_KEY"
MAX_CONCURRENCY = 8
CANCEL_CHECK_SECONDS = 0.05
EVENTS = {kind.__name__: TypeAdapter[Event](kind) for kind in get_args(Event)}
CANDIDATES, EXAMPLES = TypeAdapter(tuple[Candidate, ...]), TypeAdapter(tuple[Example, ...])
QUESTION, USAGE = TypeAdapter(Question | None), TypeAdapter(Usage)
REJECTED, RETRYABLE = {401, 403, 421}, {408, 429, 502, 503}
CODES_TO_RETRY = {"overloaded", "shutting_down", "cancelled", "model_unavailable"}


class RequestOptions(TypedDict, total=False):
    """Options of a parse that a request may set; None or absent means the setting of the server."""

    target: Target | None
    decoder: str | None
    width: int | None
    temperature: float | None
    max_tokens: int | None
    rounds: int | None
    margin: float | None
    seed: int | None
    constrained: bool | None
    rerank: float | None
    vote: bool | None
    retriever: str | None
    examples: int | None
    order: Order | None
    adapter: str | None
    execute: bool | None
    max_risk: float | None
    n_best: int | None


class RemoteParser(ConcurrentParser):
    """Parses utterances with a server; `Parser.from_url` makes one. Its parses are those of `Parser`.

    What a response leaves out is empty: the log-probabilities of candidates, the features of the confidence, and
    the parts of a prompt, which is one text. A request is repeated while the server is busy or not reachable,
    within the limits of `retry`; one that may have executed a program already, because `execute` is set and its
    connection was lost, is not. A context manager: its end closes the connections.
    """

    def __init__(
        self,
        url: str,
        domain: str | None = None,
        *,
        api_key: str | None = None,
        retry: RetryPolicy | None = None,
        **options: Unpack[RequestOptions],
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise UsageError(f"{url!r} is not the address of a server", "For example http://127.0.0.1:8000")
        self.url = url if url.endswith("/") else f"{url}/"
        self.domain = domain
        self._options = {name: value for name, value in options.items() if value is not None}
        self._retry = retry or RetryPolicy()
        key = api_key or os.environ.get(KEY_VARIABLE, "").strip()
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = httpx2.Client(timeout=self._retry.timeout, headers=headers, follow_redirects=False)
        weakref.finalize(self, self._client.close)  # a parser that is not closed leaves no open connections

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    @property
    def max_concurrency(self) -> int:
        """How many requests are sent at a time."""
        return MAX_CONCURRENCY

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def parse(
        self,
        utterance: str,
        context: str = "",
        emit: Listener = ignore,
        *,
        cancel: threading.Event | None = None,
    ) -> Parse:
        """Parse one utterance.

        `emit` receives the prompt and the events of the search, while it runs; after a failed attempt, once more.
        Once `cancel` is set, in any thread, the request is given up and `ParseCancelled` is raised.
        """
        check_utterance(utterance)
        body = {"utterance": utterance, "context": context, "options": self._options, "details": True}
        body |= {} if self.domain is None else {"domain": self.domain}
        deadline, failures = time.monotonic() + self._retry.deadline, 0
        while True:
            if cancel is not None and cancel.is_set():
                raise ParseCancelled
            try:
                return self._attempt(body, emit, cancel)
            except RetryableError as error:
                failures += 1
                wait = jittered_wait(failures - 1) if error.retry_after is None else error.retry_after
                attempts = self._retry.max_attempts
                if failures == attempts or time.monotonic() + wait > deadline:
                    message = f"{self.url} did not respond: {error}"
                    raise ServerUnavailable(message, "Is the server running? Try again later.") from None
                if cancel is None:
                    time.sleep(wait)
                else:
                    cancel.wait(wait)

    def _attempt(self, body: dict[str, Any], emit: Listener, cancel: threading.Event | None) -> Parse:
        """Send the request once; raise `RetryableError` if it may succeed when it is repeated."""
        address = urljoin(self.url, "v1/parse/stream")
        parse: Parse | None = None
        accepted = False
        try:
            with self._client.stream("POST", address, json=body) as response, ended_by(cancel, response):
                if response.status_code != httpx2.codes.OK:
                    response.read()
                    raise error_of(response)
                accepted = True
                for name, data in messages(response):
                    if name == "Parsed":
                        parse = parse_of(data)  # read on to the end, so that the connection is used again
                    if name == "Failed":
                        raise problem_of(data["error"])
                    if name in EVENTS:
                        emit(event_of(data))
        except httpx2.HTTPError as error:
            if parse is not None:
                return parse
            if cancel is not None and cancel.is_set():
                raise ParseCancelled from None
            raise self._lost(accepted, str(error) or type(error).__name__) from None
        except (ValidationError, KeyError, TypeError, ValueError) as error:
            raise ServerUnsupported(
                f"{self.url} sent a response that is not one of fewparse: {type(error).__name__}",
                "Is it the address of `fewparse serve`, and of the same version?",
            ) from None
        if parse is not None:
            return parse
        if cancel is not None and cancel.is_set():
            raise ParseCancelled
        raise self._lost(accepted, "the connection ended before the parse")

    def _lost(self, accepted: bool, message: str) -> Exception:
        """Return the error of a lost connection: to be retried, unless a program may have been executed."""
        if accepted and self._options.get("execute"):
            return ServerUnavailable(
                f"the connection to {self.url} was lost: {message}",
                "The program may have been executed; the request was not repeated.",
            )
        return RetryableError(message)


@contextmanager
def ended_by(cancel: threading.Event | None, response: httpx2.Response) -> Iterator[None]:
    """End the connection of a response once the flag is set, so that reading it ends too."""
    stream = response.extensions.get("network_stream")
    connection = None if stream is None else stream.get_extra_info("socket")
    if cancel is None or connection is None:
        yield
        return
    done = threading.Event()

    def watch() -> None:
        while not done.wait(CANCEL_CHECK_SECONDS):
            if cancel.is_set():
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def messages(response: httpx2.Response) -> Iterator[tuple[str, Any]]:
    """Yield the names and data of server-sent events."""
    name = ""
    for line in response.iter_lines():
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            yield name, json.loads(value)


def error_of(response: httpx2.Response) -> Exception:
    """Return the error of a response with another status than 200."""
    try:
        problem = response.json()["error"]
        message, hint = f"{problem['message']}", problem["hint"]
    except (ValueError, KeyError, TypeError):
        message, hint = f"status {response.status_code}", None
    if response.status_code in RETRYABLE:
        return RetryableError(message, parse_retry_after(response.headers.get("Retry-After")))
    if response.status_code in REJECTED:
        return ServerRejected(f"the server refuses the request: {message}", hint)
    if response.status_code < httpx2.codes.INTERNAL_SERVER_ERROR:
        return UsageError(message, hint)
    return ServerUnavailable(f"the server failed: {message}", hint)


def problem_of(problem: dict[str, Any]) -> Exception:
    """Return the error with which a stream ended."""
    if problem["code"] in CODES_TO_RETRY:
        return RetryableError(problem["message"])
    if problem["code"] in ("internal", "model_failed", "deadline_exceeded", "budget_exceeded"):
        return ServerUnavailable(f"the server failed: {problem['message']}", problem["hint"])
    return UsageError(problem["message"], problem["hint"])


def event_of(fields: dict[str, Any]) -> Event:
    """Return an event from its fields in JSON."""
    known = {name: value for name, value in fields.items() if name not in ("event", "similarities")}
    return EVENTS[fields["event"]].validate_python(known)


def parse_of(fields: dict[str, Any]) -> Parse:
    """Return a parse from its fields in JSON."""
    details = fields["details"]
    trace = tuple(event_of(event) for event in details["trace"])
    return Parse(
        **{name: fields[name] for name in ("utterance", "target", "output", "program", "answer", "answer_error")},
        **{name: fields[name] for name in ("failure", "examples_dropped", "model", "confidence", "decision")},
        candidates=CANDIDATES.validate_python(fields["candidates"]),
        examples=EXAMPLES.validate_python(details["examples"]),
        prompt=Prompt((Part(details["prompt"], False),), lines_dropped=fields["description_lines_dropped"]),
        trace=tuple(event for event in trace if not isinstance(event, Prompted)),
        usage=USAGE.validate_python(fields["usage"]),
        question=QUESTION.validate_python(fields["question"]),
        notes=tuple(fields.get("notes", ())),
    )
