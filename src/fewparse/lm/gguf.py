"""What a GGUF file says of itself: its keys and values, read without its tensors; and what identifies it."""

import hashlib
import struct
from pathlib import Path
from typing import Any, BinaryIO

from fewparse.errors import CorruptModel, ModelUnavailable

MAGIC = b"GGUF"
VERSIONS = (2, 3)
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
MOST_ENTRIES = 1_000_000


class Header:
    """The beginning of an open file, read value by value; what cannot be is a `CorruptModel`."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file = file
        self._path = path

    def metadata(self) -> dict[str, Any]:
        """All keys with their values."""
        if self._take(len(MAGIC)) != MAGIC:
            raise self.refusal("it does not begin as one")
        if (version := self._number("I")) not in VERSIONS:
            raise self.refusal(f"it is of version {version}")
        self._number("Q")
        return {self._string(): self._value(self._number("I")) for _ in range(self._count())}

    def refusal(self, reason: str) -> CorruptModel:
        """The error for a file that is something else, or damaged."""
        return CorruptModel(f"{self._path} is not a GGUF file: {reason}", "Is it whole? Fetch or make it again.")

    def _take(self, size: int) -> bytes:
        taken = self._file.read(size)
        if len(taken) < size:
            raise self.refusal("it ends too early")
        return taken

    def _number(self, code: str) -> Any:
        return struct.unpack(f"<{code}", self._take(struct.calcsize(f"<{code}")))[0]

    def _count(self) -> int:
        count: int = self._number("Q")
        if count > MOST_ENTRIES:
            raise self.refusal(f"it claims {count} entries")
        return count

    def _string(self) -> str:
        try:
            return self._take(self._count()).decode()
        except UnicodeDecodeError:
            raise self.refusal("a text is not UTF-8") from None

    def _value(self, kind: int) -> Any:
        if kind == STRING:
            return self._string()
        if kind in NUMBERS:
            return self._number(NUMBERS[kind])
        if kind != ARRAY:
            raise self.refusal(f"a value is of the unknown type {kind}")
        inner = self._number("I")
        if inner == ARRAY:
            raise self.refusal("a list is in a list")
        return [self._value(inner) for _ in range(self._count())]


def read_metadata(path: Path) -> dict[str, Any]:
    """The keys and values of a GGUF file; anything else is refused before a native library sees it."""
    try:
        with path.open("rb") as file:
            return Header(file, path).metadata()
    except OSError as error:
        raise ModelUnavailable(f"the file {path} cannot be read: {error.strerror}") from None


def file_sha256(path: Path) -> str:
    """What identifies a whole file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
