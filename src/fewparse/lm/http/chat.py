"""Models behind `/v1/chat/completions`: the examples are turns, and the output is the assistant's message.

If the server continues an assistant message, search works as with any model of unknown vocabulary. If not, there
are only complete outputs: they are ranked, and the best prefix of an ill-formed one is closed by the constraint.
The log-probability of the end is then unknown, and counts as 0.

Without log-probabilities, outputs are only sampled.
"""

from collections.abc import Sequence
from typing import Any

from fewparse.errors import ServerUnsupported, UsageError
from fewparse.lm.http.batching import Request
from fewparse.lm.http.capabilities import CONTINUATION_FIELDS
from fewparse.lm.http.remote import RemoteModel, estimate_tokens, seed_of
from fewparse.lm.http.responses import prefix_bytes
from fewparse.lm.http.wire import Choice
from fewparse.lm.model import Completion, Guide, NextTokens, Prefix, Sampling, ScoredToken, Token
from fewparse.lm.usage import Usage
from fewparse.prompt import Message, Prompt
from fewparse.vocabulary import Mask, is_text

TOKENS_PER_TURN = 4
CERTAIN_END = NextTokens((), 0.0)


class ChatModel(RemoteModel):
    """A chat model."""

    path = "/v1/chat/completions"
    kind = "openai-chat"

    @property
    def supports_prefix(self) -> bool:
        """Whether the server continues an assistant message."""
        return super().supports_prefix and self._capabilities.continuation is not None

    def tokenize(self, text: str) -> Prefix:
        """Return the text as one token: the server reports no tokenization."""
        return (Token(text.encode()),) if text else ()

    def prompt_length(self, prompt: Prompt) -> int:
        """Estimate the number of tokens of the conversation."""
        return sum(estimate_tokens(message.content) + TOKENS_PER_TURN for message in conversation(prompt))

    def next_tokens(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        k: int,
        stop: bytes,
        usage: Usage,
        allowed: Sequence[Mask] | None = None,
    ) -> list[NextTokens]:
        """Return next tokens as for any model; the lead, which messages lack, comes first with certainty.

        Without prefix continuation, only the end can follow.
        """
        lead = prompt.lead.encode()
        requested = [prefix for prefix in prefixes if self._can_request(prefix, lead)]
        found = iter(super().next_tokens(prompt, requested, k, stop, usage))
        otherwise = [CERTAIN_END if prefix else certain_lead(lead) for prefix in prefixes]
        return [
            next(found) if self._can_request(prefix, lead) else other
            for prefix, other in zip(prefixes, otherwise, strict=True)
        ]

    def _can_request(self, prefix: Prefix, lead: bytes) -> bool:
        """Return whether the server can continue a prefix."""
        text = prefix_bytes(prefix)
        return (text.startswith(lead) and self.supports_prefix) or text == lead

    def score(
        self, prompt: Prompt, prefixes: Sequence[Prefix], continuations: Sequence[Prefix], usage: Usage
    ) -> list[tuple[float, ...]]:
        """Score continuations token by token; raise UsageError if the server cannot continue a prefix."""
        if not (self.supports_prefix and prompt.messages):
            raise UsageError(f"{self.name} cannot score a text", "Use another retriever, such as bm25.")
        return super().score(prompt, prefixes, continuations, usage)

    def _completion(
        self,
        choice: Choice,
        prompt: Prompt,
        prefix: Prefix,
        sampling: Sampling,
        guide: Guide | None,
        text: bytes | None,
    ) -> Completion:
        lead = prompt.lead.encode()
        # A grammar includes the lead.
        if not (lead and self.supports_logprobs) or prefix or sampling.grammar is not None:
            return super()._completion(choice, prompt, prefix, sampling, guide, text)
        guide = guide and guide.advance(lead)
        found = self._reader.completion(choice, 1, sampling, guide, lead)
        return Completion(
            (Token(lead), *found.tokens),
            (0.0, *found.logprobs),
            (certain_lead(lead), *found.positions),
            found.ended,
        )

    def _next_request(self, prompt: Prompt, prefixes: Sequence[Prefix], top: int, resample: int = 0) -> Request:
        (prefix,) = prefixes
        body = self._body(prompt, prefix, 1, top) | self._any_token(resample)
        length = self.prompt_length(prompt) + len(prefix)
        request = self._request(body, 1, length)
        return request._replace(assistant_prefix=self._assistant_prefix(prompt, prefix))

    def _sampling_request(
        self, prompt: Prompt, prefix: Prefix, sampling: Sampling, n: int, index: int, first: int
    ) -> Request:
        max_tokens = sampling.max_tokens - len(prefix)
        top = min(max(1, sampling.alternatives), self._capabilities.top_logprobs)
        body = self._body(prompt, prefix, max_tokens, top) | {
            "temperature": self._temperature(sampling),
            "seed": seed_of(sampling.seed, index, first),
            "stop": [sampling.stop.decode()],
            **({"n": n} if n > 1 else {}),
        }
        if sampling.grammar is not None and not prefix:
            body |= self._grammar(sampling.grammar)
        request = self._request(body, n, self.prompt_length(prompt) + len(prefix), first)
        return request._replace(assistant_prefix=self._assistant_prefix(prompt, prefix))

    def _body(self, prompt: Prompt, prefix: Prefix, max_tokens: int, top: int) -> dict[str, Any]:
        messages: list[dict[str, Any]] = [message._asdict() for message in conversation(prompt)]
        body: dict[str, Any] = {"model": self._model, "messages": messages} | self._no_cutoffs()
        body |= {"max_tokens": max_tokens}
        if self.supports_logprobs:
            body |= {"logprobs": True, "top_logprobs": top}
        if assistant_prefix := self._assistant_prefix(prompt, prefix):
            message_fields, body_fields = CONTINUATION_FIELDS[self._capabilities.continuation or "plain"]
            messages.append({"role": "assistant", "content": assistant_prefix, **message_fields})
            body |= body_fields
        return body

    def _assistant_prefix(self, prompt: Prompt, prefix: Prefix) -> str:
        """Return the text of the message to continue: the prefix without the lead."""
        text = prefix_bytes(prefix).removeprefix(prompt.lead.encode())
        if not is_text(text):
            raise ServerUnsupported(
                f"{self._batcher.client.url} accepts text only, and {text!r} ends within a character"
            )
        return text.decode()


def conversation(prompt: Prompt) -> tuple[Message, ...]:
    """Return the messages of a prompt; a prompt without any is one user message."""
    return prompt.messages or (Message("user", prompt.text),)


def certain_lead(lead: bytes) -> NextTokens:
    """Return the next tokens of an empty output, which must start with the lead."""
    return NextTokens((ScoredToken(Token(lead), 0.0),), -1_000.0, True)
