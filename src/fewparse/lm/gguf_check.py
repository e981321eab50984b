"""Check what GGUF files say of themselves: models, LoRA adapters, and whether an adapter fits a model.

llama.cpp ends the process for some values that it does not expect, so they are found before it reads a file. What
is wrong is returned as a list of sentences, empty for a file without a known mistake.
"""

import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from fewparse.lm.gguf import FLOAT32, GGUFFile, Tensor

LIKE_LLAMA = ("llama", "qwen2", "qwen3")
"""Architectures whose matrices have the shapes of `expected_shapes`."""
MAX_BLOCKS, MAX_WIDTH, MAX_CONTEXT, MAX_HEADS = 512, 1 << 20, 2**31 - 1, 1 << 16
BLOCK_NAME = re.compile(r"blk\.(\d+)\.")
TOKENS = "tokenizer.ggml."
TOKEN_TYPES = range(7)
NO_TOKEN = 2**32 - 1
"""Written by some converters for a special token that a model does not have."""
EMBEDDING = "token_embd.weight"
ADAPTER_ALPHA, ALORA_PREFIX = "adapter.lora.alpha", "adapter.alora."
MAX_ALPHA = 1e6
FLOAT_BITS: dict[str, tuple[str, int]] = {
    "F32": ("<u4", 0x7F800000),
    "F16": ("<u2", 0x7C00),
    "BF16": ("<u2", 0x7F80),
}
"""The integer type of the same size, and the bits of the exponent, which are all set in infinity and NaN."""


def model_problems(file: GGUFFile) -> list[str]:
    """Return what is wrong with the metadata and the shapes of a model."""
    architecture = file.metadata.get("general.architecture")
    if not isinstance(architecture, str) or not architecture:
        return ["it names no architecture"]
    if file.metadata.get("general.type", "model") != "model":
        return [f"it is not a model, but of the type {file.metadata['general.type']!r}"]
    return [*ModelCheck(file, architecture).problems(), *vocabulary_problems(file)]


class ModelCheck:
    """The checks of a model of one architecture."""

    def __init__(self, file: GGUFFile, architecture: str) -> None:
        self._file = file
        self._architecture = architecture

    def problems(self) -> Iterator[str]:
        """Yield what is wrong."""
        limits = {"block_count": MAX_BLOCKS, "context_length": MAX_CONTEXT, "embedding_length": MAX_WIDTH}
        wrong = [name for name, high in limits.items() if not is_int(self._get(name), 1, high)]
        for name in wrong:
            yield f"{self._architecture}.{name} is {self._get(name)}"
        yield from self._float_problems()
        if wrong:
            return
        yield from self._block_problems()
        yield from self._head_problems()

    def _get(self, name: str) -> Any:
        return self._file.metadata.get(f"{self._architecture}.{name}")

    def _float_problems(self) -> Iterator[str]:
        for key, value in self._file.metadata.items():
            if not key.startswith(f"{self._architecture}."):
                continue
            values = value if isinstance(value, list) else [value]
            numbers = [number for number in values if isinstance(number, float)]
            if not all(map(math.isfinite, numbers)):
                yield f"{key} is not finite"
            elif key.endswith("epsilon") and not all(0 < number < 1 for number in numbers):
                yield f"{key} is {value}, not between 0 and 1"
            elif key.endswith(".freq_base") and not all(number > 0 for number in numbers):
                yield f"{key} is {value}, not positive"

    def _block_problems(self) -> Iterator[str]:
        found = {int(match[1]) for name in self._file.tensors if (match := BLOCK_NAME.match(name))}
        blocks = self._get("block_count")
        if is_split(self._file):
            return
        if found != set(range(blocks)):
            yield f"it declares {blocks} blocks and has tensors of {len(found)}"

    def _head_problems(self) -> Iterator[str]:
        """Check numbers of heads, which may be lists with one number per block, and the shapes they imply."""
        width = self._get("embedding_length")
        heads = self._get("attention.head_count")
        keys = self._get("attention.head_count_kv") or heads
        for name, value in (("head_count", heads), ("head_count_kv", keys)):
            numbers = value if isinstance(value, list) else [value]
            if value is not None and not all(is_int(number, 0, MAX_HEADS) for number in numbers):
                yield f"{self._architecture}.attention.{name} is {value}"
                return
        if self._architecture not in LIKE_LLAMA or isinstance(heads, list) or isinstance(keys, list):
            return
        if not heads or not keys or heads % keys:
            yield f"{heads} attention heads cannot share {keys} key heads"
            return
        key_length = self._get("attention.key_length")
        value_length = self._get("attention.value_length")
        if width % heads and (key_length is None or value_length is None):
            yield f"an embedding of {width} numbers cannot be divided among {heads} heads"
            return
        key_length, value_length = (width // heads if n is None else n for n in (key_length, value_length))
        if not is_int(key_length, 1, MAX_WIDTH) or not is_int(value_length, 1, MAX_WIDTH):
            yield f"the length of an attention key is {key_length}, of a value {value_length}"
            return
        rotated = self._get("rope.dimension_count")
        if rotated is not None and (not is_int(rotated, 2, key_length) or rotated % 2):
            yield f"{self._architecture}.rope.dimension_count is {rotated}, and a head has {key_length}"
        yield from self._shape_problems(width, heads, keys, key_length, value_length)

    def _shape_problems(
        self, width: int, heads: int, keys: int, key_length: int, value_length: int
    ) -> Iterator[str]:
        shapes = {
            "attn_norm": (width,),
            "ffn_norm": (width,),
            "attn_q": (width, heads * key_length),
            "attn_k": (width, keys * key_length),
            "attn_v": (width, keys * value_length),
            "attn_output": (heads * value_length, width),
        }
        inner = self._get("feed_forward_length")
        if is_int(inner, 1, MAX_WIDTH):
            shapes |= {"ffn_gate": (width, inner), "ffn_up": (width, inner), "ffn_down": (inner, width)}
        for tensor in self._file.tensors.values():
            expected = shapes.get(BLOCK_NAME.sub("", tensor.name).removesuffix(".weight"))
            if tensor.name == "output_norm.weight":
                expected = (width,)
            if expected is not None and plain_shape(tensor) != expected:
                yield f"the tensor {tensor.name} has the shape {plain_shape(tensor)}, not {expected}"


def vocabulary_problems(file: GGUFFile) -> Iterator[str]:
    """Yield what is wrong with the tokenizer of a model."""
    tokens = file.metadata.get(f"{TOKENS}tokens")
    if not isinstance(file.metadata.get(f"{TOKENS}model"), str) or not is_list(tokens, str) or not tokens:
        yield "it has no tokenizer with a list of tokens"
        return
    count = len(tokens)
    written = [token for token in tokens if token]
    if len(set(written)) < len(written):
        yield "it lists a token twice"
    embedding = file.tensors.get(EMBEDDING)
    if embedding is not None and plain_shape(embedding)[1:] != ((count,) if count > 1 else ()):
        yield f"it lists {count} tokens, and {EMBEDDING} has the shape {plain_shape(embedding)}"
    for name, kind in (("scores", float), ("token_type", int)):
        values = file.metadata.get(f"{TOKENS}{name}")
        if values is not None and (not is_list(values, kind) or len(values) != count):
            yield f"{TOKENS}{name} does not have one number per token"
        elif values is not None and kind is float and not all(map(math.isfinite, values)):
            yield f"{TOKENS}{name} has numbers that are not finite"
        elif values is not None and kind is int and not all(value in TOKEN_TYPES for value in values):
            yield f"{TOKENS}{name} has unknown types"
    if not is_list(file.metadata.get(f"{TOKENS}merges", []), str):
        yield f"{TOKENS}merges is not a list of strings"
    for key, value in file.metadata.items():
        if (
            key.startswith(TOKENS)
            and key.endswith("_token_id")
            and value != NO_TOKEN
            and not is_int(value, 0, count - 1)
        ):
            yield f"{key} is {value}, and there are {count} tokens"


def adapter_problems(file: GGUFFile) -> list[str]:
    """Return what is wrong with a LoRA adapter, regardless of a model; its weights are read."""
    problems = []
    alpha = file.metadata.get(ADAPTER_ALPHA, 0.0)
    if file.types.get(ADAPTER_ALPHA, FLOAT32) != FLOAT32 or not abs(alpha) <= MAX_ALPHA:
        problems.append(f"{ADAPTER_ALPHA} is {alpha}")
    if not isinstance(file.metadata.get("general.architecture"), str):
        problems.append("it names no architecture")
    if any(key.startswith(ALORA_PREFIX) for key in file.metadata):
        problems.append("it is an activated LoRA adapter, which is not supported")
    if not file.tensors:
        problems.append("it has no matrices")
    for name, tensor in file.tensors.items():
        matrix, _, part = name.rpartition(".")
        if part not in ("lora_a", "lora_b") or f"{matrix}.{other_part(part)}" not in file.tensors:
            problems.append(f"the tensor {name} is not one of a pair of lora_a and lora_b")
        elif tensor.type not in FLOAT_BITS:
            problems.append(f"the tensor {name} has the type {tensor.type}, not {' or '.join(FLOAT_BITS)}")
        elif part == "lora_a" and rank(tensor, 1) != rank(file.tensors[f"{matrix}.lora_b"], 0):
            problems.append(f"the two matrices of {matrix} have different ranks")
        elif not is_finite(file, tensor):
            problems.append(f"the tensor {name} has values that are not finite")
    return problems


def fit_problems(adapter: GGUFFile, base: GGUFFile) -> list[str]:
    """Return why an adapter without problems of its own does not fit a model."""
    problems = []
    architectures = [file.metadata.get("general.architecture") for file in (adapter, base)]
    if architectures[0] != architectures[1]:
        problems.append(f"it is for the architecture {architectures[0]}, and the model is of {architectures[1]}")
    for name, a in adapter.tensors.items():
        matrix, _, part = name.rpartition(".")
        if part != "lora_a":
            continue
        changed = base.tensors.get(matrix)
        if changed is None or len(plain_shape(changed)) < 2:
            problems.append(f"the model has no matrix {matrix}")
            continue
        b = adapter.tensors[f"{matrix}.lora_b"]
        columns, rows, *rest = (*changed.shape, 1)[: max(2, len(changed.shape))]
        found = (a.shape[0], (*b.shape, 1)[1], list(a.shape[2:]), list(b.shape[2:]))
        expected = (columns, rows, rest, rest)
        if matrix == EMBEDDING:  # its matrices are transposed
            found, expected = ((*b.shape, 1)[1], (*a.shape, 1)[1], [], []), (columns, rows, [], [])
        if found != expected:
            problems.append(f"it changes {columns} x {rows} numbers of {matrix} by {found[0]} x {found[1]}")
    return problems


def is_finite(file: GGUFFile, tensor: Tensor) -> bool:
    """Return whether all values of a tensor of floating-point numbers are finite."""
    code, exponent = FLOAT_BITS[tensor.type]
    values = np.fromfile(file.path, code, tensor.size // np.dtype(code).itemsize, offset=tensor.offset)
    return not bool(((values & exponent) == exponent).any())


def is_split(file: GGUFFile) -> bool:
    """Return whether a model has further files, which llama.cpp loads too."""
    return bool(file.metadata.get("split.count", 1) != 1)


def plain_shape(tensor: Tensor) -> tuple[int, ...]:
    """Return the shape without dimensions of length 1 at its end."""
    shape = tensor.shape
    while len(shape) > 1 and shape[-1] == 1:
        shape = shape[:-1]
    return shape


def rank(tensor: Tensor, dimension: int) -> int:
    """Return the length of a dimension of a matrix."""
    return (*tensor.shape, 1)[dimension]


def other_part(part: str) -> str:
    """Return the name of the other matrix of a pair."""
    return "lora_b" if part == "lora_a" else "lora_a"


def is_int(value: Any, low: int, high: int) -> bool:
    """Return whether a value is an integer within limits."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def is_list(value: Any, kind: type) -> bool:
    """Return whether a value is a list of values of one type."""
    return isinstance(value, list) and all(type(item) is kind for item in value)
