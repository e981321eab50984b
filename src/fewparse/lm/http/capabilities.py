"""What a server supports: interpreted from probe responses, shown as a table, saved for each server and model."""

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, ValidationError, model_validator

from fewparse.errors import DataError
from fewparse.files import cache_folder, read_bytes, write_atomically
from fewparse.lm.http.request_fields import STANDARD_FIELDS, RequestFields
from fewparse.lm.http.responses import END_BYTES
from fewparse.lm.http.schema import MAX_VOCABULARY, ContextLength, Slots, TokenId
from fewparse.lm.http.wire import Choice, Entry, LogprobsFormat
from fewparse.lm.model import GrammarNotation, ScoredToken
from fewparse.vocabulary import Vocabulary, is_text

GrammarField = Literal["gbnf", "structured_outputs", "guided_grammar", "ebnf", "custom_tool"]
StopHandling = Literal["shown", "hidden", "ignored"]
Continuation = Literal["plain", "continue_final_message", "prefix"]
Tokenizer = Literal["llama.cpp", "vllm"]
GRAMMAR_FIELDS: dict[GrammarField, str] = {
    "gbnf": "grammar",
    "structured_outputs": "structured_outputs",
    "guided_grammar": "guided_grammar",
    "ebnf": "ebnf",
    "custom_tool": "tools",
}
"""The request field of each way to send a grammar: that of llama.cpp, vLLM (and older ones), SGLang and OpenAI."""
TOOL = "answer"
TOOL_DESCRIPTION = "Takes the answer to the last message, written as the answers before it."
"""The custom tool whose input has the grammar."""
CONTINUATION_FIELDS: dict[Continuation, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "continue_final_message": ({}, {"continue_final_message": True, "add_generation_prompt": False}),
    "prefix": ({"prefix": True}, {}),
}
"""Fields of the assistant message and of the request body with which a server continues that message."""
DEFAULT_CONTEXT_LENGTH = 4096
NO_CUTOFFS = {"top_k": -1, "min_p": 0}
"""Fields that disable a server's default sampling cut-offs; some servers reject them."""
NOISE = 0.5
"""Nats by which the same log-probability may differ between requests."""
MAX_N = 1_000
VERSION = 4


def from_base64(value: Any) -> Any:
    """Return the bytes of a text in base 64, other values unchanged; raise ValueError if it is not valid."""
    return base64.b64decode(value, validate=True) if isinstance(value, str) else value


@dataclass(frozen=True)
class Capabilities:
    """The results of a probe.

    Without log-probabilities (`logprobs_format` is None), whole outputs are sampled and ranked by agreement.
    """

    chat: bool
    logprobs_format: LogprobsFormat | None
    top_logprobs: Annotated[int, Field(ge=0, le=MAX_VOCABULARY)]
    unrestricted_sampling: bool
    max_n: Annotated[int, Field(ge=1, le=MAX_N)]
    distinct_samples: bool
    seed: bool
    stop: StopHandling
    untempered: bool
    prompt_ids: bool = False
    prompt_lists: bool = False
    echo: bool = False
    max_tokens_zero: bool = False
    tokenizer: Tokenizer | None = None
    grammar: GrammarField | None = None
    continuation: Continuation | None = None
    slots: Slots | None = None
    context_length: ContextLength | None = None
    end_ids: tuple[TokenId, ...] = ()
    tokens: tuple[Annotated[bytes, BeforeValidator(from_base64)], ...] | None = None
    """All tokens of the vocabulary, if the server reports them."""
    fields: RequestFields = STANDARD_FIELDS
    ignored: tuple[str, ...] = ()
    """What the server reports about itself that is not valid, and is treated as not reported."""

    @property
    def vocabulary(self) -> Vocabulary | None:
        """The vocabulary, or None if the server does not report it."""
        return None if self.tokens is None else Vocabulary(self.tokens, self.end_ids)

    @property
    def grammar_notation(self) -> GrammarNotation:
        """The notation of grammars that the server reads."""
        return "lark" if self.grammar == "custom_tool" else "gbnf"

    @property
    def batches_prompts(self) -> bool:
        """Whether several prompts in one request are faster than several requests."""
        return self.prompt_lists and not self.slots

    def as_dict(self) -> dict[str, Any]:
        """Return all results by name, with the size of the vocabulary in place of its tokens."""
        return asdict(replace(self, tokens=None)) | {"tokens": None if self.tokens is None else len(self.tokens)}


class SavedCapabilities(BaseModel):
    """The content of a file with the results of a probe."""

    version: Literal[4]
    capabilities: Capabilities

    @model_validator(mode="after")
    def alternatives_with_log_probabilities(self) -> Self:
        """Raise ValueError if there are alternatives without log-probabilities, or the other way around."""
        found = self.capabilities
        if (found.logprobs_format is None) != (found.top_logprobs == 0):
            raise ValueError("alternatives have log-probabilities")
        return self

    @model_validator(mode="after")
    def known_end_ids(self) -> Self:
        """Raise ValueError if an end token is not in the vocabulary."""
        found = self.capabilities
        if found.tokens is not None and not valid_end_ids(found.end_ids, found.tokens):
            raise ValueError("an end token is not in the vocabulary")
        return self


def valid_end_ids(end_ids: Iterable[int], tokens: Sequence[bytes]) -> bool:
    """Return whether end tokens are in the vocabulary."""
    return all(i < len(tokens) for i in end_ids)


def load_capabilities(url: str, model: str, chat: bool) -> Capabilities | None:
    """Load the results of an earlier probe; None if there are none or the file is damaged."""
    try:
        content = read_bytes(capabilities_path(url, model, chat), DataError)
        found = SavedCapabilities.model_validate_json(content, strict=True).capabilities
    except (DataError, ValidationError):
        return None
    return found if found.chat == chat else None


def save_capabilities(capabilities: Capabilities, url: str, model: str) -> None:
    """Save the results of a probe; if the file cannot be written, the next run probes again."""
    saved: dict[str, Any] = asdict(replace(capabilities, tokens=None))
    if capabilities.tokens is not None:
        saved["tokens"] = [base64.b64encode(token).decode() for token in capabilities.tokens]
    content = json.dumps({"version": VERSION, "capabilities": saved}).encode()
    try:
        write_atomically(capabilities_path(url, model, capabilities.chat), content)
    except OSError:
        return


def capabilities_path(url: str, model: str, chat: bool) -> Path:
    """Return the file with the capabilities of a model at a server."""
    name = hashlib.sha256(json.dumps([url, model, chat]).encode()).hexdigest()[:16]
    return cache_folder() / "servers" / f"{name}.json"


def grammar_field(kind: GrammarField, grammar: str) -> dict[str, Any]:
    """Return the request fields that constrain samples to a grammar."""
    match kind:
        case "structured_outputs":
            return {GRAMMAR_FIELDS[kind]: {"grammar": grammar}}
        case "custom_tool":
            definition = {"type": "grammar", "grammar": {"syntax": "lark", "definition": grammar}}
            tool = {"name": TOOL, "description": TOOL_DESCRIPTION, "format": definition}
            choice = {"type": "custom", "custom": {"name": TOOL}}
            return {GRAMMAR_FIELDS[kind]: [{"type": "custom", "custom": tool}], "tool_choice": choice}
        case _:
            return {GRAMMAR_FIELDS[kind]: grammar}


def same_prediction(one: Entry, other: Entry) -> bool:
    """Return whether two entries have the same token with the same log-probability."""
    return one.token.bytes == other.token.bytes and abs(one.logprob - other.logprob) < NOISE


def stop_candidate(choice: Choice) -> str | None:
    """Return a token of the choice usable as a stop: readable, not the first, and not in the text before it."""
    before = b""
    for i, entry in enumerate(choice.entries):
        piece = entry.token.bytes
        if i and is_text(piece) and piece.strip() and piece not in before and piece not in END_BYTES:
            return piece.decode()
        before += piece
    return None


def stop_handling(choice: Choice, stop: str) -> StopHandling:
    """Return how a server handled a stop that the model would have generated."""
    if stop in choice.text:
        return "ignored"
    return "shown" if any(stop.encode() in entry.token.bytes for entry in choice.entries) else "hidden"


def is_untempered(at_one: Sequence[ScoredToken], at_two: Sequence[ScoredToken]) -> bool:
    """Return whether next tokens at temperatures 1 and 2 have the same log-probabilities."""
    one, two = dict(at_one), dict(at_two)
    return all(abs(one[token] - two[token]) < NOISE for token in one.keys() & two.keys())


def echo_is_correct(compared: Iterable[tuple[Entry, Sequence[ScoredToken]]]) -> bool:
    """Return whether echoed entries agree with the next tokens listed at their positions, at least two of them."""
    listed = 0
    for entry, following in compared:
        score = next((s.logprob for s in following if s.token.bytes == entry.token.bytes), None)
        listed += score is not None
        too_likely = score is None and entry.logprob > following[-1].logprob + NOISE
        if too_likely or (score is not None and abs(score - entry.logprob) > NOISE):
            return False
    return listed > 1


def full_vocabulary(listed: Sequence[ScoredToken], size: int) -> tuple[bytes, ...] | None:
    """Return the bytes of every token if the alternatives at one position are the whole vocabulary."""
    tokens = {scored.token.id: scored.token.bytes for scored in listed}
    whole = size and len(tokens) == size and min(tokens) == 0 and max(tokens) == size - 1
    return tuple(tokens[i] for i in range(size)) if whole else None
