"""Checksums by which the content of a published file is recognised: its SHA-256, or the id of its git blob.

The id of a git blob is the SHA-1 of a header with the size and of the content. A repository lists it for each of
its files, so a file can be verified of which nothing else is known.
"""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from io import BufferedReader, FileIO
from typing import Any, Literal

Kind = Literal["SHA-256", "git blob id"]


def start_sha256(size: int) -> Any:
    """Return a hash object for the SHA-256 of a content of any size."""
    return hashlib.sha256()


def start_git_blob(size: int) -> Any:
    """Return a hash object for the id of a git blob whose content has this size."""
    return hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)


HASHES: dict[Kind, Callable[[int], Any]] = {"SHA-256": start_sha256, "git blob id": start_git_blob}


@dataclass(frozen=True)
class Checksum:
    """The kind of a checksum, and its value in hexadecimal digits."""

    kind: Kind
    value: str

    @staticmethod
    def of(content: bytes, kind: Kind = "SHA-256") -> "Checksum":
        """Return the checksum of a content."""
        digest = HASHES[kind](len(content))
        digest.update(content)
        return Checksum(kind, digest.hexdigest())

    def matches(self, content: bytes) -> bool:
        """Return whether this is the checksum of a content."""
        return Checksum.of(content, self.kind) == self

    def matches_file(self, file: BufferedReader | FileIO) -> bool:
        """Return whether this is the checksum of an open file; it is read in blocks."""
        size = os.fstat(file.fileno()).st_size
        return hashlib.file_digest(file, lambda: HASHES[self.kind](size)).hexdigest() == self.value
