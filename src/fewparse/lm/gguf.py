"""Read GGUF files: metadata and the table of tensors, without the tensors themselves; hash files."""

import hashlib
import math
import os
import struct
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

from fewparse.errors import CorruptModel, ModelUnavailable
from fewparse.files import os_reason

MAGIC = b"GGUF"
VERSIONS = (2, 3)
NUMBER_FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
UINT32, FLOAT32, STRING, ARRAY = 4, 6, 8, 9
MAX_ENTRIES = 1_000_000
MAX_TENSORS = 100_000
MAX_HEADER_BYTES = 256_000_000
MAX_NAME_BYTES, MAX_DIMENSIONS = 63, 4
ALIGNMENT, ALIGNMENT_KEY = 32, "general.alignment"

TENSOR_TYPES: dict[int, tuple[str, int, int]] = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34),
    10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
    16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74),
    18: ("IQ3_XXS", 256, 98),
    19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18),
    21: ("IQ3_S", 256, 110),
    22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1),
    25: ("I16", 1, 2),
    26: ("I32", 1, 4),
    27: ("I64", 1, 8),
    28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56),
    30: ("BF16", 1, 2),
    34: ("TQ1_0", 256, 54),
    35: ("TQ2_0", 256, 66),
    39: ("MXFP4", 32, 17),
    40: ("NVFP4", 64, 36),
    41: ("Q1_0", 128, 18),
}
"""The name of each tensor type, the number of values in a block, and the number of bytes of a block."""


@dataclass(frozen=True)
class Tensor:
    """A tensor of a file: its shape, with the dimension of adjacent values first, and where its data is."""

    name: str
    shape: tuple[int, ...]
    type: str
    offset: int
    size: int


@dataclass(frozen=True)
class GGUFFile:
    """The metadata of a file, the type of each value, and its tensors by name; `size` is in bytes."""

    path: Path
    size: int
    metadata: dict[str, Any]
    types: dict[str, int]
    tensors: dict[str, Tensor]


class Header:
    """Reads the header of an open file, value by value; raises `CorruptModel` if it is malformed."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file = file
        self._path = path
        self._size = os.fstat(file.fileno()).st_size
        self._left = min(self._size, MAX_HEADER_BYTES)
        self.types: dict[str, int] = {}

    def metadata(self) -> dict[str, Any]:
        """Return all keys and values."""
        return self._start()[1]

    def whole(self) -> GGUFFile:
        """Return the metadata and the table of tensors, whose data is inside the file and does not overlap."""
        count, metadata = self._start()
        if count > MAX_TENSORS:
            raise self._error(f"it declares {count} tensors")
        alignment = metadata.get(ALIGNMENT_KEY, ALIGNMENT)
        if self.types.get(ALIGNMENT_KEY, UINT32) != UINT32 or alignment < 1 or alignment & (alignment - 1):
            raise self._error(f"its alignment is {alignment}")
        table = [self._tensor(alignment) for _ in range(count)]
        start = self._file.tell()
        start += -start % alignment
        tensors: dict[str, Tensor] = {}
        end = 0
        for tensor in sorted(table, key=lambda tensor: tensor.offset):
            if tensor.name in tensors:
                raise self._error(f"it has two tensors {tensor.name}")
            if tensor.offset < end:
                raise self._error(f"the tensor {tensor.name} overlaps another one")
            end = tensor.offset + tensor.size
            if start + end > self._size:
                raise self._error(f"it is truncated: the tensor {tensor.name} ends behind the end of the file")
            place = start + tensor.offset
            tensors[tensor.name] = Tensor(tensor.name, tensor.shape, tensor.type, place, tensor.size)
        return GGUFFile(self._path, self._size, metadata, self.types, tensors)

    def _start(self) -> tuple[int, dict[str, Any]]:
        """Return the number of tensors and the metadata."""
        if self._bytes(len(MAGIC)) != MAGIC:
            raise self._error("it does not start with GGUF")
        if (version := self._number("I")) not in VERSIONS:
            raise self._error(f"version {version} is not supported")
        tensors: int = self._number("Q")
        metadata: dict[str, Any] = {}
        for _ in range(self._count()):
            key = self._string()
            if key in metadata:
                raise self._error(f"it has the key {key} twice")
            self.types[key] = self._number("I")
            metadata[key] = self._value(self.types[key])
        return tensors, metadata

    def _tensor(self, alignment: int) -> Tensor:
        """Return the next tensor of the table, with its offset from the start of the data."""
        name = self._string()
        if not 0 < len(name.encode()) <= MAX_NAME_BYTES:
            raise self._error(f"a tensor has a name of {len(name.encode())} bytes")
        dimensions: int = self._number("I")
        if not 0 < dimensions <= MAX_DIMENSIONS:
            raise self._error(f"the tensor {name} has {dimensions} dimensions")
        shape = tuple(self._number("Q") for _ in range(dimensions))
        kind: int = self._number("I")
        offset: int = self._number("Q")
        if kind not in TENSOR_TYPES:
            raise self._error(f"the tensor {name} has the unknown type {kind}")
        type_name, block, block_bytes = TENSOR_TYPES[kind]
        if min(shape) < 1 or math.prod(shape) >= 2**62 or shape[0] % block:
            raise self._error(f"the tensor {name} of type {type_name} has the shape {shape}")
        if offset % alignment:
            raise self._error(f"the offset {offset} of the tensor {name} is not a multiple of {alignment}")
        return Tensor(name, shape, type_name, offset, math.prod(shape) // block * block_bytes)

    def _error(self, reason: str) -> CorruptModel:
        return CorruptModel(
            f"{self._path} is not a GGUF file: {reason}",
            "The file may be incomplete: download or create it again.",
        )

    def _bytes(self, size: int) -> bytes:
        if size > self._left:
            reason = "it is truncated" if self._size < MAX_HEADER_BYTES else "its header is too large"
            raise self._error(reason)
        self._left -= size
        data = self._file.read(size)
        if len(data) < size:
            raise self._error("it is truncated")
        return data

    def _number(self, code: str) -> Any:
        return struct.unpack(f"<{code}", self._bytes(struct.calcsize(f"<{code}")))[0]

    def _count(self) -> int:
        count: int = self._number("Q")
        if count > MAX_ENTRIES:
            raise self._error(f"it declares {count} entries")
        return count

    def _string(self) -> str:
        try:
            return self._bytes(self._count()).decode()
        except UnicodeDecodeError:
            raise self._error("a string is not UTF-8") from None

    def _value(self, kind: int) -> Any:
        if kind == STRING:
            return self._string()
        if kind in NUMBER_FORMATS:
            return self._number(NUMBER_FORMATS[kind])
        if kind != ARRAY:
            raise self._error(f"a value has the unknown type {kind}")
        inner: int = self._number("I")
        if inner == ARRAY:
            raise self._error("an array contains an array")
        count = self._count()
        if inner in NUMBER_FORMATS:
            code = f"<{count}{NUMBER_FORMATS[inner]}"
            return list(struct.unpack(code, self._bytes(struct.calcsize(code))))
        return [self._value(inner) for _ in range(count)]


def read_metadata(path: Path) -> dict[str, Any]:
    """Return the keys and values of a GGUF file; raise `CorruptModel` if it is malformed."""
    try:
        with open_regular(path) as file:
            return Header(file, path).metadata()
    except (OSError, ValueError) as error:
        raise ModelUnavailable(f"the file {path} cannot be read: {os_reason(error)}") from None


def read_gguf(path: Path) -> GGUFFile:
    """Return the metadata and the tensors of a GGUF file; raise `CorruptModel` if it is malformed."""
    try:
        with open_regular(path) as file:
            return Header(file, path).whole()
    except (OSError, ValueError) as error:
        raise ModelUnavailable(f"the file {path} cannot be read: {os_reason(error)}") from None


def open_regular(path: Path) -> BufferedReader:
    """Open a file for reading; raise `OSError` if it is not a regular one, without waiting for a pipe."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OSError("it is not a regular file")
    return path.open("rb")


def file_sha256(path: Path) -> str:
    """Return the SHA-256 hash of a file, in hexadecimal."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
