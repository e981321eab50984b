"""A Hugging Face tokenizer as search needs it: the exact bytes of every token, and text to ids without surprises.

The tokens are read from the tokenizer's own file rather than decoded one by one: decoding replaces what is no
whole character and strips blanks, and a constraint needs every byte.
"""

import json
import re
import threading
from collections.abc import Callable, Iterable
from typing import Any

from tokenizers import Tokenizer

from fewparse.errors import ModelError
from fewparse.vocabulary import Vocabulary

BLANK = "▁"
FALLBACK = re.compile(r"<0x([0-9A-F]{2})>")
PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
HIDDEN = [b for b in range(256) if b not in PRINTABLE]
BYTE_OF = {chr(b): b for b in PRINTABLE} | {chr(256 + i): b for i, b in enumerate(HIDDEN)}
"""The letters in which byte-level tokenizers write the 256 bytes."""

ENDS = frozenset(
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
"""Markup with which one model or another ends its turn or its document."""


class ByteTokenizer:
    """Text to ids, and the vocabulary; `size` is how many logits the model has, which may be more than tokens."""

    def __init__(self, tokenizer: Tokenizer, size: int, begin_token: int | None, ends: Iterable[int]) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        layout = json.loads(tokenizer.to_str())
        self._at_begin = self._within = tokenizer
        if (changed := without_first_blank(layout)) != layout:
            self._within = Tokenizer.from_str(json.dumps(changed))
        self.vocabulary = read_vocabulary(tokenizer, layout, size, set(ends))
        self.begin_token = begin_token if begin_token is not None else next(iter(self.vocabulary.end_ids), 0)
        self._opens = begin_token is not None and tokenizer.encode("").ids[:1] == [begin_token]
        self._lock = threading.Lock()

    def tokenize(self, text: str, special: bool, begin: bool) -> list[int]:
        """The tokens of `text`; `special` reads markup such as chat markers, `begin` may add what opens a text."""
        tokenizer = self._at_begin if begin else self._within
        with self._lock:
            tokenizer.encode_special_tokens = not special
            ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        tokens = self.vocabulary.tokens
        opening = [self.begin_token] if begin and self._opens else []
        return opening + [i for i in ids if i < len(tokens) and (special or tokens[i])]


def read_vocabulary(tokenizer: Tokenizer, layout: dict[str, Any], size: int, ends: set[int]) -> Vocabulary:
    """The bytes of every token; none for markup, for ends and for logits without a token."""
    spell = spelling(layout)
    tokens = [b""] * size
    for text, i in tokenizer.get_vocab(with_added_tokens=False).items():
        if i < size:
            tokens[i] = spell(text)
    for added in layout["added_tokens"]:
        if added["id"] < size:
            tokens[added["id"]] = b"" if added["special"] else added["content"].encode()
        if added["special"] and added["content"] in ENDS:
            ends = ends | {added["id"]}
    ends = {i for i in ends if i < size}
    for i in ends:
        tokens[i] = b""
    return Vocabulary(tokens, ends)


def spelling(layout: dict[str, Any]) -> Callable[[str], bytes]:
    """How this tokenizer writes bytes: the function from a token as it is written to what it stands for."""
    kinds = {part["type"] for part in parts(layout["decoder"])}
    if "ByteLevel" in kinds:
        return byte_level
    if kinds & {"Metaspace", "ByteFallback", "Replace"}:
        return sentence_piece
    raise ModelError(
        "the tokenizer of this model does not tell which bytes its tokens are",
        "Byte-level and SentencePiece tokenizers do: most causal language models have one of them.",
    )


def byte_level(text: str) -> bytes:
    """A token of a byte-level tokenizer: a letter a byte."""
    try:
        return bytes(BYTE_OF[letter] for letter in text)
    except KeyError:
        return text.encode()


def sentence_piece(text: str) -> bytes:
    """A token of a SentencePiece tokenizer: text with marked blanks, or one byte in hexadecimal."""
    if fallback := FALLBACK.fullmatch(text):
        return bytes.fromhex(fallback[1])
    return text.replace(BLANK, " ").encode()


def parts(part: dict[str, Any] | None) -> list[dict[str, Any]]:
    """The steps of a pipeline of a tokenizer file, whether there is one, several or none."""
    if part is None:
        return []
    if part["type"] != "Sequence":
        return [part]
    inner = next(value for key, value in part.items() if key != "type")
    return [step for each in inner for step in parts(each)]


def without_first_blank(layout: dict[str, Any]) -> dict[str, Any]:
    """The same tokenizer, but it does not put a blank before a text, which is right only where a prompt begins."""
    normalizers = [step for step in parts(layout["normalizer"]) if step["type"] != "Prepend"]
    splitters = [unprefixed(step) for step in parts(layout["pre_tokenizer"])]
    if normalizers == parts(layout["normalizer"]) and splitters == parts(layout["pre_tokenizer"]):
        return layout
    changed = {
        "normalizer": {"type": "Sequence", "normalizers": normalizers},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": splitters} if splitters else None,
    }
    return layout | changed


def unprefixed(step: dict[str, Any]) -> dict[str, Any]:
    """A step that splits text, told not to put a blank before it."""
    if step["type"] == "Metaspace":
        return step | {"prepend_scheme": "never"}
    return step | {"add_prefix_space": False} if "add_prefix_space" in step else step
