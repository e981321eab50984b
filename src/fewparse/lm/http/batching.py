"""Many questions at once: each answer's shape compared with its request, all that they took counted."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event
from typing import Any, NamedTuple

from fewparse.errors import ServerUnfit
from fewparse.lm.http.budget import Budget
from fewparse.lm.http.client import Answer, Server
from fewparse.lm.http.wire import LOST, Choice, Reply, read_reply, sound, spells
from fewparse.lm.usage import Usage
from fewparse.threads import run_concurrently

PROBE_AGAIN = "`fewparse models probe` finds out anew what the server does."


class Ask(NamedTuple):
    """One request: its body, how many choices it should get, and the most tokens that it may take.

    It holds one question or, where a server takes lists of prompts, several. `sample` tells equal requests apart.
    `begun` is the beginning of an answer to be carried on, which some servers repeat in the text, though never
    among the tokens.
    """

    body: dict[str, Any]
    choices: int
    prompt_tokens: int
    completion_tokens: int
    questions: int = 1
    sample: int = 0
    begun: str = ""

    def with_body(self, **changes: Any) -> "Ask":
        """The same request, with something changed."""
        return self._replace(body=self.body | changes)

    def for_sample(self, number: int) -> "Ask":
        """A request for one more choice, with a seed and a place in the cache of its own."""
        body = {key: value for key, value in self.body.items() if key != "n"}
        if "seed" in body:
            body["seed"] = (body["seed"] + number) % 2**31
        each = self.completion_tokens // self.choices
        return Ask(body, 1, self.prompt_tokens, each, sample=self.sample + number, begun=self.begun)


class Asker:
    """Asks one endpoint of a server.

    Where its vocabulary is unknown, tokens that it merged can only be noticed by their number (`by_number`).
    """

    def __init__(self, server: Server, path: str, budget: Budget, max_concurrency: int, by_number: bool) -> None:
        self.server = server
        self._by_number = by_number
        self._path = path
        self._budget = budget
        self._at_once = max_concurrency

    def close(self) -> None:
        """End the connections."""
        self.server.close()

    def round(self, asks: Sequence[Ask], usage: Usage) -> list[Reply]:
        """The answers to requests that are sent at the same time."""
        if not asks:
            return []
        usage.rounds += 1
        answers: dict[int, Answer] = {}

        def ask(which: int) -> None:
            answers[which] = self._ask(asks[which])

        with timed(usage):
            run_concurrently(range(len(asks)), ask, min(self._at_once, len(asks)), Event())
        for i, asked in enumerate(asks):
            usage += self._cost(asked, answers[i])
        return [answers[i].content for i in range(len(asks))]

    def samples(self, asks: Sequence[Ask], usage: Usage) -> list[list[Choice]]:
        """The choices of each request; where a server gives fewer than asked for, it is asked for the others."""
        found = [list(reply.choices) for reply in self.round(asks, usage)]
        missing = [(i, ask.for_sample(j)) for i, ask in enumerate(asks) for j in range(len(found[i]), ask.choices)]
        for (i, _), reply in zip(missing, self.round([ask for _, ask in missing], usage), strict=True):
            found[i] += reply.choices
        return found

    def _ask(self, ask: Ask) -> Answer:
        def read(told: Any) -> Reply:
            return self._checked(read_reply(told), ask)

        with self._budget.spending(ask.prompt_tokens, ask.completion_tokens) as spending:
            answer = self.server.ask(self._path, ask.body, read, ask.sample, spending.reserve)
            if not answer.cached:
                spending.spent = taken(ask, answer.content)
            return answer

    def _cost(self, ask: Ask, answer: Answer) -> Usage:
        prompt, read_before, completion = taken(ask, answer.content)
        return Usage(
            requests=ask.questions,
            cached_requests=ask.questions if answer.cached else 0,
            retries=answer.retries,
            prompt_tokens=prompt,
            completion_tokens=completion,
            cached_prompt_tokens=read_before,
            cost=0.0 if answer.cached else self._budget.cost(prompt, read_before, completion),
        )

    def _checked(self, reply: Reply, ask: Ask) -> Reply:
        """The reply, if its shape is that of the request."""
        url, got = self.server.url, len(reply.choices)
        if got > ask.choices or (got < ask.choices and ask.questions > 1) or not got:
            wanted = f"{ask.choices} completion{'s' if ask.choices > 1 else ''}"
            raise ServerUnfit(f"{url} was asked for {wanted} and gave {got}", PROBE_AGAIN)
        # Of each completion, the stop or the end may be counted and not told.
        most = sum(len(choice.entries) + 1 for choice in reply.choices)
        if self._by_number and (reply.completion_tokens or 0) > most:
            raise ServerUnfit(
                f"{url} counts {reply.completion_tokens} tokens and tells {most - got} of them: it merges some",
                "Their log-probabilities cannot be trusted: use another server, or other words.",
            )
        stop = "".join(ask.body.get("stop") or ()).encode()
        reply = reply._replace(choices=tuple(without_beginning(choice, ask.begun) for choice in reply.choices))
        for choice in reply.choices:
            if choice.text.strip(f" {LOST}") and not choice.entries:
                raise ServerUnfit(f"{url} gave a completion without log-probabilities", PROBE_AGAIN)
            if not all(map(sound, choice.entries[1 if ask.body.get("echo") else 0 :])):
                raise ServerUnfit(
                    f"{url} tells no log-probability of a token, or such as add up to more than is possible",
                    "They cannot be trusted: use another server.",
                )
            if not spells(choice, stop):
                raise ServerUnfit(
                    f"{url} tells tokens that do not spell the text {choice.text[:60]!r}",
                    "Their log-probabilities cannot be trusted: use another server.",
                )
        return reply


def without_beginning(choice: Choice, begun: str) -> Choice:
    """The choice; without the beginning of the answer in its text, where its tokens do not spell that."""
    rest = choice.text.removeprefix(begun)
    return choice if choice.entries and spells(choice, b"") else choice._replace(text=rest)


def taken(ask: Ask, reply: Reply) -> tuple[int, int, int]:
    """The tokens of the prompts, those of them that the server had read before, and those of the completions.

    Some servers count only the first of several completions: what they told is counted.
    """
    told = sum(len(choice.entries) for choice in reply.choices)
    prompt = ask.prompt_tokens if reply.prompt_tokens is None else reply.prompt_tokens
    return prompt, min(prompt, reply.cached_tokens), max(reply.completion_tokens or 0, told)


@contextmanager
def timed(usage: Usage) -> Iterator[None]:
    """Count the seconds."""
    begin = time.perf_counter()
    try:
        yield
    finally:
        usage.seconds += time.perf_counter() - begin
