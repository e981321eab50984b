"""A model loaded by llama.cpp, with one context and its KV cache.

llama.cpp ends the process if a precondition of a call is violated, so everything is checked before it is called.
"""

import ctypes
import math
import os
from collections.abc import Callable, Sequence
from copy import copy
from ctypes import POINTER, c_float, c_int8, c_int32, c_void_p
from functools import partial
from itertools import accumulate, chain
from pathlib import Path
from typing import TypeVar

import numpy as np

from fewparse.errors import CorruptModel, ModelError
from fewparse.lm.evaluator import Logits
from fewparse.lm.lifetime import Lifetime, claim_library, with_stack
from fewparse.lm.llama import Batch, library, logged_error
from fewparse.lm.local import MAX_CONTEXT
from fewparse.text import is_unicode

T = TypeVar("T")
BATCH = 512
MAX_SEQUENCES = 256
MAX_PATH_TOKENS = 4096
# With flash attention, the logits of a token depend on the size of its batch; without, they do not.
FLASH_ATTENTION_OFF = 0
MAX_TOKENS = 10_000_000
MAX_CHUNK, MAX_SHALLOW = 1 << 16, 1_000
BASE_STACK, STACK_PER_CHARACTER = 1 << 20, 2048
"""The regular expressions of llama.cpp's tokenizers recurse for every character of a word or number: about 400
bytes of stack each. Longer texts are tokenized in a thread with a larger stack, and very long ones in chunks."""


class CacheFull(ModelError):
    """The KV cache has too few free cells for a batch."""


class NotFinite(ModelError):
    """The model computed logits that are not finite; the KV cache may contain such numbers too."""


class Llama:
    """A loaded model with a context and its KV cache; freed by `close`.

    A sequence may have `context_length` tokens, `MAX_CONTEXT` at most. The cache has `MAX_PATH_TOKENS` cells more,
    which all sequences share. With `check_tensors`, a weight that is not finite is an error. All methods raise
    `ModelError` after `close` and in a forked process.
    """

    def __init__(self, path: Path, threads: int, lifetime: Lifetime, check_tensors: bool = False) -> None:
        claim_library("llama.cpp")
        self._lib = library()
        self._lifetime = lifetime
        params = self._lib.llama_model_default_params()
        params.n_gpu_layers = 0
        params.check_tensors = check_tensors
        logged_error()
        self._model = self._lib.llama_model_load_from_file(os.fsencode(path), params)
        if not self._model:
            raise CorruptModel(
                f"{path} cannot be loaded as a GGUF model: {logged_error() or 'llama.cpp gives no reason'}",
                "The file may be damaged or of a kind that this version of llama.cpp does not support.",
            )
        self._vocab = self._lib.llama_model_get_vocab(self._model)
        self.context_length: int = min(MAX_CONTEXT, self._lib.llama_model_n_ctx_train(self._model))
        self.n_ctx = self.context_length + MAX_PATH_TOKENS
        self.n_seq_max = MAX_SEQUENCES
        self.n_vocab: int = self._lib.llama_vocab_n_tokens(self._vocab)
        self.tokens, self.end_tokens = self._read_vocabulary()
        begin: int = self._lib.llama_vocab_bos(self._vocab)
        self.begin_token = begin if 0 <= begin < self.n_vocab else next(iter(self.end_tokens), 0)
        self._contexts: list[int] = []
        self._open_context(threads)

    def with_own_context(self, threads: int) -> "Llama":
        """Return the same model with another context and KV cache; both are freed by `close` of either."""
        other = copy(self)
        with self._lifetime:
            other._open_context(threads)
        return other

    def _open_context(self, threads: int) -> None:
        self._context = self._new_context(threads)
        self._contexts.append(self._context)
        self._memory = self._lib.llama_get_memory(self._context)

    def _new_context(self, threads: int) -> int:
        params = self._lib.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = self.n_ctx, self.n_ctx, BATCH
        params.n_seq_max, params.kv_unified = self.n_seq_max, True
        params.n_threads = params.n_threads_batch = threads
        params.flash_attn_type = FLASH_ATTENTION_OFF
        # With a cache of the sliding window only, a sequence could not be continued from an earlier position.
        params.swa_full = True
        context: int | None = self._lib.llama_init_from_model(self._model, params)
        if not context:
            if not self._contexts:
                self._lib.llama_model_free(self._model)
            raise ModelError(
                f"llama.cpp could not create a context of {self.n_ctx} tokens", "Is there enough memory?"
            )
        return context

    def close(self) -> None:
        """Free the native memory when no call is under way; may be called more than once."""
        self._lifetime.close(self._free)

    def _free(self) -> None:
        for context in self._contexts:
            self._lib.llama_free(context)
        self._lib.llama_model_free(self._model)

    def _read_vocabulary(self) -> tuple[list[bytes], list[int]]:
        """Return the exact bytes of every token, empty for control tokens, and the ids of the end tokens."""
        is_control, is_end = self._lib.llama_vocab_is_control, self._lib.llama_vocab_is_eog
        to_piece, vocab, ids = self._lib.llama_token_to_piece, self._vocab, range(self.n_vocab)
        buffer, size = ctypes.create_string_buffer(64), 64
        tokens = []
        for i in ids:
            length = 0 if is_control(vocab, i) else to_piece(vocab, i, buffer, size, 0, False)
            if length < 0:  # the buffer is too small
                buffer, size = ctypes.create_string_buffer(-length), -length
                length = to_piece(vocab, i, buffer, size, 0, False)
            tokens.append(buffer.raw[: max(length, 0)])
        return tokens, [i for i in ids if is_end(vocab, i)]

    def tokenize(self, text: str, special: bool, begin: bool) -> list[int]:
        """Return the token ids of `text`.

        With `special`, control tokens such as chat markers are recognised. With `begin`, a begin-of-text token is
        added if the model uses one. The tokens of a text of more than `MAX_CHUNK` characters, which is longer than
        the context, are those of its chunks.
        """
        if not is_unicode(text):
            raise ModelError("a text with lone surrogates is not Unicode and cannot be tokenized")
        chunks = [text[start : start + MAX_CHUNK] for start in range(0, len(text), MAX_CHUNK)] or [""]
        ids: list[int] = []
        for i, chunk in enumerate(chunks):
            tokenize = partial(self._tokenize, chunk.encode(), special, begin and i == 0)
            deep = len(chunk) > MAX_SHALLOW
            ids += with_stack(tokenize, BASE_STACK + STACK_PER_CHARACTER * len(chunk)) if deep else tokenize()
        return ids

    def _tokenize(self, data: bytes, special: bool, begin: bool) -> list[int]:
        size = len(data) + 8
        with self._lifetime:
            while True:
                ids = (c_int32 * size)()
                count = self._lib.llama_tokenize(self._vocab, data, len(data), ids, size, begin, special)
                if 0 <= count <= size:
                    return list(ids[:count])
                if not size < -count <= MAX_TOKENS:
                    raise ModelError(f"llama.cpp could not tokenize a text of {len(data):,} bytes")
                size = -count

    def load_adapter(self, path: Path) -> int:
        """Load an adapter for this model and return its handle; it is freed with the model."""
        with self._lifetime:
            handle: int | None = self._lib.llama_adapter_lora_init(self._model, os.fsencode(path))
        if not handle:
            raise CorruptModel(
                f"{path} is not an adapter for this model, or damaged",
                "An adapter works only with the model it was trained for: tune another one for this model.",
            )
        return handle

    def use_adapter(self, handle: int | None) -> None:
        """Apply an adapter to the weights, or none; the caller must clear the cache."""
        handles = (c_void_p * 1)(handle)
        with self._lifetime:
            status = self._lib.llama_set_adapters_lora(
                self._context, handles, int(handle is not None), (c_float * 1)(1.0)
            )
        if status != 0:
            raise ModelError(f"llama.cpp could not set an adapter (status {status})")

    def fork(self, source: int, target: int, length: int) -> None:
        """Let the sequence `target` share the first `length` cells of `source`."""
        with self._lifetime:
            self._lib.llama_memory_seq_cp(self._memory, source, target, 0, length)

    def drop(self, sequence: int, start: int = 0) -> None:
        """Remove the positions of a sequence from `start` on."""
        with self._lifetime:
            removed = self._lib.llama_memory_seq_rm(self._memory, sequence, start, -1)
        if not removed:
            raise ModelError(
                "this model cannot continue from the middle of a text that it has read (a recurrent state)",
                "Use a model with full attention, or serve this one and use --model openai:NAME.",
            )

    def clear(self) -> None:
        """Remove all sequences, and overwrite the cells: numbers that are not finite act even if masked."""
        with self._lifetime:
            self._lib.llama_memory_clear(self._memory, True)

    def decode(
        self,
        tokens: Sequence[int],
        positions: Sequence[int],
        sequences: Sequence[int],
        wanted: Sequence[bool],
    ) -> list[Logits]:
        """Evaluate a batch of tokens and return copies of the logits after those that are `wanted`, in order.

        Raises `CacheFull` if the cache has too few free cells, `NotFinite` if the state after a token is not
        finite, and another `ModelError` for other failures.
        """
        return self.decode_tree(tokens, positions, [(s,) for s in sequences], wanted, lambda _, row: row.copy())

    def decode_tree(
        self,
        tokens: Sequence[int],
        positions: Sequence[int],
        sequences: Sequence[Sequence[int]],
        wanted: Sequence[bool],
        read: Callable[[int, Logits], T],
    ) -> list[T]:
        """Evaluate a batch of tokens, each of one or more sequences, and return what `read` returns.

        `read` is called with the index of each `wanted` token and the logits after it, which are valid during the
        call only. Sequences that have a new token in common must have the same length. Errors as in `decode`.
        """
        n = len(tokens)
        self._check_batch(tokens, positions, sequences)
        starts = list(accumulate(map(len, sequences), initial=0))
        sequence_ids = (c_int32 * starts[-1])(*chain.from_iterable(sequences))
        stride = ctypes.sizeof(c_int32)
        base = ctypes.addressof(sequence_ids)
        pointers = (POINTER(c_int32) * n)(*(ctypes.cast(base + i * stride, POINTER(c_int32)) for i in starts[:-1]))
        batch = Batch(
            n_tokens=n,
            token=(c_int32 * n)(*tokens),
            embd=None,
            pos=(c_int32 * n)(*positions),
            n_seq_id=(c_int32 * n)(*map(len, sequences)),
            seq_id=pointers,
            logits=(c_int8 * n)(*(1 if w else 0 for w in wanted)),
        )
        with self._lifetime:
            status = self._lib.llama_decode(self._context, batch)
            if status == 1:
                raise CacheFull(f"the KV cache of {self.n_ctx} cells has too few free ones for {n} more tokens")
            if status != 0:
                raise ModelError(f"llama.cpp could not evaluate a batch of {n} tokens (status {status})")
            return [read(i, self._logits(i)) for i in range(n) if wanted[i]]

    def _check_batch(
        self, tokens: Sequence[int], positions: Sequence[int], sequences: Sequence[Sequence[int]]
    ) -> None:
        if not 0 < len(tokens) <= self.n_ctx:
            raise ModelError(f"a batch has {len(tokens)} tokens; it must have 1 to {self.n_ctx}")
        if not 0 <= min(tokens) <= max(tokens) < self.n_vocab:
            wrong = next(token for token in tokens if not 0 <= token < self.n_vocab)
            raise ModelError(f"the model has no token {wrong}: its tokens are 0 to {self.n_vocab - 1}")
        if not (0 <= min(positions) <= max(positions) < self.n_ctx) or not (
            all(0 <= min(own, default=-1) <= max(own, default=0) < self.n_seq_max for own in sequences)
        ):
            raise ModelError("a batch has a position or a sequence out of range")

    def _logits(self, index: int) -> Logits:
        """Return the logits after a token of the last batch, in the memory of llama.cpp."""
        pointer = self._lib.llama_get_logits_ith(self._context, index)
        if not pointer:
            raise ModelError("llama.cpp returned no logits")
        # If the state of the model is not finite, no logit is: one of them shows it.
        if not pointer[0] < math.inf:
            raise NotFinite(
                "the model computed logits that are not finite",
                "The file of the model or of its adapter may be damaged: fewparse models check PATH",
            )
        return np.ctypeslib.as_array(pointer, (self.n_vocab,))
