"""Responses of the toy server: samples of the toy model, with log-probabilities in both formats."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from support.server_behaviours import Behaviour
from support.toy_grammar import GrammarMask
from support.toy_model import END, TOKENS, ToyModel

Row = Sequence[float]
LITERAL = re.compile(r'\s*(?:root\s*::=|start:)\s*("(?:[^"\\]|\\["\\nrt])*")\s*')


class RequestError(Exception):
    """A request that gets an error response."""

    def __init__(self, status: int, message: str, **details: Any) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"message": message, "type": "invalid_request_error", "param": None, **details}}


@dataclass(frozen=True)
class CompletionRequest:
    """A parsed completion request. `forced_ids`: the only tokens that the grammar allows; else `mask` limits them.

    `reasoning` tokens come before the text, and `tool` is the name of the custom tool whose input is the text.
    """

    prompts: Sequence[Sequence[int]]
    max_tokens: int
    n: int
    temperature: float
    seed: int
    stops: Sequence[bytes]
    logprobs: int | None
    echo: bool = False
    forced_ids: Sequence[int] | None = None
    mask: GrammarMask | None = None
    reasoning: int = 0
    tool: str | None = None


class Sample(NamedTuple):
    """The sampled tokens, and their text before the stop."""

    ids: list[int]
    text: bytes
    finish_reason: str


class Entry(NamedTuple):
    """A position of the log-probabilities; the first of an echoed prompt has no row."""

    piece: bytes
    id: int
    row: Row | None


@dataclass(frozen=True)
class ResponseBuilder:
    """Builds responses of the toy model with the behaviour of a server."""

    model: ToyModel
    behaviour: Behaviour

    def choices(self, request: CompletionRequest, chat: bool) -> tuple[list[dict[str, Any]], list[int]]:
        """Return all choices in the order of their indices, and the number of tokens of each."""
        choices: list[dict[str, Any]] = []
        lengths: list[int] = []
        for index, prompt in enumerate(request.prompts):
            for copy in range(request.n):
                random = [request.seed, index, 0 if self.behaviour.same_samples else copy]
                sample = self._sample(prompt, request, random)
                choices.append({"index": len(choices), **self._choice(prompt, sample, request, chat)})
                lengths.append(len(sample.ids))
        return choices, lengths

    def _sample(self, prompt: Sequence[int], request: CompletionRequest, seed: list[int]) -> Sample:
        """Return one sample with its own random generator; equal to the toy model's for the same seed."""
        random = np.random.default_rng(seed)
        context = list(prompt)
        stops = [] if self.behaviour.stop == "ignored" else request.stops
        ids: list[int] = []
        text = b""
        while len(ids) < request.max_tokens - request.reasoning:
            row: Sequence[float] = self.model.logprobs(context)
            if request.mask is not None:
                allowed = set(request.mask.allowed(ids))
                row = [logprob if i in allowed else -1e9 for i, logprob in enumerate(row)]
            if request.forced_ids is not None:
                drawn = request.forced_ids[len(ids)]
            elif request.temperature > 0:
                weights = np.exp(np.array(row) / request.temperature)
                drawn = int(random.choice(len(row), p=weights / weights.sum()))
            else:
                drawn = row.index(max(row))
            ids.append(drawn)
            context.append(drawn)
            text += TOKENS[drawn]
            if drawn == END:
                return Sample(ids, text, "stop")
            found = [text.index(stop) for stop in stops if stop in text]
            if found:
                return Sample(ids, text[: min(found)], "stop")
        return Sample(ids, text, "length")

    def _choice(
        self, prompt: Sequence[int], sample: Sample, request: CompletionRequest, chat: bool
    ) -> dict[str, Any]:
        text = sample.text.decode(errors="replace")
        echoed = spelling(prompt).decode(errors="replace") if request.echo else ""
        logprobs: dict[str, Any] | None = None
        if request.logprobs is not None and self.behaviour.logprob_format != "none":
            entries = self._entries(prompt, sample, request, chat)
            if chat or self.behaviour.logprob_format == "content":
                logprobs = {"content": [self._content(entry, request.logprobs) for entry in entries]}
            else:
                logprobs = self._legacy(entries, request.logprobs, b"" if request.echo else spelling(prompt))
        body = {"message": chat_message(text, request.tool)} if chat else {"text": echoed + text}
        return {**body, "logprobs": logprobs, "finish_reason": sample.finish_reason}

    def _entries(
        self, prompt: Sequence[int], sample: Sample, request: CompletionRequest, chat: bool
    ) -> list[Entry]:
        begin = 0 if request.echo else len(prompt)
        ids = [*prompt, *sample.ids]
        shift = request.echo and self.behaviour.echo == "off_by_one"
        rows: list[Row | None] = [self.model.logprobs(ids[: i + shift]) for i in range(begin, len(ids))]
        if request.echo:
            rows[:1] = [None]
        entries = [Entry(self._piece(i), i, row) for i, row in zip(ids[begin:], rows, strict=True)]
        echoed, generated = entries[: len(prompt) - begin], entries[len(prompt) - begin :]
        if self.behaviour.tempered_logprobs and request.temperature > 0:
            generated = [
                entry._replace(row=entry.row and tempered(entry.row, request.temperature)) for entry in generated
            ]
        return [*echoed, *self._merged(self._shown(generated, sample, chat))]

    def _shown(self, entries: list[Entry], sample: Sample, chat: bool) -> list[Entry]:
        """Leave out the end and the stop if the server hides them."""
        end_shown = self.behaviour.end_shown_in_chat if chat else self.behaviour.end_shown
        if entries and entries[-1].id == END:
            return entries if end_shown else entries[:-1]
        if sample.finish_reason == "stop" and self.behaviour.stop == "hidden":
            ends = np.cumsum([len(entry.piece) for entry in entries])
            return [entry for entry, end in zip(entries, ends, strict=True) if end <= len(sample.text)]
        return entries

    def _merged(self, entries: list[Entry]) -> list[Entry]:
        merged: list[Entry] = []
        for entry in entries:
            joins = bool(merged) and self._merges(merged[-1], entry)
            merged.append(entry._replace(piece=merged.pop().piece + entry.piece) if joins else entry)
        return merged

    def _merges(self, first: Entry, second: Entry) -> bool:
        if self.behaviour.merged_tokens == "never" or second.id == END or first.piece != TOKENS[first.id]:
            return False
        split = all(len(piece) == 1 and piece >= b"\x80" for piece in (first.piece, second.piece))
        return split or self.behaviour.merged_tokens == "often"

    def _content(self, entry: Entry, k: int) -> dict[str, Any]:
        best = [Entry(self._piece(i), i, entry.row) for i in self._best(entry.row, k)]
        return {**self._scored(entry), "top_logprobs": [self._scored(other) for other in best]}

    def _scored(self, entry: Entry) -> dict[str, Any]:
        identity = {"id": entry.id} if self.behaviour.reports_token_ids else {}
        token, logprob = entry.piece.decode(errors="replace"), entry.row and entry.row[entry.id]
        return {**identity, "token": token, "bytes": list(entry.piece), "logprob": logprob}

    def _legacy(self, entries: list[Entry], k: int, before: bytes) -> dict[str, Any]:
        """Return the legacy format; offsets count from the beginning of the prompt, in characters."""
        offsets = []
        for entry in entries:
            offsets.append(len(before.decode(errors="ignore")))
            before += entry.piece
        return {
            "tokens": [shown(entry.piece) for entry in entries],
            "token_logprobs": [entry.row and entry.row[entry.id] for entry in entries],
            "top_logprobs": [
                entry.row
                and {
                    **{shown(self._piece(i)): entry.row[i] for i in self._best(entry.row, k)},
                    shown(entry.piece): entry.row[entry.id],
                }
                for entry in entries
            ],
            "text_offset": offsets,
        }

    def _best(self, row: Row | None, k: int) -> list[int]:
        capped = self.behaviour.capped_logprobs
        k = k if capped is None else min(k, capped)
        return sorted(range(len(row)), key=lambda i: -row[i])[:k] if row else []

    def _piece(self, token: int) -> bytes:
        return self.behaviour.end_text.encode() if token == END else TOKENS[token]


def chat_message(text: str, tool: str | None) -> dict[str, Any]:
    """Return the assistant's message with a text, or with the call of a custom tool."""
    if tool is None:
        return {"role": "assistant", "content": text}
    call = {"id": "call_1", "type": "custom", "custom": {"name": tool, "input": text}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def spelling(ids: Iterable[int]) -> bytes:
    return b"".join(TOKENS[i] for i in ids)


def shown(piece: bytes) -> str:
    """Return a token as the legacy format writes it: escaped bytes if it is not valid UTF-8."""
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in piece)


def tempered(row: Row, temperature: float) -> list[float]:
    scaled = np.array(row) / temperature
    return [float(x) for x in scaled - np.logaddexp.reduce(scaled)]


def only_literal(grammar: str) -> list[int]:
    """Return the tokens of the grammar's only literal, and the end token."""
    found = LITERAL.fullmatch(grammar)
    if not found:
        raise RequestError(400, "Failed to initialize samplers: failed to parse grammar")
    return [*str(json.loads(found[1], strict=False)).encode(), END]
