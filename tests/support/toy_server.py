"""An OpenAI-compatible server of the toy model that behaves as it is told: well, badly, or like a liar."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from support.loopback import Exchange, Loopback
from support.server_behaviours import HONEST, Manners
from support.toy_model import END, TOKENS, ToyModel
from support.toy_responses import Asked, Refusal, Voice, only_sentence

END_MARK = "<|end|>"
GRAMMAR_FIELDS = {
    "gbnf": "grammar",
    "structured_outputs": "structured_outputs",
    "guided_grammar": "guided_grammar",
}
SEEDS = 2**63
PAGE = b"<!doctype html><title>Welcome</title><p>It works!</p>"


class Received(NamedTuple):
    """A request as it came; the body is None where it is empty or no JSON."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


class ToyServer(Loopback):
    """Serves completions, chat, models and, where its manners say so, llama.cpp's own extras."""

    def __init__(self, manners: Manners = HONEST, model: ToyModel | None = None) -> None:
        super().__init__()
        self.manners = manners
        self.model = model or ToyModel()
        self.requests: list[Received] = []
        self._last_prompt: Sequence[int] = ()
        self._own_seeds = itertools.count(SEEDS)

    def respond(self, exchange: Exchange, body: bytes) -> None:
        try:
            asked = json.loads(body)
        except ValueError:
            asked = None
        received = Received(exchange.command, exchange.path, dict(exchange.headers), asked)
        self.requests.append(received)
        if self.manners.html:
            exchange.reply(200, PAGE, [("Content-Type", "text/html; charset=utf-8")])
            return
        try:
            status, answer = 200, self._answer(received)
        except Refusal as refusal:
            status, answer = refusal.status, refusal.body
        exchange.reply(status, json.dumps(answer).encode(), [("Content-Type", "application/json")])

    def _answer(self, received: Received) -> dict[str, Any]:
        self._check_key(received.headers.get("Authorization", "").removeprefix("Bearer "))
        match received.method, received.path:
            case "GET", "/v1/models":
                return {"object": "list", "data": [self._listed()]}
            case "GET", "/props" if self.manners.props:
                settings = {"n_ctx": self.manners.context_length}
                slots = self.manners.most_n or 1
                return {"default_generation_settings": settings, "total_slots": slots, "eos_token": END_MARK}
            case "POST", "/tokenize" if self.manners.tokenize == "llama.cpp":
                return tokenized(fields(received.body))
            case "POST", "/tokenize" if self.manners.tokenize == "vllm":
                ids = list(str(fields(received.body).get("prompt", "")).encode())
                return {"count": len(ids), "max_model_len": self.manners.context_length, "tokens": ids}
            case "POST", "/v1/completions" if self.manners.completions:
                return self._completions(fields(received.body))
            case "POST", "/v1/chat/completions":
                return self._chat(fields(received.body))
        raise Refusal(404, f"Invalid URL ({received.method} {received.path})", code=None)

    def _check_key(self, key: str) -> None:
        """A server that repeats a wrong key, as some do: whoever prints its words prints a secret."""
        if self.manners.key is not None and key != self.manners.key:
            raise Refusal(401, f"Incorrect API key provided: {key}.", code="invalid_api_key")

    def _listed(self) -> dict[str, Any]:
        """The one model in the list of models."""
        room = self.manners.context_length
        tells: dict[str, dict[str, Any]] = {
            "nothing": {},
            "meta": {"meta": {"n_vocab": len(TOKENS), "n_ctx": room}},
            "max_model_len": {"max_model_len": room},
        }
        identity = {"id": self.manners.model, "object": "model", "owned_by": "toy"}
        return {**identity, **tells[self.manners.models_tell]}

    def _completions(self, body: dict[str, Any]) -> dict[str, Any]:
        self._check_fields(body)
        prompts = self._prompts(body.get("prompt", ""))
        echo = bool(body.get("echo")) and self.manners.echo != "ignored"
        asked = self._asked(body, prompts, body.get("max_tokens", 16), body.get("logprobs"), echo)
        return self._told(asked, chat=False)

    def _chat(self, body: dict[str, Any]) -> dict[str, Any]:
        self._check_fields(body)
        messages = body.get("messages")
        if not isinstance(messages, list) or not messages:
            raise Refusal(400, "'messages' must not be empty", code=None)
        flag = self.manners.supports_prefix
        supports_prefix = flag == "always" or bool(body.get(flag) or messages[-1].get(flag))
        prompt = rendered(messages, supports_prefix).encode()
        left = max(1, self.manners.context_length - len(prompt))
        limit = body.get("max_completion_tokens", body.get("max_tokens", left))
        logprobs = body.get("top_logprobs", 0) if body.get("logprobs") else None
        told = self._told(self._asked(body, [prompt], limit, logprobs), chat=True)
        if supports_prefix and self.manners.begun_repeated and messages[-1]["role"] == "assistant":
            for choice in told["choices"]:
                choice["message"]["content"] = messages[-1]["content"] + choice["message"]["content"]
        return told

    def _told(self, asked: Asked, chat: bool) -> dict[str, Any]:
        choices, lengths = Voice(self.model, self.manners).choices(self._within_context(asked), chat)
        usage = self._usage(asked, lengths)
        wrong = self.manners.wrong_choices
        choices += [{**choices[-1], "index": len(choices) + i} for i in range(wrong)]
        choices = choices[: len(choices) + min(wrong, 0)]
        if self.manners.reordered:
            choices.reverse()
        kind = "chat.completion" if chat else "text_completion"
        told = {"id": "cmpl-toy", "object": kind, "created": 0, "model": self.manners.model, "choices": choices}
        return {**told, "usage": usage} if self.manners.usage_told else told

    def _usage(self, asked: Asked, lengths: Sequence[int]) -> dict[str, Any]:
        """What was said and heard; cached is what a prompt has in common with the one before it."""
        counted = asked.prompts[:1] if self.manners.usage_of_first else asked.prompts
        cached = 0
        for prompt in counted:
            cached += shared(prompt, self._last_prompt)
            self._last_prompt = prompt
        read = sum(len(prompt) for prompt in counted)
        written = sum(lengths[:1] if self.manners.usage_of_first else lengths)
        return {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
            "prompt_tokens_details": {"cached_tokens": cached},
        }

    def _asked(
        self,
        body: dict[str, Any],
        prompts: Sequence[Sequence[int]],
        limit: Any,
        logprobs: Any,
        echo: bool = False,
    ) -> Asked:
        stop = body.get("stop") or []
        seed = body.get("seed")
        if seed is None or self.manners.seed == "ignored":
            seed = next(self._own_seeds)
        return Asked(
            prompts=prompts,
            max_tokens=self._limit(whole(limit, "max_tokens", 0)),
            n=self._n(whole(body.get("n", 1), "n", 1)),
            temperature=float(body.get("temperature", 1.0)),
            seed=seed if seed >= 0 else seed % SEEDS,
            stops=[text.encode() for text in ([stop] if isinstance(stop, str) else stop)],
            logprobs=None if logprobs is None else self._logprobs(whole(logprobs, "logprobs", 0)),
            echo=echo,
            spelt=self._spelt(body),
        )

    def _limit(self, limit: int) -> int:
        if limit == 0 and self.manners.max_tokens_zero == "refused":
            raise Refusal(400, "max_tokens must be at least 1, got 0.", param="max_tokens", code=None)
        return 1 if limit == 0 and self.manners.max_tokens_zero == "one_token" else limit

    def _n(self, n: int) -> int:
        if n > 1 and self.manners.n == "refused":
            raise Refusal(400, "Only one completion choice is allowed", param="n", code=None)
        if self.manners.most_n is not None and n > self.manners.most_n:
            words = f"Field 'n': Value must be between 1 <= value <= {self.manners.most_n}, but got {n}"
            raise Refusal(400, words, code=400)
        return 1 if self.manners.n == "ignored" else n

    def _logprobs(self, k: int) -> int:
        most = self.manners.most_logprobs
        if most is not None and k > most:
            words = f"Invalid value for 'logprobs': expected a value <= {most}, but got {k} instead."
            raise Refusal(400, words, param="logprobs", code="integer_above_max_value")
        return k

    def _spelt(self, body: dict[str, Any]) -> list[int] | None:
        """What a grammar leaves to say, in the one way in which this server takes one."""
        given = [name for name in GRAMMAR_FIELDS.values() if name in body]
        if not given or self.manners.grammar_ignored:
            return None
        if given != [GRAMMAR_FIELDS.get(self.manners.grammar or "")]:
            raise Refusal(400, f"Unrecognized request argument supplied: {given[0]}", code=None)
        value = body[given[0]]
        return only_sentence(value.get("grammar", "") if isinstance(value, dict) else value)

    def _check_fields(self, body: dict[str, Any]) -> None:
        unknown = sorted(self.manners.refused_fields & set(body))
        if unknown:
            raise Refusal(400, f"Unrecognized request argument supplied: {unknown[0]}", code=None)
        model = body.get("model", self.manners.model)
        if model != self.manners.model and not self.manners.any_model:
            words = f"The model `{model}` does not exist or you do not have access to it."
            raise Refusal(404, words, code="model_not_found")

    def _prompts(self, given: Any) -> list[Sequence[int]]:
        several = isinstance(given, list) and any(isinstance(part, str | list) for part in given)
        if several and not self.manners.takes_lists:
            raise Refusal(400, "prompt: a list of prompts is not supported", param="prompt", code=None)
        prompts = [self._ids(prompt) for prompt in (given if several else [given])]
        return prompts[:1] if self.manners.lists_answered_once else prompts

    def _ids(self, prompt: Any) -> Sequence[int]:
        if isinstance(prompt, str):
            return prompt.encode()
        if not self.manners.takes_ids:
            raise Refusal(400, "prompt: Input should be a valid string", param="prompt", code=None)
        if not isinstance(prompt, list) or not all(type(i) is int and 0 <= i < len(TOKENS) for i in prompt):
            raise Refusal(400, "Prompt contains invalid tokens", param="prompt", code=None)
        return prompt

    def _within_context(self, asked: Asked) -> Asked:
        """OpenAI refuses a completion that might not fit, llama.cpp only a prompt that does not."""
        room = self.manners.context_length
        longest = max(len(prompt) for prompt in asked.prompts)
        if self.manners.context_words == "openai" and longest + asked.max_tokens > room:
            words = (
                f"This model's maximum context length is {room} tokens, however you requested "
                f"{longest + asked.max_tokens} tokens ({longest} in your prompt; "
                f"{asked.max_tokens} for the completion). "
                "Please reduce your prompt; or completion length."
            )
            raise Refusal(400, words, code="context_length_exceeded")
        if longest > room:
            words = (
                f"request ({longest} tokens) exceeds the available context size ({room} tokens), try increasing it"
            )
            kind = "exceed_context_size_error"
            raise Refusal(400, words, type=kind, code=400, n_prompt_tokens=longest, n_ctx=room)
        return replace(asked, max_tokens=min(asked.max_tokens, room - longest))


def fields(body: Any) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise Refusal(400, "We could not parse the JSON body of your request.", code=None)
    return body


def whole(value: Any, name: str, least: int) -> int:
    if type(value) is not int or value < least:
        raise Refusal(400, f"Invalid value for '{name}': {value!r}", param=name, code=None)
    return value


def shared(one: Sequence[int], other: Sequence[int]) -> int:
    """How far two prompts are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def rendered(messages: Sequence[dict[str, str]], supports_prefix: bool = False) -> str:
    """The prompt that a chat is to the model; with `supports_prefix`, the assistant's last message stays open."""
    turns = "".join(f"{message['role']}: {message['content']}\n" for message in messages)
    return (
        turns.removesuffix("\n")
        if supports_prefix and messages[-1]["role"] == "assistant"
        else f"{turns}assistant: "
    )


def tokenized(body: dict[str, Any]) -> dict[str, Any]:
    """The tokens of a text in llama.cpp's words: a piece is a text, or a list of bytes where it is none."""
    content = body.get("content", "")
    parts = content.split(END_MARK) if body.get("parse_special") else [content]
    ids = [*parts[0].encode()]
    for part in parts[1:]:
        ids += [END, *part.encode()]
    pieces = [END_MARK if i == END else chr(i) if i < 128 else [i] for i in ids]
    with_pieces = [{"id": i, "piece": piece} for i, piece in zip(ids, pieces, strict=True)]
    return {"tokens": with_pieces if body.get("with_pieces") else ids}
