"""Checksums of published files: SHA-256 and ids of git blobs."""

from pathlib import Path

import pytest

from fewparse.datasets.checksum import Checksum, Kind

# Of FIPS 180-2 and of "Pro Git" (git hash-object).
KNOWN: list[tuple[Kind, bytes, str]] = [
    ("SHA-256", b"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    ("git blob id", b"what is up, doc?", "bd9dbf5aae1a3862dd1526723246b20206e5fc37"),
    ("git blob id", b"", "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"),
]


@pytest.mark.parametrize(("kind", "content", "value"), KNOWN)
def test_known_checksums_match_their_content_and_no_other(
    kind: Kind, content: bytes, value: str, tmp_path: Path
) -> None:
    checksum = Checksum(kind, value)
    assert Checksum.of(content, kind) == checksum
    path = tmp_path / "file"
    for found, expected in ((content, True), (content + b"!", False)):
        path.write_bytes(found)
        with path.open("rb") as file:
            assert checksum.matches(found) == checksum.matches_file(file) == expected
