"""Send batches of requests concurrently, check each response against its request, and count usage."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event
from typing import Any, NamedTuple

from fewparse.errors import ServerUnsupported
from fewparse.lm.http.budget import Budget
from fewparse.lm.http.client import HttpClient, Response
from fewparse.lm.http.errors import PROBE_HINT
from fewparse.lm.http.wire import Choice, Reply, has_valid_logprobs, matches_text, parse_reply, spelling
from fewparse.lm.usage import Usage
from fewparse.text import REPLACEMENT
from fewparse.threads import run_concurrently


class Request(NamedTuple):
    """One request: its body, the number of choices it should return, and the maximum of tokens it may use.

    It has one prompt or, if the server accepts lists, several. `sample` distinguishes equal requests.
    `assistant_prefix` is the start of the output that a chat model continues: some servers repeat it in the
    text, though never among the tokens.
    """

    body: dict[str, Any]
    choices: int
    prompt_tokens: int
    completion_tokens: int
    prompts: int = 1
    sample: int = 0
    assistant_prefix: str = ""

    def with_body(self, **changes: Any) -> "Request":
        """Return the request with some fields of its body changed."""
        return self._replace(body=self.body | changes)

    def for_sample(self, number: int) -> "Request":
        """Return a request for one more choice, with its own seed and cache key."""
        body = {key: value for key, value in self.body.items() if key != "n"}
        if "seed" in body:
            body["seed"] = (body["seed"] + number) % 2**31
        completion_tokens = self.completion_tokens // self.choices
        return Request(
            body,
            1,
            self.prompt_tokens,
            completion_tokens,
            sample=self.sample + number,
            assistant_prefix=self.assistant_prefix,
        )


class Batcher:
    """Sends batches of requests to one endpoint of a server.

    Without a vocabulary, merged tokens can only be detected by their number (`check_counts`).
    """

    def __init__(
        self, client: HttpClient, path: str, budget: Budget, max_concurrency: int, check_counts: bool
    ) -> None:
        self.client = client
        self._check_counts = check_counts
        self._path = path
        self._budget = budget
        self._max_concurrency = max_concurrency

    def close(self) -> None:
        """Close the connections."""
        self.client.close()

    def send(self, requests: Sequence[Request], usage: Usage) -> list[Reply]:
        """Send requests concurrently, as one round, and return their replies in order."""
        if not requests:
            return []
        usage.rounds += 1
        responses: dict[int, Response[Reply]] = {}

        def send_one(index: int) -> None:
            responses[index] = self._send(requests[index])

        with timed(usage):
            run_concurrently(range(len(requests)), send_one, min(self._max_concurrency, len(requests)), Event())
        for i, request in enumerate(requests):
            usage += self._usage(request, responses[i])
        return [responses[i].content for i in range(len(requests))]

    def sample(self, requests: Sequence[Request], usage: Usage) -> list[list[Choice]]:
        """Return the choices of each request; choices missing from a reply are requested one by one."""
        choices = [list(reply.choices) for reply in self.send(requests, usage)]
        missing = [
            (i, request.for_sample(j))
            for i, request in enumerate(requests)
            for j in range(len(choices[i]), request.choices)
        ]
        for (i, _), reply in zip(missing, self.send([request for _, request in missing], usage), strict=True):
            choices[i] += reply.choices
        return choices

    def _send(self, request: Request) -> Response[Reply]:
        def parse(payload: Any) -> Reply:
            return self._checked(parse_reply(payload), request)

        with self._budget.reservation(request.prompt_tokens, request.completion_tokens) as reservation:
            response = self.client.post(self._path, request.body, parse, request.sample, reservation.reserve)
            if not response.cached:
                reservation.used = token_counts(request, response.content)
            return response

    def _usage(self, request: Request, response: Response[Reply]) -> Usage:
        prompt, cached_prompt, completion = token_counts(request, response.content)
        return Usage(
            requests=request.prompts,
            cached_requests=request.prompts if response.cached else 0,
            retries=response.retries,
            prompt_tokens=prompt,
            completion_tokens=completion,
            cached_prompt_tokens=cached_prompt,
            cost=0.0 if response.cached else self._budget.cost(prompt, cached_prompt, completion),
        )

    def _checked(self, reply: Reply, request: Request) -> Reply:
        """Return the reply if it matches the request; raise ServerUnsupported otherwise."""
        url, received, scored = self.client.url, len(reply.choices), bool(request.body.get("logprobs"))
        if received > request.choices or (received < request.choices and request.prompts > 1) or not received:
            expected = f"{request.choices} completion{'s' if request.choices > 1 else ''}"
            raise ServerUnsupported(f"{url} returned {received} instead of {expected}", PROBE_HINT)
        # A server may count the stop or end token of each completion without listing it.
        max_count = sum(len(choice.entries) + 1 for choice in reply.choices)
        if scored and self._check_counts and (reply.completion_tokens or 0) > max_count:
            raise ServerUnsupported(
                f"{url} counts {reply.completion_tokens} tokens but lists {max_count - received}: it merges some",
                "Their log-probabilities cannot be trusted: use another server, or other words.",
            )
        stop = "".join(request.body.get("stop") or ()).encode()
        choices = tuple(strip_prefix(choice, request.assistant_prefix) for choice in reply.choices)
        for choice in choices:
            self.client.check_secrets(spelling(choice.entries) if scored else choice.text.encode())
            if scored and choice.text.strip(f" {REPLACEMENT}") and not choice.entries:
                raise ServerUnsupported(f"{url} returned a completion without log-probabilities", PROBE_HINT)
            if not all(map(has_valid_logprobs, choice.entries[1 if request.body.get("echo") else 0 :])):
                raise ServerUnsupported(
                    f"{url} returned a token without a log-probability, or probabilities that sum to more than 1",
                    "They cannot be trusted: use another server.",
                )
            if not matches_text(choice, stop):
                raise ServerUnsupported(
                    f"{url} returned tokens that do not spell the text {choice.text[:60]!r}",
                    "Their log-probabilities cannot be trusted: use another server.",
                )
        return reply._replace(choices=choices)


def strip_prefix(choice: Choice, prefix: str) -> Choice:
    """Remove a repeated prefix from the text of a choice, unless its tokens spell the text with the prefix."""
    rest = choice.text.removeprefix(prefix)
    return choice if choice.entries and matches_text(choice, b"") else choice._replace(text=rest)


def token_counts(request: Request, reply: Reply) -> tuple[int, int, int]:
    """Return the tokens of the prompts, of their part that the server had cached, and of the completions.

    Some servers count only the first of several completions: the listed tokens are a lower bound.
    """
    listed = sum(len(choice.entries) for choice in reply.choices)
    prompt = request.prompt_tokens if reply.prompt_tokens is None else reply.prompt_tokens
    return prompt, min(prompt, reply.cached_tokens), max(reply.completion_tokens or 0, listed)


@contextmanager
def timed(usage: Usage) -> Iterator[None]:
    """Add the elapsed seconds to the usage."""
    start = time.perf_counter()
    try:
        yield
    finally:
        usage.seconds += time.perf_counter() - start
