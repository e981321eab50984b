"""Downloads of files that are known by the id of their git blob alone, and of optional files."""

import hashlib
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fewparse.datasets import download
from fewparse.datasets.checksum import Checksum
from fewparse.datasets.download import RemoteFile, fetch_all
from fewparse.errors import CorruptData, DataUnavailable
from support.file_server import FileServer, Misbehaviour, serving

CONTENT = random.Random(6).randbytes(200_000)
HALF = len(CONTENT) // 2
BLOB = hashlib.sha1(f"blob {len(CONTENT)}\0".encode() + CONTENT).hexdigest()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(time, "sleep", lambda _: None)
    with serving() as running:
        running.files["/file.bin"] = CONTENT
        yield running


@pytest.fixture
def file(server: FileServer, tmp_path: Path) -> RemoteFile:
    return RemoteFile(f"{server.address}/file.bin", tmp_path / "file.bin", None, Checksum("git blob id", BLOB))


def part_of(file: RemoteFile, content: bytes) -> None:
    file.path.with_name("file.bin.part").write_bytes(content)


def file_names(file: RemoteFile) -> list[str]:
    return sorted(path.name for path in file.path.parent.iterdir())


def assert_fetched(file: RemoteFile) -> None:
    assert file.path.read_bytes() == CONTENT
    assert file_names(file) == ["file.bin"]


@pytest.mark.parametrize("has_length", [True, False])
def test_it_is_fetched_once_and_progress_has_no_total(
    server: FileServer, file: RemoteFile, has_length: bool
) -> None:
    server.always = Misbehaviour(has_length=has_length)
    reported: list[tuple[int, int | None]] = []
    assert fetch_all([file], lambda done, total: reported.append((done, total))) == ()
    assert_fetched(file)
    assert {total for _, total in reported} == {None}
    assert reported[-1][0] == len(CONTENT)
    fetch_all([file])
    assert len(server.requests) == 1


def test_a_dropped_connection_and_an_earlier_part_are_resumed(server: FileServer, file: RemoteFile) -> None:
    part_of(file, CONTENT[:1234])
    server.next = [Misbehaviour(drop_after=HALF)]
    fetch_all([file])
    assert_fetched(file)
    assert server.ranges == ["bytes=1234-", f"bytes={1234 + HALF}-"]


@pytest.mark.parametrize(
    ("part", "ranges"),
    [
        pytest.param(CONTENT, [], id="complete"),
        pytest.param(bytes(1234), ["bytes=1234-", None], id="other bytes"),
        pytest.param(CONTENT + b"!", [f"bytes={len(CONTENT) + 1}-", None], id="longer"),
    ],
)
def test_an_earlier_part_is_used_only_if_it_is_right(
    server: FileServer, file: RemoteFile, part: bytes, ranges: list[str | None]
) -> None:
    part_of(file, part)
    fetch_all([file])
    assert_fetched(file)
    assert server.ranges == ranges


@pytest.mark.parametrize("body", [bytes(len(CONTENT)), CONTENT + b"!", CONTENT[:-1], b"<html>"])
def test_a_file_with_another_blob_is_rejected(server: FileServer, file: RemoteFile, body: bytes) -> None:
    server.files["/file.bin"] = body
    with pytest.raises(CorruptData, match=f"its git blob id is not {BLOB}"):
        fetch_all([file])
    assert file_names(file) == []


@pytest.mark.parametrize("has_length", [True, False])
def test_an_unknown_size_has_a_limit(
    server: FileServer, file: RemoteFile, has_length: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "MAX_BYTES", len(CONTENT))
    fetch_all([file])
    assert_fetched(file)
    file.path.unlink()
    server.always = Misbehaviour(body=CONTENT * 50, has_length=has_length)
    reported: list[int] = []
    with pytest.raises(CorruptData, match="not at most 200000 bytes"):
        fetch_all([file], lambda done, _: reported.append(done))
    assert max(reported, default=0) <= len(CONTENT)
    assert file_names(file) == []


def test_a_part_beyond_the_limit_is_discarded(
    server: FileServer, file: RemoteFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "MAX_BYTES", len(CONTENT))
    part_of(file, CONTENT + b"!")
    fetch_all([file])
    assert_fetched(file)
    assert server.ranges == [None]


FAULTS = [Misbehaviour(status=404), Misbehaviour(body=b"other")]


@pytest.mark.parametrize("fault", FAULTS, ids=["absent", "wrong"])
def test_an_optional_file_may_fail_and_its_damaged_copy_is_deleted(
    server: FileServer, file: RemoteFile, fault: Misbehaviour
) -> None:
    file.path.write_bytes(CONTENT[:-1])
    server.next = [fault]
    other = replace(file, path=file.path.with_name("other"))
    (failure,) = fetch_all([replace(file, optional=True), other])
    assert failure.startswith(file.url)
    assert file_names(file) == ["other"]


@pytest.mark.parametrize("fault", FAULTS, ids=["absent", "wrong"])
def test_an_optional_file_that_is_complete_survives_a_failed_forced_download(
    server: FileServer, file: RemoteFile, fault: Misbehaviour
) -> None:
    fetch_all([file])
    server.always = fault
    assert len(fetch_all([replace(file, optional=True)], force=True)) == 1
    assert_fetched(file)
    with pytest.raises((DataUnavailable, CorruptData)):
        fetch_all([file], force=True)
