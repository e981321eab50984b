"""What a server really does, as it was found out, and remembered for each server and model."""

import base64
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from fewparse.lm.weights import cache_folder
from fewparse.vocabulary import Vocabulary

Grammars = Literal["gbnf", "structured_outputs", "guided_grammar"]
Stop = Literal["shown", "hidden", "ignored"]
Continuation = Literal["plain", "continue_final_message", "prefix"]
USUAL_CONTEXT = 4096
NO_CUT_OFFS = {"top_k": -1, "min_p": 0}
"""What switches off cut-offs that a server may have by default; some refuse to hear of them."""
VERSION = 1


@dataclass(frozen=True)
class Capabilities:
    """The answers to the questions of a probe."""

    chat: bool
    logprobs: str
    top: int
    plain_sampling: bool
    n: int
    distinct: bool
    seed: bool
    stop: Stop
    untempered: bool
    ids: bool = False
    lists: bool = False
    echo: bool = False
    max_tokens_zero: bool = False
    tokenize: Literal["llama.cpp", "vllm"] | None = None
    grammar: Grammars | None = None
    continuation: Continuation | None = None
    slots: int | None = None
    context: int | None = None
    end_ids: tuple[int, ...] = ()
    tokens: tuple[bytes, ...] | None = None
    """All tokens of the vocabulary, where the server tells them."""

    @property
    def vocabulary(self) -> Vocabulary | None:
        """The vocabulary, where it is known."""
        return None if self.tokens is None else Vocabulary(self.tokens, self.end_ids)

    def as_dict(self) -> dict[str, Any]:
        """All answers by name, the vocabulary by its size."""
        return asdict(replace(self, tokens=None)) | {"tokens": None if self.tokens is None else len(self.tokens)}

    def table(self) -> Iterator[tuple[str, str, str]]:
        """What was asked, what the server does, and what follows from it."""
        yes = {True: "yes", False: "no"}
        yield "log-probabilities", f"{self.logprobs} format", "search ranks by them"
        yield "alternatives a position", str(self.top), "what a cut or a beam can choose from"
        vocabulary = f"{len(self.tokens)} tokens" if self.tokens else "not told"
        yield "vocabulary", vocabulary, "exact masks" if self.tokens else "a token is judged by its bytes alone"
        yield "before temperature", yes[self.untempered], "" if self.untempered else "samples are drawn at 1.0"
        yield (
            "n",
            f"up to {self.n}" if self.n > 1 else "ignored or refused",
            ("samples in one request" if self.n > 1 else "one request a sample"),
        )
        yield "samples of one request differ", yes[self.distinct], "" if self.distinct else "one request a sample"
        seed_means = "" if self.seed else "a repeated run differs, unless its answers are cached"
        yield "same seed, same sample", yes[self.seed], seed_means
        yield (
            "plain sampling (top_k, min_p)",
            yes[self.plain_sampling],
            ("" if self.plain_sampling else "the server's own cut-offs apply"),
        )
        hidden = {
            "shown": "",
            "hidden": "a grammar of one line shows it"
            if self.grammar == "gbnf"
            else "what ending costs is asked apart",
            "ignored": "samples run to their limit",
        }
        yield "stop", self.stop, hidden[self.stop]
        if self.chat:
            yield (
                "carries on a begun answer",
                self.continuation or "no",
                ("" if self.continuation else "whole answers only: a bad one is closed, not searched on; no beam"),
            )
        else:
            yield (
                "prompts as token ids",
                yes[self.ids],
                "" if self.ids else "the server reads every prefix anew as text",
            )
            yield "lists of prompts", yes[self.lists], self._lists_mean()
            yield "echo", yes[self.echo], "" if self.echo else "a text is scored token by token"
            yield "max_tokens 0", yes[self.max_tokens_zero], ""
            yield "tokenizer", self.tokenize or "no", "" if self.tokenize else "prompt lengths are estimated"
        yield "grammar", self.grammar or "no", "--server-grammar" if self.grammar else ""
        yield "context", str(self.context or f"not told: {USUAL_CONTEXT} is assumed"), ""
        yield "at once", str(self.slots or "not told"), ""

    def _lists_mean(self) -> str:
        if self.lists and self.slots:
            return "not used: each of its slots would read the prompt"
        return "many prefixes in one request" if self.lists else "one request a prefix"

    @property
    def batches(self) -> bool:
        """Whether many prompts in one request are of advantage."""
        return self.lists and not self.slots


def remembered(server: str, model: str, chat: bool) -> Capabilities | None:
    """What an earlier probe found; None if there was none, or it cannot be read."""
    try:
        told = json.loads(place(server, model, chat).read_text(encoding="utf-8"))
        if told.pop("version") != VERSION:
            return None
        tokens = told["tokens"]
        spelt = None if tokens is None else tuple(map(base64.b64decode, tokens))
        return Capabilities(**(told | {"tokens": spelt, "end_ids": tuple(told["end_ids"])}))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def remember(capabilities: Capabilities, server: str, model: str) -> None:
    """Keep what was found for the next time; where that is not possible, it will be found out again."""
    told: dict[str, Any] = asdict(replace(capabilities, tokens=None)) | {"version": VERSION}
    if capabilities.tokens is not None:
        told["tokens"] = [base64.b64encode(token).decode() for token in capabilities.tokens]
    path = place(server, model, capabilities.chat)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
            json.dump(told, file)
        os.replace(file.name, path)
    except OSError:
        return


def place(server: str, model: str, chat: bool) -> Path:
    """The file of a server and model."""
    name = hashlib.sha256(json.dumps([server, model, chat]).encode()).hexdigest()[:16]
    return cache_folder() / "servers" / f"{name}.json"
