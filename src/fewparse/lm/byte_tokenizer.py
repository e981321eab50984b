"""Hugging Face tokenizers with the exact bytes of every token.

The bytes are read from the tokenizer file. Decoding the tokens one by one is not exact: it replaces incomplete
characters and strips spaces, but a constraint needs every byte.
"""

import json
import re
import threading
from collections.abc import Callable, Iterable
from typing import Any

from tokenizers import Tokenizer

from fewparse.errors import ModelError
from fewparse.vocabulary import Vocabulary

SPACE_MARK = "▁"
BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")
PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
HIDDEN = [b for b in range(256) if b not in PRINTABLE]
BYTE_OF = {chr(b): b for b in PRINTABLE} | {chr(256 + i): b for i, b in enumerate(HIDDEN)}
"""The characters by which byte-level BPE tokenizers (GPT-2) represent the 256 bytes."""

END_MARKERS = frozenset(
    {
        "</s>",
        "<EOT>",
        "<end_of_turn>",
        "<reponame>",
        "<|call|>",
        "<|end_of_text|>",
        "<|end|>",
        "<|endoftext|>",
        "<|eom_id|>",
        "<|eot_id|>",
        "<|im_end|>",
        "<|repo_name|>",
        "<|return|>",
    }
)
"""The control tokens by which common models end a turn or a document."""


class ByteTokenizer:
    """A tokenizer with the vocabulary of its model.

    `size` is the number of logits of the model, which may exceed the number of tokens; `ends` are the ids of its
    end tokens, besides those recognised by name.
    """

    def __init__(self, tokenizer: Tokenizer, size: int, begin_token: int | None, ends: Iterable[int]) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        layout = json.loads(tokenizer.to_str())
        self._first = self._inner = tokenizer
        if (changed := without_leading_space(layout)) != layout:
            self._inner = Tokenizer.from_str(json.dumps(changed))
        self.vocabulary = read_vocabulary(tokenizer, layout, size, set(ends))
        self.begin_token = begin_token if begin_token is not None else next(iter(self.vocabulary.end_ids), 0)
        self._adds_begin = begin_token is not None and tokenizer.encode("").ids[:1] == [begin_token]
        self._lock = threading.Lock()

    def tokenize(self, text: str, special: bool, begin: bool) -> list[int]:
        """Return the token ids of `text`.

        With `special`, control tokens such as chat markers are recognised. With `begin`, a begin-of-text token is
        added if the model uses one.
        """
        tokenizer = self._first if begin else self._inner
        with self._lock:
            tokenizer.encode_special_tokens = not special
            ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        tokens = self.vocabulary.tokens
        prefix = [self.begin_token] if begin and self._adds_begin else []
        return prefix + [i for i in ids if i < len(tokens) and (special or tokens[i])]


def read_vocabulary(tokenizer: Tokenizer, layout: dict[str, Any], size: int, ends: set[int]) -> Vocabulary:
    """Return the bytes of every token; empty for control and end tokens and for logits without a token."""
    decode = token_decoder(layout)
    tokens = [b""] * size
    for text, i in tokenizer.get_vocab(with_added_tokens=False).items():
        if i < size:
            tokens[i] = decode(text)
    for added in layout["added_tokens"]:
        if added["id"] < size:
            tokens[added["id"]] = b"" if added["special"] else added["content"].encode()
        if added["special"] and added["content"] in END_MARKERS:
            ends = ends | {added["id"]}
    ends = {i for i in ends if i < size}
    for i in ends:
        tokens[i] = b""
    return Vocabulary(tokens, ends)


def token_decoder(layout: dict[str, Any]) -> Callable[[str], bytes]:
    """Return the function that converts a token of the tokenizer file to bytes."""
    kinds = {step["type"] for step in pipeline_steps(layout["decoder"])}
    if "ByteLevel" in kinds:
        return byte_level
    if kinds & {"Metaspace", "ByteFallback", "Replace"}:
        return sentence_piece
    raise ModelError(
        "the tokenizer of this model does not define which bytes its tokens are",
        "Use a model with a byte-level or SentencePiece tokenizer, as most causal language models have.",
    )


def byte_level(text: str) -> bytes:
    """Convert a token of a byte-level tokenizer, which has one character per byte."""
    try:
        return bytes(BYTE_OF[character] for character in text)
    except KeyError:
        return text.encode()


def sentence_piece(text: str) -> bytes:
    """Convert a token of a SentencePiece tokenizer: text with marks for spaces, or one byte in hexadecimal."""
    if byte := BYTE_TOKEN.fullmatch(text):
        return bytes.fromhex(byte[1])
    return text.replace(SPACE_MARK, " ").encode()


def pipeline_steps(pipeline: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Return the steps of a pipeline in a tokenizer file, with nested sequences flattened."""
    if pipeline is None:
        return []
    if pipeline["type"] != "Sequence":
        return [pipeline]
    inner = next(value for key, value in pipeline.items() if key != "type")
    return [step for each in inner for step in pipeline_steps(each)]


def without_leading_space(layout: dict[str, Any]) -> dict[str, Any]:
    """Return a tokenizer file that does not prepend a space to a text, which is right only at the very start."""
    normalizers = [step for step in pipeline_steps(layout["normalizer"]) if step["type"] != "Prepend"]
    pre_tokenizers = [without_prefix_space(step) for step in pipeline_steps(layout["pre_tokenizer"])]
    if normalizers == pipeline_steps(layout["normalizer"]) and pre_tokenizers == pipeline_steps(
        layout["pre_tokenizer"]
    ):
        return layout
    changed = {
        "normalizer": {"type": "Sequence", "normalizers": normalizers},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": pre_tokenizers} if pre_tokenizers else None,
    }
    return layout | changed


def without_prefix_space(step: dict[str, Any]) -> dict[str, Any]:
    """Return a pre-tokenizer that does not prepend a space."""
    if step["type"] == "Metaspace":
        return step | {"prepend_scheme": "never"}
    return step | {"add_prefix_space": False} if "add_prefix_space" in step else step
