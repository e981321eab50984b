"""A model behind `/v1/completions`: prefixes as token ids where the server takes them, else as text."""

import math
import re
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from fewparse.errors import ServerUnfit
from fewparse.lm.http.batching import PROBE_AGAIN, Ask
from fewparse.lm.http.client import Failed
from fewparse.lm.http.remote import RemoteModel, estimate, seed_of
from fewparse.lm.http.responses import whole
from fewparse.lm.http.wire import Entry, Reply
from fewparse.lm.model import NextTokens, Prefix, Sampling, ScoredToken, Token
from fewparse.lm.usage import Usage
from fewparse.prompt import Prompt
from fewparse.vocabulary import Mask, is_text

LIKE_MARKUP = re.compile(r"[<\[]")
"""A user's text with one of these might be read as markup where it is not tokenized apart."""
ONE_LINE = 'root ::= [^\\n]* ("\\n" "\\n"?)?'
ASCII = "root ::= [\\x00-\\x7f]+"
MOST_SPELT_OUT = 2000


class CompletionsModel(RemoteModel):
    """A model that continues any text."""

    path = "/v1/completions"
    kind = "openai"

    def tokenize(self, text: str) -> Prefix:
        """The server's tokens of a text; where it does not tell them, the text as one."""
        if not text:
            return ()
        return tuple(self._tokenized(text)) if self._abilities.tokenize == "llama.cpp" else (Token(text.encode()),)

    def prompt_length(self, prompt: Prompt) -> int:
        """How many tokens the prompt has; an estimate where the server does not tell."""
        ids = self._prompt_ids(prompt)
        return estimate(prompt.text) if ids is None else len(ids)

    def score(
        self, prompt: Prompt, prefixes: Sequence[Prefix], continuations: Sequence[Prefix], usage: Usage
    ) -> list[tuple[float, ...]]:
        """By an echo of the whole, one request a continuation; where the server has none, token by token."""
        if not self._abilities.echo:
            return super().score(prompt, prefixes, continuations, usage)
        pairs = list(zip(prefixes, continuations, strict=True))
        asks = [self._echo_ask(prompt, (*prefix, *continuation)) for prefix, continuation in pairs if continuation]
        replies = iter(self._asker.round(asks, usage))
        generated = 0 if self._abilities.max_tokens_zero else 1
        return [
            echoed(next(replies), continuation, generated) if continuation else () for _, continuation in pairs
        ]

    def _beyond_top(
        self, prompt: Prompt, prefixes: Sequence[Prefix], masks: Sequence[Mask], k: int, stop: bytes, usage: Usage
    ) -> list[NextTokens]:
        """Where no likely token is allowed: the best one that is, under a grammar of the allowed ones.

        That is a small answer where the whole vocabulary would be megabytes. Where it does not work, it is those.
        """
        grammars = [self._one_of(mask) for mask in masks]
        asks = [
            self._next_ask(prompt, [prefix], self._top).with_body(grammar=grammar, temperature=0)
            for prefix, grammar in zip(prefixes, grammars, strict=True)
            if grammar is not None
        ]
        replies = iter(self._asker.round(asks, usage))
        found: dict[int, NextTokens] = {}
        for i, (mask, grammar) in enumerate(zip(masks, grammars, strict=True)):
            entries = next(replies).choices[0].entries if grammar is not None else ()
            if entries and 0 <= entries[0].token.id < len(mask) and mask[entries[0].token.id]:
                thought = self._reader.thought(entries[0].alternatives, 0, stop, None)
                found[i] = thought._replace(best=(ScoredToken(entries[0].token, entries[0].logprob),))
        left = [i for i in range(len(masks)) if i not in found]
        whole = super()._beyond_top(prompt, [prefixes[i] for i in left], [masks[i] for i in left], k, stop, usage)
        found |= dict(zip(left, whole, strict=True))
        return [found[i] for i in range(len(masks))]

    def _one_of(self, mask: Mask) -> str | None:
        """A grammar of the allowed tokens; None where the server takes none, or they are too many or no text."""
        if self._abilities.grammar != "gbnf" or self.vocabulary is None or int(mask.sum()) > MOST_SPELT_OUT:
            return None
        texts = [self.vocabulary.tokens[i] for i in np.flatnonzero(mask)]
        if not all(map(is_text, texts)):
            return None
        spelt = ("".join(f"\\U{ord(char):08x}" for char in text.decode()) for text in texts)
        return "root ::= " + " | ".join(f'"{text}"' for text in spelt)

    def _text(self, prompt: Prompt, prefix: Prefix) -> bytes | None:
        return None if isinstance(self._written(prompt, prefix), list) else whole(prefix)

    def _next_ask(self, prompt: Prompt, prefixes: Sequence[Prefix], top: int, again: int = 0) -> Ask:
        prompts = [self._written(prompt, prefix) for prefix in prefixes]
        body = self._body(prompts if len(prompts) > 1 else prompts[0])
        body |= self._any_token(again) | {"logprobs": top}
        if again and self._abilities.grammar == "gbnf":
            body |= {"grammar": ASCII}
        lengths = sum(self.prompt_length(prompt) + len(prefix) for prefix in prefixes)
        return Ask(body, len(prefixes), lengths, len(prefixes), questions=len(prefixes))

    def _sampling_ask(
        self, prompt: Prompt, prefix: Prefix, sampling: Sampling, n: int, which: int, first: int
    ) -> Ask:
        longest = sampling.max_tokens - len(prefix)
        body = self._body(self._written(prompt, prefix)) | {
            "temperature": self._temperature(sampling),
            "max_tokens": longest,
            "logprobs": min(max(1, sampling.alternatives), self._abilities.top),
            "seed": seed_of(sampling.seed, which, first),
            **({"n": n} if n > 1 else {}),
            **self._stop_or_grammar(prefix, sampling),
        }
        return Ask(body, n, self.prompt_length(prompt) + len(prefix), n * longest, sample=first)

    def _stop_or_grammar(self, prefix: Prefix, sampling: Sampling) -> dict[str, Any]:
        """How a sample is kept short: by the domain's grammar, or by the stop.

        A server that stops but hides what the model thought at the stop is given a grammar of one line instead:
        it ends there too, and shows it.
        """
        stop = sampling.stop.decode()
        if sampling.grammar is not None and not prefix:
            return {**self._grammar(sampling.grammar), "stop": [stop]}
        if self._abilities.stop == "hidden" and self._abilities.grammar == "gbnf" and stop == "\n":
            return {"grammar": ONE_LINE}
        return {"stop": [stop]}

    def _echo_ask(self, prompt: Prompt, said: Prefix) -> Ask:
        longest = 0 if self._abilities.max_tokens_zero else 1
        body = self._body(self._written(prompt, said)) | {"echo": True, "logprobs": 1, "max_tokens": longest}
        return Ask(body | {"temperature": 1}, 1, self.prompt_length(prompt) + len(said), 1)

    def _body(self, prompt: Any) -> dict[str, Any]:
        return {"model": self._model, "prompt": prompt} | self._plain()

    def _written(self, prompt: Prompt, prefix: Prefix) -> str | list[int]:
        """The prompt and what was said behind it, as the server reads it."""
        ids = self._prompt_ids(prompt)
        if ids is not None and all(token.id >= 0 for token in prefix):
            return [*ids, *(token.id for token in prefix)]
        said = whole(prefix)
        if not is_text(said):
            raise ServerUnfit(f"{self._asker.server.url} takes text only, and {said!r} ends within a character")
        return prompt.text + said.decode()

    @cached_property
    def _prompt_ids(self) -> Any:
        return lru_cache(maxsize=256)(self._read_prompt)

    def _read_prompt(self, prompt: Prompt) -> tuple[int, ...] | None:
        """The ids of a prompt, only the template's own markup being read as such; None where it goes as text."""
        if not self._abilities.ids or self._abilities.tokenize != "llama.cpp":
            return None
        if not any(LIKE_MARKUP.search(part.text) for part in prompt.parts if not part.markup):
            return tuple(token.id for token in self._tokenized(prompt.text, special=True, begin=True))
        ids: list[int] = []
        for i, part in enumerate(prompt.parts):
            ids += [token.id for token in self._tokenized(part.text, special=part.markup, begin=i == 0)]
        return tuple(ids)

    def _tokenized(self, text: str, special: bool = False, begin: bool = False) -> list[Token]:
        body = {"content": text, "add_special": begin, "parse_special": special, "with_pieces": True}
        tokens: list[Token] = self._asker.server.ask("/tokenize", body, read_tokens).content
        return tokens


def read_tokens(answer: Any) -> list[Token]:
    """The tokens of llama.cpp's tokenizer; a piece that is no text is a list of bytes."""
    try:
        return [
            Token(t["piece"].encode() if isinstance(t["piece"], str) else bytes(t["piece"]), t["id"])
            for t in answer["tokens"]
        ]
    except (KeyError, TypeError, ValueError):
        raise Failed("its answer has not the shape of tokens") from None


def echoed(reply: Reply, continuation: Prefix, generated: int) -> tuple[float, ...]:
    """The scores of the end of an echo, before the tokens that the server had to say of its own.

    One by one where the server cut the text as we did, else in a sum.
    """
    said = whole(continuation)
    told = reply.choices[0].entries
    scores = ends_with(told[: len(told) - generated], said) or ends_with(told, said)  # its own may be hidden
    if scores is None:
        raise ServerUnfit("the server does not repeat the text that it should score", PROBE_AGAIN)
    if len(scores) == len(continuation):
        return scores
    return (*[0.0] * (len(continuation) - 1), math.fsum(scores))


def ends_with(told: Sequence[Entry], said: bytes) -> tuple[float, ...] | None:
    """The scores of the last entries, if these say it: the first of them may begin a little earlier."""
    scores: list[float] = []
    text = b""
    for entry in reversed(told):
        text = entry.token.bytes + text
        scores.insert(0, entry.logprob)
        if len(text) >= len(said):
            break
    return tuple(scores) if text.endswith(said) else None
