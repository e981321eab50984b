"""Read the metadata of GGUF files, without their tensors, and hash files."""

import hashlib
import struct
from pathlib import Path
from typing import Any, BinaryIO

from fewparse.errors import CorruptModel, ModelUnavailable

MAGIC = b"GGUF"
VERSIONS = (2, 3)
NUMBER_FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
MAX_ENTRIES = 1_000_000


class Header:
    """Reads the header of an open file, value by value; raises `CorruptModel` if it is malformed."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file = file
        self._path = path

    def metadata(self) -> dict[str, Any]:
        """Return all keys and values."""
        if self._bytes(len(MAGIC)) != MAGIC:
            raise self._error("it does not start with GGUF")
        if (version := self._number("I")) not in VERSIONS:
            raise self._error(f"version {version} is not supported")
        self._number("Q")
        return {self._string(): self._value(self._number("I")) for _ in range(self._count())}

    def _error(self, reason: str) -> CorruptModel:
        return CorruptModel(
            f"{self._path} is not a GGUF file: {reason}",
            "The file may be incomplete: download or create it again.",
        )

    def _bytes(self, size: int) -> bytes:
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
        inner = self._number("I")
        if inner == ARRAY:
            raise self._error("an array contains an array")
        return [self._value(inner) for _ in range(self._count())]


def read_metadata(path: Path) -> dict[str, Any]:
    """Return the keys and values of a GGUF file; raise `CorruptModel` if it is malformed."""
    try:
        with path.open("rb") as file:
            return Header(file, path).metadata()
    except OSError as error:
        raise ModelUnavailable(f"the file {path} cannot be read: {error.strerror}") from None


def file_sha256(path: Path) -> str:
    """Return the SHA-256 hash of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
