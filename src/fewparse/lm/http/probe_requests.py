"""The requests of a probe: a small completion with some fields changed, and what a server accepts at all."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from fewparse.errors import ServerRejected, ServerUnavailable, ServerUnsupported
from fewparse.lm.http.capabilities import NO_CUTOFFS
from fewparse.lm.http.client import HttpClient
from fewparse.lm.http.request_fields import (
    EFFORTS,
    LIMIT_FIELDS,
    OPTIONAL_FIELDS,
    REASONING_TOKENS,
    RequestFields,
)
from fewparse.lm.http.wire import Choice, Reply, parse_reply

COMPLETION_TOKENS = 8
MAX_ATTEMPTS = 5
"""Attempts where an error response may mean that the tested feature is not supported."""
USE_ANOTHER = "Use another server, or a model in this process: --model embedded, gguf:PATH or hf:NAME."
TESTED_VALUES: dict[str, Any] = {"temperature": 0, "top_p": 1, "seed": 1, "stop": ["\n"]}


class ProbeRequests:
    """Sends requests with one prompt to one endpoint, with the fields that the server accepts."""

    def __init__(self, client: HttpClient, model: str, chat: bool) -> None:
        self._client = client
        self._model = model
        self._chat = chat
        self._max_attempts: int | None = None
        self._cutoffs: dict[str, Any] = {}
        self._fields = RequestFields()
        self._scored = True
        self._prompt = ""

    def _complete(self, prompt: Any = None, parse: Callable[[Any], Reply] = parse_reply, **fields: Any) -> Reply:
        """Request a completion of the test prompt, or of another one, with some fields changed."""
        body: dict[str, Any] = {"model": self._model, "max_tokens": 3, "temperature": 1, "top_p": 1, "seed": 1}
        body |= self._cutoffs
        prompt = self._prompt if prompt is None else prompt
        top = fields.pop("top", 1)
        if self._chat:
            body |= {"messages": prompt if isinstance(prompt, list) else [{"role": "user", "content": prompt}]}
            body |= {"logprobs": True, "top_logprobs": top} if self._scored else {}
        else:
            body |= {"prompt": prompt} | ({"logprobs": top} if self._scored else {})
        path = "/v1/chat/completions" if self._chat else "/v1/completions"

        def parse_choices(payload: Any) -> Reply:
            reply = parse(payload)
            if not reply.choices:
                raise ServerUnsupported(f"{self._client.url} returns no choices", USE_ANOTHER)
            return reply

        accepted = self._fields.accepted(body | fields)
        return self._client.post(path, accepted, parse_choices, max_attempts=self._max_attempts).content

    def _greedy(self, **fields: Any) -> Choice:
        return self._complete(temperature=0, **{"max_tokens": COMPLETION_TOKENS, **fields}).choices[0]

    def _passes(self, test: Callable[[], bool]) -> bool:
        """Return whether the server accepts the requests of a test and responds as expected.

        Some servers fail with status 500 on fields that others reject; a busy server is retried without limit.
        """
        self._max_attempts = MAX_ATTEMPTS
        try:
            return test()
        except (ServerRejected, ServerUnsupported, IndexError, UnicodeDecodeError):
            return False  # IndexError: no choices or no entries; UnicodeDecodeError: an echo that is not text
        except ServerUnavailable as error:
            if "status 500" in error.message:
                return False
            self._max_attempts = None
            return test()
        finally:
            self._max_attempts = None

    def _accepts(self, **fields: Any) -> bool:
        """Return whether the server accepts a request with some fields changed."""
        return self._passes(lambda: bool(self._complete(**fields).choices))

    def _largest(self, numbers: Sequence[int], test: Callable[[int], bool]) -> int | None:
        """Return the largest of these numbers that passes the test, by binary search; None if none does."""
        if self._passes(lambda: test(numbers[-1])):
            return numbers[-1]
        passed, low, high = None, 0, len(numbers) - 1
        while low < high:
            middle = (low + high) // 2
            if self._passes(lambda middle=middle: test(numbers[middle])):  # type: ignore[misc]
                passed, low = numbers[middle], middle + 1
            else:
                high = middle
        return passed

    def _find_fields(self) -> None:
        """Find which fields the server accepts, after it has rejected all of them together.

        Raises `ServerRejected` if it rejects a request with the prompt alone.
        """
        self._cutoffs, self._scored = {}, False
        for limit in LIMIT_FIELDS:
            self._fields = RequestFields(limit, OPTIONAL_FIELDS)
            if self._accepts():
                break
        else:
            self._fields = RequestFields(None, OPTIONAL_FIELDS)
            self._complete()
        for name in OPTIONAL_FIELDS:
            self._test_field(name)
        if self._accepts(**NO_CUTOFFS):
            self._cutoffs = NO_CUTOFFS
        self._scored = True
        self._scored = self._accepts()

    def _test_field(self, name: str) -> None:
        """Find whether the server accepts a field."""
        before = self._fields
        others = tuple(other for other in before.omitted if other != name)
        self._fields = replace(before, omitted=others)
        if not self._accepts(**{name: TESTED_VALUES[name]}):
            self._fields = replace(before, omitted=tuple(n for n in OPTIONAL_FIELDS if n in (*others, name)))

    def _find_text_fields(self, context_length: int | None) -> None:
        """Find whether a server without log-probabilities accepts a stop, and whether its model reasons."""
        self._scored = False
        self._test_field("stop")
        if not self._reasons():
            return
        extra = min(REASONING_TOKENS, (context_length or 2 * REASONING_TOKENS) // 2)
        self._fields = replace(self._fields, extra_tokens=extra)
        effort = next((effort for effort in EFFORTS if self._accepts(reasoning_effort=effort)), None)
        if effort is not None:
            self._fields = replace(self._fields, effort=effort, extra_tokens=0)
            self._fields = replace(self._fields, extra_tokens=extra if self._reasons() else 0)

    def _reasons(self) -> bool:
        """Return whether the model uses tokens for reasoning, which are not part of the text."""
        reply = self._complete(max_tokens=COMPLETION_TOKENS)
        return reply.reasoning_tokens > 0 or (not reply.choices[0].text and reply.choices[0].finish == "length")
