"""An OpenAI-compatible server of the toy model, with a given behaviour: compliant, limited or wrong."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from support.loopback import LoopbackServer, RequestHandler
from support.server_behaviours import COMPLIANT, Behaviour
from support.toy_grammar import GrammarMask, InvalidGrammar
from support.toy_model import END, TOKENS, ToyModel
from support.toy_responses import LITERAL, CompletionRequest, RequestError, ResponseBuilder, only_literal

END_MARK = "<|end|>"
GRAMMAR_FIELDS = {
    "gbnf": "grammar",
    "structured_outputs": "structured_outputs",
    "guided_grammar": "guided_grammar",
    "ebnf": "ebnf",
    "custom_tool": "tools",
}
SEEDS = 2**63
PAGE = b"<!doctype html><title>Welcome</title><p>It works!</p>"


class ReceivedRequest(NamedTuple):
    """A received request; the body is None if it is empty or not JSON."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


class ToyServer(LoopbackServer):
    """Serves completions, chat, the list of models and, by its behaviour, endpoints of llama.cpp and vLLM."""

    def __init__(self, behaviour: Behaviour = COMPLIANT, model: ToyModel | None = None) -> None:
        super().__init__()
        self.behaviour = behaviour
        self.model = model or ToyModel()
        self.requests: list[ReceivedRequest] = []
        self._last_prompt: Sequence[int] = ()
        self._own_seeds = itertools.count(SEEDS)

    def respond(self, handler: RequestHandler, body: bytes) -> None:
        try:
            content = json.loads(body)
        except ValueError:
            content = None
        received = ReceivedRequest(handler.command, handler.path, dict(handler.headers), content)
        self.requests.append(received)
        if self.behaviour.html:
            handler.reply(200, PAGE, [("Content-Type", "text/html; charset=utf-8")])
            return
        try:
            status, payload = 200, self._payload(received)
        except RequestError as error:
            status, payload = error.status, error.body
        handler.reply(status, json.dumps(payload).encode(), [("Content-Type", "application/json")])

    def _payload(self, received: ReceivedRequest) -> dict[str, Any]:
        self._check_key(received.headers.get("Authorization", "").removeprefix("Bearer "))
        match received.method, received.path:
            case "GET", "/v1/models":
                return {"object": "list", "data": [self._listed()]}
            case "GET", "/props" if self.behaviour.props:
                settings = {"n_ctx": self.behaviour.context_length}
                slots = self.behaviour.max_n or 1
                return {"default_generation_settings": settings, "total_slots": slots, "eos_token": END_MARK}
            case "POST", "/tokenize" if self.behaviour.tokenize == "llama.cpp":
                return tokenized(fields(received.body))
            case "POST", "/tokenize" if self.behaviour.tokenize == "vllm":
                ids = list(str(fields(received.body).get("prompt", "")).encode())
                return {"count": len(ids), "max_model_len": self.behaviour.context_length, "tokens": ids}
            case "POST", "/v1/completions" if self.behaviour.completions:
                return self._completions(fields(received.body))
            case "POST", "/v1/chat/completions":
                return self._chat(fields(received.body))
        raise RequestError(404, f"Invalid URL ({received.method} {received.path})", code=None)

    def _check_key(self, key: str) -> None:
        """Reject a wrong key and repeat it in the message, as some servers do."""
        if self.behaviour.key is not None and key != self.behaviour.key:
            raise RequestError(401, f"Incorrect API key provided: {key}.", code="invalid_api_key")

    def _listed(self) -> dict[str, Any]:
        """Return the entry of the only model in the list of models."""
        context_length = self.behaviour.context_length
        details: dict[str, dict[str, Any]] = {
            "nothing": {},
            "meta": {"meta": {"n_vocab": len(TOKENS), "n_ctx": context_length}},
            "max_model_len": {"max_model_len": context_length},
        }
        identity = {"id": self.behaviour.model, "object": "model", "owned_by": "toy"}
        return {**identity, **details[self.behaviour.models_report]}

    def _completions(self, body: dict[str, Any]) -> dict[str, Any]:
        self._check_fields(body)
        prompts = self._prompts(body.get("prompt", ""))
        echo = bool(body.get("echo")) and self.behaviour.echo != "ignored"
        request = self._completion_request(body, prompts, body.get("max_tokens", 16), body.get("logprobs"), echo)
        return self._response(request, chat=False)

    def _chat(self, body: dict[str, Any]) -> dict[str, Any]:
        self._check_fields(body)
        messages = body.get("messages")
        if not isinstance(messages, list) or not messages:
            raise RequestError(400, "'messages' must not be empty", code=None)
        flag = self.behaviour.supports_prefix
        supports_prefix = flag == "always" or bool(body.get(flag) or messages[-1].get(flag))
        prompt = rendered(messages, supports_prefix).encode()
        left = max(1, self.behaviour.context_length - len(prompt))
        limit = body.get("max_completion_tokens", body.get("max_tokens", left))
        logprobs = body.get("top_logprobs", 0) if body.get("logprobs") else None
        response = self._response(self._completion_request(body, [prompt], limit, logprobs), chat=True)
        if supports_prefix and self.behaviour.repeats_prefix and messages[-1]["role"] == "assistant":
            for choice in response["choices"]:
                choice["message"]["content"] = messages[-1]["content"] + choice["message"]["content"]
        return response

    def _response(self, request: CompletionRequest, chat: bool) -> dict[str, Any]:
        choices, lengths = ResponseBuilder(self.model, self.behaviour).choices(self._within_context(request), chat)
        usage = self._usage(request, lengths)
        wrong = self.behaviour.extra_choices
        choices += [{**choices[-1], "index": len(choices) + i} for i in range(wrong)]
        choices = choices[: len(choices) + min(wrong, 0)]
        if self.behaviour.reorders_choices:
            choices.reverse()
        kind = "chat.completion" if chat else "text_completion"
        response = {
            "id": "cmpl-toy",
            "object": kind,
            "created": 0,
            "model": self.behaviour.model,
            "choices": choices,
        }
        return {**response, "usage": usage} if self.behaviour.reports_usage else response

    def _usage(self, request: CompletionRequest, lengths: Sequence[int]) -> dict[str, Any]:
        """Return the token counts; the prefix that a prompt shares with the previous one counts as cached."""
        counted = request.prompts[:1] if self.behaviour.usage_of_first_choice else request.prompts
        cached = 0
        for prompt in counted:
            cached += shared(prompt, self._last_prompt)
            self._last_prompt = prompt
        read = sum(len(prompt) for prompt in counted)
        written = sum(lengths[:1] if self.behaviour.usage_of_first_choice else lengths)
        written += request.reasoning * len(lengths)
        return {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
            "prompt_tokens_details": {"cached_tokens": cached},
            "completion_tokens_details": {"reasoning_tokens": request.reasoning * len(lengths)},
        }

    def _completion_request(
        self,
        body: dict[str, Any],
        prompts: Sequence[Sequence[int]],
        limit: Any,
        logprobs: Any,
        echo: bool = False,
    ) -> CompletionRequest:
        stop = body.get("stop") or []
        seed = body.get("seed")
        if seed is None or self.behaviour.seed == "ignored":
            seed = next(self._own_seeds)
        return CompletionRequest(
            prompts=prompts,
            max_tokens=self._limit(integer(limit, "max_tokens", 0)),
            n=self._n(integer(body.get("n", 1), "n", 1)),
            temperature=self._temperature(float(body.get("temperature", 1.0))),
            seed=seed if seed >= 0 else seed % SEEDS,
            stops=self._stops([stop] if isinstance(stop, str) else stop),
            logprobs=None if logprobs is None else self._logprobs(integer(logprobs, "logprobs", 0)),
            echo=echo,
            reasoning=self._reasoning(body),
            tool=self._tool(body),
            **self._grammar(body),
        )

    def _stops(self, stops: list[str]) -> list[bytes]:
        if self.behaviour.blank_stop == "rejected" and not all(stop.strip() for stop in stops):
            raise RequestError(400, "stop_sequences: each stop sequence must contain non-whitespace")
        return [text.encode() for text in stops]

    def _temperature(self, temperature: float) -> float:
        if self.behaviour.temperature_fixed and temperature != 1:
            message = (
                f"Unsupported value: 'temperature' does not support {temperature:g} with this model. "
                "Only the default (1) value is supported."
            )
            raise RequestError(400, message, param="temperature", code="unsupported_value")
        return temperature

    def _reasoning(self, body: dict[str, Any]) -> int:
        effort, efforts = body.get("reasoning_effort"), self.behaviour.efforts
        if effort is not None and efforts is not None and effort not in efforts:
            message = f"Unsupported value: 'reasoning_effort' does not support '{effort}' with this model."
            raise RequestError(400, message, param="reasoning_effort", code="unsupported_value")
        return 0 if effort == "none" and efforts is not None else self.behaviour.reasoning_tokens

    def _tool(self, body: dict[str, Any]) -> str | None:
        """Return the name of the custom tool that must be called."""
        if "tools" not in body or self.behaviour.grammar != "custom_tool":
            return None
        choice = body.get("tool_choice")
        names: list[str] = [tool["custom"]["name"] for tool in body["tools"] if tool["type"] == "custom"]
        if choice not in [{"type": "custom", "custom": {"name": name}} for name in names]:
            raise RequestError(400, f"Invalid value for 'tool_choice': {choice!r}", param="tool_choice")
        return names[0]

    def _limit(self, limit: int) -> int:
        if limit == 0 and self.behaviour.max_tokens_zero == "rejected":
            raise RequestError(400, "max_tokens must be at least 1, got 0.", param="max_tokens", code=None)
        return 1 if limit == 0 and self.behaviour.max_tokens_zero == "one_token" else limit

    def _n(self, n: int) -> int:
        if n > 1 and self.behaviour.n == "rejected":
            raise RequestError(400, "Only one completion choice is allowed", param="n", code=None)
        if self.behaviour.max_n is not None and n > self.behaviour.max_n:
            message = f"Field 'n': Value must be between 1 <= value <= {self.behaviour.max_n}, but got {n}"
            raise RequestError(400, message, code=400)
        return 1 if self.behaviour.n == "ignored" else n

    def _logprobs(self, k: int) -> int:
        maximum = self.behaviour.max_logprobs
        if maximum is not None and k > maximum:
            message = f"Invalid value for 'logprobs': expected a value <= {maximum}, but got {k} instead."
            raise RequestError(400, message, param="logprobs", code="integer_above_max_value")
        return k

    def _grammar(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the only tokens that a grammar allows if it is one literal, or else the grammar."""
        accepted = self.behaviour.grammar
        for name in GRAMMAR_FIELDS.values():
            if name in body and name != GRAMMAR_FIELDS.get(accepted or ""):
                if self.behaviour.other_grammars == "ignored":
                    continue
                raise RequestError(400, f"Unrecognized request argument supplied: {name}", code=None)
        if accepted is None or GRAMMAR_FIELDS[accepted] not in body:
            return {}
        source = grammar_source(body[GRAMMAR_FIELDS[accepted]])
        if LITERAL.fullmatch(source):
            return {"forced_ids": only_literal(source)}
        try:
            return {"mask": GrammarMask(source)}
        except InvalidGrammar as error:
            raise RequestError(400, f"Invalid grammar: {error}", param="tools") from None

    def _check_fields(self, body: dict[str, Any]) -> None:
        unknown = sorted(self.behaviour.rejected_fields & set(body))
        if unknown:
            raise RequestError(400, f"Unrecognized request argument supplied: {unknown[0]}", code=None)
        model = body.get("model", self.behaviour.model)
        if model != self.behaviour.model and not self.behaviour.any_model:
            message = f"The model `{model}` does not exist or you do not have access to it."
            raise RequestError(404, message, code="model_not_found")

    def _prompts(self, given: Any) -> list[Sequence[int]]:
        several = isinstance(given, list) and any(isinstance(part, str | list) for part in given)
        if several and not self.behaviour.accepts_prompt_lists:
            raise RequestError(400, "prompt: a list of prompts is not supported", param="prompt", code=None)
        prompts = [self._ids(prompt) for prompt in (given if several else [given])]
        return prompts[:1] if self.behaviour.first_prompt_only else prompts

    def _ids(self, prompt: Any) -> Sequence[int]:
        if isinstance(prompt, str):
            return prompt.encode()
        if not self.behaviour.accepts_token_ids:
            raise RequestError(400, "prompt: Input should be a valid string", param="prompt", code=None)
        if not isinstance(prompt, list) or not all(type(i) is int and 0 <= i < len(TOKENS) for i in prompt):
            raise RequestError(400, "Prompt contains invalid tokens", param="prompt", code=None)
        return prompt

    def _within_context(self, request: CompletionRequest) -> CompletionRequest:
        """Check the context length: OpenAI rejects completions that might not fit, llama.cpp only prompts."""
        context_length = self.behaviour.context_length
        longest = max(len(prompt) for prompt in request.prompts)
        if self.behaviour.context_error == "openai" and longest + request.max_tokens > context_length:
            message = (
                f"This model's maximum context length is {context_length} tokens, however you requested "
                f"{longest + request.max_tokens} tokens ({longest} in your prompt; "
                f"{request.max_tokens} for the completion). "
                "Please reduce your prompt; or completion length."
            )
            raise RequestError(400, message, code="context_length_exceeded")
        if longest > context_length:
            message = (
                f"request ({longest} tokens) exceeds the available context size ({context_length} tokens), "
                "try increasing it"
            )
            kind = "exceed_context_size_error"
            raise RequestError(400, message, type=kind, code=400, n_prompt_tokens=longest, n_ctx=context_length)
        return replace(request, max_tokens=min(request.max_tokens, context_length - longest))


def grammar_source(value: Any) -> str:
    """Return the grammar in the value of a field, as documented for that field."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return str(value["grammar"])
    (tool,) = value
    definition = tool["custom"]["format"]
    assert (tool["type"], definition["type"], definition["grammar"]["syntax"]) == ("custom", "grammar", "lark")
    return str(definition["grammar"]["definition"])


def fields(body: Any) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise RequestError(400, "We could not parse the JSON body of your request.", code=None)
    return body


def integer(value: Any, name: str, minimum: int) -> int:
    if type(value) is not int or value < minimum:
        raise RequestError(400, f"Invalid value for '{name}': {value!r}", param=name, code=None)
    return value


def shared(one: Sequence[int], other: Sequence[int]) -> int:
    """Return the length of the common prefix of two prompts."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def rendered(messages: Sequence[dict[str, str]], supports_prefix: bool = False) -> str:
    """Render a chat as a prompt; with `supports_prefix`, the assistant's last message stays open."""
    turns = "".join(f"{message['role']}: {message['content']}\n" for message in messages)
    return (
        turns.removesuffix("\n")
        if supports_prefix and messages[-1]["role"] == "assistant"
        else f"{turns}assistant: "
    )


def tokenized(body: dict[str, Any]) -> dict[str, Any]:
    """Return the response of llama.cpp's tokenizer: a piece is text, or a list of bytes if it is not."""
    content = body.get("content", "")
    parts = content.split(END_MARK) if body.get("parse_special") else [content]
    ids = [*parts[0].encode()]
    for part in parts[1:]:
        ids += [END, *part.encode()]
    pieces = [END_MARK if i == END else chr(i) if i < 128 else [i] for i in ids]
    with_pieces = [{"id": i, "piece": piece} for i, piece in zip(ids, pieces, strict=True)]
    return {"tokens": with_pieces if body.get("with_pieces") else ids}
