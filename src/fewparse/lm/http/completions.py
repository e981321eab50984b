"""Models behind `/v1/completions`: prefixes are sent as token ids if the server accepts them, else as text."""

import math
import re
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from fewparse.errors import ServerUnsupported
from fewparse.lm.http.batching import Request
from fewparse.lm.http.errors import PROBE_HINT
from fewparse.lm.http.remote import RemoteModel, estimate_tokens, seed_of
from fewparse.lm.http.responses import prefix_bytes
from fewparse.lm.http.schema import parse_tokens
from fewparse.lm.http.wire import Entry, Reply
from fewparse.lm.model import NextTokens, Prefix, Sampling, ScoredToken, Token
from fewparse.lm.usage import Usage
from fewparse.prompt import Prompt
from fewparse.vocabulary import Mask, is_text

MARKUP_LIKE = re.compile(r"[<\[]")
"""Characters of a user's text that could be tokenized as markup if the prompt is tokenized as a whole."""
ONE_LINE = 'root ::= [^\\n]* ("\\n" "\\n"?)?'
ASCII = "root ::= [\\x00-\\x7f]+"
MAX_GRAMMAR_TOKENS = 2000


class CompletionsModel(RemoteModel):
    """A model that continues any text."""

    path = "/v1/completions"
    kind = "openai"

    def tokenize(self, text: str) -> Prefix:
        """Return the server's tokens of a text, or the text as one token if the server has no tokenizer."""
        if not text:
            return ()
        if self._capabilities.tokenizer == "llama.cpp":
            return tuple(self._tokenized(text))
        return (Token(text.encode()),)

    def prompt_length(self, prompt: Prompt) -> int:
        """Return the number of tokens of a prompt, an estimate if the server has no tokenizer."""
        ids = self._prompt_ids(prompt)
        return estimate_tokens(prompt.text) if ids is None else len(ids)

    def score(
        self, prompt: Prompt, prefixes: Sequence[Prefix], continuations: Sequence[Prefix], usage: Usage
    ) -> list[tuple[float, ...]]:
        """Score each continuation by one echo request; token by token if the server has no echo."""
        if not self._capabilities.echo:
            return super().score(prompt, prefixes, continuations, usage)
        pairs = list(zip(prefixes, continuations, strict=True))
        requests = [
            self._echo_request(prompt, (*prefix, *continuation)) for prefix, continuation in pairs if continuation
        ]
        replies = iter(self._batcher.send(requests, usage))
        generated = 0 if self._capabilities.max_tokens_zero else 1
        return [
            echo_scores(next(replies), continuation, generated) if continuation else ()
            for _, continuation in pairs
        ]

    def _beyond_top(
        self, prompt: Prompt, prefixes: Sequence[Prefix], masks: Sequence[Mask], k: int, stop: bytes, usage: Usage
    ) -> list[NextTokens]:
        """Return the best allowed token, sampled greedily under a grammar of the allowed tokens.

        That is a small response where listing the whole vocabulary takes megabytes. If it is not possible, the
        whole vocabulary is requested.
        """
        grammars = [self._token_grammar(mask) for mask in masks]
        requests = [
            self._next_request(prompt, [prefix], self._top_logprobs).with_body(grammar=grammar, temperature=0)
            for prefix, grammar in zip(prefixes, grammars, strict=True)
            if grammar is not None
        ]
        replies = iter(self._batcher.send(requests, usage))
        found: dict[int, NextTokens] = {}
        for i, (mask, grammar) in enumerate(zip(masks, grammars, strict=True)):
            entries = next(replies).choices[0].entries if grammar is not None else ()
            if entries and 0 <= entries[0].token.id < len(mask) and mask[entries[0].token.id]:
                unmasked = self._reader.next_tokens(entries[0].alternatives, 0, stop, None)
                found[i] = unmasked._replace(best=(ScoredToken(entries[0].token, entries[0].logprob),))
        left = [i for i in range(len(masks)) if i not in found]
        all_listed = super()._beyond_top(
            prompt, [prefixes[i] for i in left], [masks[i] for i in left], k, stop, usage
        )
        found |= dict(zip(left, all_listed, strict=True))
        return [found[i] for i in range(len(masks))]

    def _token_grammar(self, mask: Mask) -> str | None:
        """Return a grammar of the allowed tokens; None if unsupported, too large, or not all tokens are text."""
        if self._capabilities.grammar != "gbnf" or self.vocabulary is None or int(mask.sum()) > MAX_GRAMMAR_TOKENS:
            return None
        texts = [self.vocabulary.tokens[i] for i in np.flatnonzero(mask)]
        if not all(map(is_text, texts)):
            return None
        escaped = ("".join(f"\\U{ord(char):08x}" for char in text.decode()) for text in texts)
        return "root ::= " + " | ".join(f'"{text}"' for text in escaped)

    def _text(self, prompt: Prompt, prefix: Prefix) -> bytes | None:
        return None if isinstance(self._prompt_field(prompt, prefix), list) else prefix_bytes(prefix)

    def _next_request(self, prompt: Prompt, prefixes: Sequence[Prefix], top: int, resample: int = 0) -> Request:
        prompts = [self._prompt_field(prompt, prefix) for prefix in prefixes]
        body = self._body(prompts if len(prompts) > 1 else prompts[0])
        body |= self._any_token(resample) | {"logprobs": top}
        if resample and self._capabilities.grammar == "gbnf":
            body |= {"grammar": ASCII}
        lengths = sum(self.prompt_length(prompt) + len(prefix) for prefix in prefixes)
        return Request(body, len(prefixes), lengths, len(prefixes), prompts=len(prefixes))

    def _sampling_request(
        self, prompt: Prompt, prefix: Prefix, sampling: Sampling, n: int, index: int, first: int
    ) -> Request:
        max_tokens = sampling.max_tokens - len(prefix)
        body = self._body(self._prompt_field(prompt, prefix)) | {
            "temperature": self._temperature(sampling),
            "max_tokens": max_tokens,
            **self._logprobs(sampling),
            "seed": seed_of(sampling.seed, index, first),
            **({"n": n} if n > 1 else {}),
            **self._stop_or_grammar(prefix, sampling),
        }
        return self._request(body, n, self.prompt_length(prompt) + len(prefix), sample=first)

    def _logprobs(self, sampling: Sampling) -> dict[str, Any]:
        """Return the field that requests the alternatives of a sample, if the server reports any."""
        if not self.supports_logprobs:
            return {}
        return {"logprobs": min(max(1, sampling.alternatives), self._capabilities.top_logprobs)}

    def _stop_or_grammar(self, prefix: Prefix, sampling: Sampling) -> dict[str, Any]:
        """Return the fields that end a sample: the domain's grammar, or the stop.

        If the server hides the log-probabilities at the stop, a grammar of one line ends the sample there instead.
        """
        stop = sampling.stop.decode()
        if sampling.grammar is not None and not prefix:
            return {**self._grammar(sampling.grammar), "stop": [stop]}
        if self._capabilities.stop == "hidden" and self._capabilities.grammar == "gbnf" and stop == "\n":
            return {"grammar": ONE_LINE}
        return {"stop": [stop]}

    def _echo_request(self, prompt: Prompt, output: Prefix) -> Request:
        max_tokens = 0 if self._capabilities.max_tokens_zero else 1
        body = self._body(self._prompt_field(prompt, output))
        body |= {"echo": True, "logprobs": 1, "max_tokens": max_tokens, "temperature": 1}
        return Request(body, 1, self.prompt_length(prompt) + len(output), 1)

    def _body(self, prompt: Any) -> dict[str, Any]:
        return {"model": self._model, "prompt": prompt} | self._no_cutoffs()

    def _prompt_field(self, prompt: Prompt, prefix: Prefix) -> str | list[int]:
        """Return the prompt and the prefix as the request states them: token ids or text."""
        ids = self._prompt_ids(prompt)
        if ids is not None and all(token.id >= 0 for token in prefix):
            return [*ids, *(token.id for token in prefix)]
        text = prefix_bytes(prefix)
        if not is_text(text):
            raise ServerUnsupported(
                f"{self._batcher.client.url} accepts text only, and {text!r} ends within a character"
            )
        return prompt.text + text.decode()

    @cached_property
    def _prompt_ids(self) -> Any:
        return lru_cache(maxsize=256)(self._tokenize_prompt)

    def _tokenize_prompt(self, prompt: Prompt) -> tuple[int, ...] | None:
        """Return the ids of a prompt, with only the template's markup as special tokens; None to send text."""
        if not self._capabilities.prompt_ids or self._capabilities.tokenizer != "llama.cpp":
            return None
        if not any(MARKUP_LIKE.search(part.text) for part in prompt.parts if not part.markup):
            return tuple(token.id for token in self._tokenized(prompt.text, special=True, begin=True))
        ids: list[int] = []
        for i, part in enumerate(prompt.parts):
            ids += [token.id for token in self._tokenized(part.text, special=part.markup, begin=i == 0)]
        return tuple(ids)

    def _tokenized(self, text: str, special: bool = False, begin: bool = False) -> list[Token]:
        body = {"content": text, "add_special": begin, "parse_special": special, "with_pieces": True}
        return self._batcher.client.post("/tokenize", body, parse_tokens).content


def echo_scores(reply: Reply, continuation: Prefix, generated: int) -> tuple[float, ...]:
    """Return the scores of a continuation at the end of an echo, before the `generated` tokens.

    One score for each token if the server tokenizes the text the same way, else zeros and the sum.
    """
    text = prefix_bytes(continuation)
    entries = reply.choices[0].entries
    # The generated token may not be listed.
    scores = suffix_scores(entries[: len(entries) - generated], text) or suffix_scores(entries, text)
    if scores is None:
        raise ServerUnsupported("the server does not echo the text to be scored", PROBE_HINT)
    if len(scores) == len(continuation):
        return scores
    return (*[0.0] * (len(continuation) - 1), math.fsum(scores))


def suffix_scores(entries: Sequence[Entry], text: bytes) -> tuple[float, ...] | None:
    """Return the scores of the last entries if they end with the text; the first may start before it."""
    scores: list[float] = []
    suffix = b""
    for entry in reversed(entries):
        suffix = entry.token.bytes + suffix
        scores.insert(0, entry.logprob)
        if len(suffix) >= len(text):
            break
    return tuple(scores) if suffix.endswith(text) else None
