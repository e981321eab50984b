"""A model behind `/v1/chat/completions`: the examples are turns, and the output is its answer.

Where the server carries on a begun answer, search is the same as with any model whose vocabulary is unknown.
Where it does not, there are whole answers only: they are ranked, and the best beginning of a bad one is closed by
the constraint. How likely an answer was to end where it ended cannot be asked then: what is not told counts
nothing.
"""

from collections.abc import Sequence
from typing import Any

from fewparse.errors import ServerUnfit, UsageError
from fewparse.lm.http.batching import Ask
from fewparse.lm.http.remote import RemoteModel, estimate, seed_of
from fewparse.lm.http.responses import whole
from fewparse.lm.http.wire import Choice
from fewparse.lm.model import Completion, Guide, NextTokens, Prefix, Sampling, ScoredToken, Token
from fewparse.lm.usage import Usage
from fewparse.prompt import Message, Prompt
from fewparse.vocabulary import Mask, is_text

TOKENS_A_TURN = 4
CERTAIN_END = NextTokens((), 0.0)


class ChatModel(RemoteModel):
    """A model that only converses."""

    path = "/v1/chat/completions"
    kind = "openai-chat"

    @property
    def supports_prefix(self) -> bool:
        """Whether it can be asked what follows the beginning of an answer."""
        return self._abilities.continuation is not None

    def tokenize(self, text: str) -> Prefix:
        """The text as one token: its own are not told."""
        return (Token(text.encode()),) if text else ()

    def prompt_length(self, prompt: Prompt) -> int:
        """About how many tokens the conversation has."""
        return sum(estimate(message.content) + TOKENS_A_TURN for message in conversation(prompt))

    def next_tokens(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        k: int,
        stop: bytes,
        usage: Usage,
        allowed: Sequence[Mask] | None = None,
    ) -> list[NextTokens]:
        """As for any model; the lead, which an answer lacks, comes first of itself.

        Where a begun answer cannot be carried on, all that can be said behind it is the end.
        """
        lead = prompt.lead.encode()
        asked = [prefix for prefix in prefixes if self._askable(prefix, lead)]
        answers = iter(super().next_tokens(prompt, asked, k, stop, usage))
        otherwise = [CERTAIN_END if prefix else said_first(lead) for prefix in prefixes]
        return [
            next(answers) if self._askable(prefix, lead) else other
            for prefix, other in zip(prefixes, otherwise, strict=True)
        ]

    def _askable(self, prefix: Prefix, lead: bytes) -> bool:
        """Whether the server can be asked what follows a prefix."""
        said = whole(prefix)
        return (said.startswith(lead) and self.supports_prefix) or said == lead

    def score(
        self, prompt: Prompt, prefixes: Sequence[Prefix], continuations: Sequence[Prefix], usage: Usage
    ) -> list[tuple[float, ...]]:
        """Token by token, where the server can be asked that; it is never about a text that is no answer."""
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
        if not lead or prefix or sampling.grammar is not None:  # a grammar brings it along
            return super()._completion(choice, prompt, prefix, sampling, guide, text)
        guide = guide and guide.advance(lead)
        found = self._reader.completion(choice, 1, sampling, guide, lead)
        return Completion(
            (Token(lead), *found.tokens), (0.0, *found.logprobs), (said_first(lead), *found.positions), found.ended
        )

    def _next_ask(self, prompt: Prompt, prefixes: Sequence[Prefix], top: int, again: int = 0) -> Ask:
        (prefix,) = prefixes
        body = self._body(prompt, prefix, 1, top) | self._any_token(again)
        return Ask(body, 1, self.prompt_length(prompt) + len(prefix), 1, begun=self._begun(prompt, prefix))

    def _sampling_ask(
        self, prompt: Prompt, prefix: Prefix, sampling: Sampling, n: int, which: int, first: int
    ) -> Ask:
        longest = sampling.max_tokens - len(prefix)
        body = self._body(prompt, prefix, longest, min(max(1, sampling.alternatives), self._abilities.top)) | {
            "temperature": self._temperature(sampling),
            "seed": seed_of(sampling.seed, which, first),
            "stop": [sampling.stop.decode()],
            **({"n": n} if n > 1 else {}),
        }
        if sampling.grammar is not None and not prefix:
            body |= self._grammar(sampling.grammar)
        length, begun = self.prompt_length(prompt) + len(prefix), self._begun(prompt, prefix)
        return Ask(body, n, length, n * longest, sample=first, begun=begun)

    def _body(self, prompt: Prompt, prefix: Prefix, longest: int, top: int) -> dict[str, Any]:
        messages: list[dict[str, Any]] = [message._asdict() for message in conversation(prompt)]
        body: dict[str, Any] = {"model": self._model, "messages": messages} | self._plain()
        body |= {"max_tokens": longest, "logprobs": True, "top_logprobs": top}
        if not (begun := self._begun(prompt, prefix)):
            return body
        how = self._abilities.continuation
        messages.append({"role": "assistant", "content": begun, **({"prefix": True} if how == "prefix" else {})})
        if how == "continue_final_message":
            body |= {"continue_final_message": True, "add_generation_prompt": False}
        return body

    def _begun(self, prompt: Prompt, prefix: Prefix) -> str:
        """The beginning of the answer: it lacks the lead."""
        said = whole(prefix).removeprefix(prompt.lead.encode())
        if not is_text(said):
            raise ServerUnfit(f"{self._asker.server.url} takes text only, and {said!r} ends within a character")
        return said.decode()


def conversation(prompt: Prompt) -> tuple[Message, ...]:
    """The turns of a prompt; one that has none is one turn."""
    return prompt.messages or (Message("user", prompt.text),)


def said_first(lead: bytes) -> NextTokens:
    """Outputs begin with the lead, whatever the model thinks."""
    return NextTokens((ScoredToken(Token(lead), 0.0),), -1_000.0, True)
