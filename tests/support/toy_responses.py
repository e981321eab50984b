"""What the toy server answers: samples of the toy model, in the two forms that log-probabilities come in."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from support.server_behaviours import Manners
from support.toy_model import END, TOKENS, ToyModel

Row = Sequence[float]
LITERAL = re.compile(r'\s*root\s*::=\s*("(?:[^"\\]|\\["\\nrt])*")\s*')


class Refusal(Exception):
    """A request that gets an error for an answer."""

    def __init__(self, status: int, message: str, **details: Any) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"message": message, "type": "invalid_request_error", "param": None, **details}}


@dataclass(frozen=True)
class Asked:
    """A request for completions, understood. `spelt`: the tokens that a grammar leaves no choice but to say."""

    prompts: Sequence[Sequence[int]]
    max_tokens: int
    n: int
    temperature: float
    seed: int
    stops: Sequence[bytes]
    logprobs: int | None
    echo: bool = False
    spelt: Sequence[int] | None = None


class Sample(NamedTuple):
    """What the model said, and how much of it comes before the stop."""

    ids: list[int]
    text: bytes
    finish_reason: str


class Entry(NamedTuple):
    """A position as the log-probabilities show it; the very first of an echoed prompt has no row."""

    piece: bytes
    id: int
    row: Row | None


@dataclass(frozen=True)
class Voice:
    """The toy model, speaking with the manners of a server."""

    model: ToyModel
    manners: Manners

    def choices(self, asked: Asked, chat: bool) -> tuple[list[dict[str, Any]], list[int]]:
        """All choices in the order of their indices, and how many tokens each took."""
        made: list[dict[str, Any]] = []
        lengths: list[int] = []
        for which, prompt in enumerate(asked.prompts):
            for copy in range(asked.n):
                random = [asked.seed, which, 0 if self.manners.same_samples else copy]
                sample = self._sample(prompt, asked, random)
                made.append({"index": len(made), **self._choice(prompt, sample, asked, chat)})
                lengths.append(len(sample.ids))
        return made, lengths

    def _sample(self, prompt: Sequence[int], asked: Asked, seed: list[int]) -> Sample:
        """One sample with a generator of its own; the same as the toy model's own for the same seed."""
        random = np.random.default_rng(seed)
        context = list(prompt)
        stops = [] if self.manners.stop == "ignored" else asked.stops
        ids: list[int] = []
        text = b""
        while len(ids) < asked.max_tokens:
            row = self.model.logprobs(context)
            if asked.spelt is not None:
                drawn = asked.spelt[len(ids)]
            elif asked.temperature > 0:
                weights = np.exp(np.array(row) / asked.temperature)
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

    def _choice(self, prompt: Sequence[int], sample: Sample, asked: Asked, chat: bool) -> dict[str, Any]:
        spoken = sample.text.decode(errors="replace")
        echoed = spelling(prompt).decode(errors="replace") if asked.echo else ""
        told: dict[str, Any] | None = None
        if asked.logprobs is not None and self.manners.logprob_format != "none":
            entries = self._entries(prompt, sample, asked, chat)
            if chat or self.manners.logprob_format == "content":
                told = {"content": [self._content(entry, asked.logprobs) for entry in entries]}
            else:
                told = self._legacy(entries, asked.logprobs, b"" if asked.echo else spelling(prompt))
        said = {"message": {"role": "assistant", "content": spoken}} if chat else {"text": echoed + spoken}
        return {**said, "logprobs": told, "finish_reason": sample.finish_reason}

    def _entries(self, prompt: Sequence[int], sample: Sample, asked: Asked, chat: bool) -> list[Entry]:
        begin = 0 if asked.echo else len(prompt)
        whole = [*prompt, *sample.ids]
        late = asked.echo and self.manners.echo == "off_by_one"
        rows: list[Row | None] = [self.model.logprobs(whole[: i + late]) for i in range(begin, len(whole))]
        if asked.echo:
            rows[:1] = [None]
        entries = [Entry(self._piece(i), i, row) for i, row in zip(whole[begin:], rows, strict=True)]
        echoed, said = entries[: len(prompt) - begin], entries[len(prompt) - begin :]
        if self.manners.tempered_logprobs and asked.temperature > 0:
            said = [entry._replace(row=entry.row and tempered(entry.row, asked.temperature)) for entry in said]
        return [*echoed, *self._merged(self._shown(said, sample, chat))]

    def _shown(self, entries: list[Entry], sample: Sample, chat: bool) -> list[Entry]:
        """Without the end and the stop, where the server does not show them."""
        end_shown = self.manners.end_shown_in_chat if chat else self.manners.end_shown
        if entries and entries[-1].id == END:
            return entries if end_shown else entries[:-1]
        if sample.finish_reason == "stop" and self.manners.stop == "hidden":
            ends = np.cumsum([len(entry.piece) for entry in entries])
            return [entry for entry, end in zip(entries, ends, strict=True) if end <= len(sample.text)]
        return entries

    def _merged(self, entries: list[Entry]) -> list[Entry]:
        merged: list[Entry] = []
        for was in entries:
            entry = was
            if merged and self._merges(merged[-1], was):
                entry = was._replace(piece=merged.pop().piece + was.piece)
            merged.append(entry)
        return merged

    def _merges(self, first: Entry, second: Entry) -> bool:
        if self.manners.merged_tokens == "never" or second.id == END or first.piece != TOKENS[first.id]:
            return False
        split = all(len(piece) == 1 and piece >= b"\x80" for piece in (first.piece, second.piece))
        return split or self.manners.merged_tokens == "often"

    def _content(self, entry: Entry, k: int) -> dict[str, Any]:
        best = [Entry(self._piece(i), i, entry.row) for i in self._best(entry.row, k)]
        return {**self._scored(entry), "top_logprobs": [self._scored(other) for other in best]}

    def _scored(self, entry: Entry) -> dict[str, Any]:
        identity = {"id": entry.id} if self.manners.ids_told else {}
        token, logprob = entry.piece.decode(errors="replace"), entry.row and entry.row[entry.id]
        return {**identity, "token": token, "bytes": list(entry.piece), "logprob": logprob}

    def _legacy(self, entries: list[Entry], k: int, before: bytes) -> dict[str, Any]:
        """Offsets count characters from the beginning of the prompt; the sampled token is always in the top."""
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
        capped = self.manners.silently_capped_logprobs
        k = k if capped is None else min(k, capped)
        return sorted(range(len(row)), key=lambda i: -row[i])[:k] if row else []

    def _piece(self, token: int) -> bytes:
        return self.manners.end_text.encode() if token == END else TOKENS[token]


def spelling(ids: Iterable[int]) -> bytes:
    return b"".join(TOKENS[i] for i in ids)


def shown(piece: bytes) -> str:
    """A token as the legacy format writes it: what is no text of its own is spelt byte by byte."""
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in piece)


def tempered(row: Row, temperature: float) -> list[float]:
    scaled = np.array(row) / temperature
    return [float(x) for x in scaled - np.logaddexp.reduce(scaled)]


def only_sentence(grammar: str) -> list[int]:
    """The tokens of the one literal that the grammar is, and the end."""
    found = LITERAL.fullmatch(grammar)
    if not found:
        raise Refusal(400, "Failed to initialize samplers: failed to parse grammar")
    return [*str(json.loads(found[1], strict=False)).encode(), END]
