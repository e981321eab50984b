"""Downloads: resumed, retried after transient errors, complete or absent."""

import hashlib
import os
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewparse.datasets import download
from fewparse.datasets.checksum import Checksum
from fewparse.datasets.download import RemoteFile, fetch_all, is_complete
from fewparse.errors import CorruptData, DataUnavailable, UsageError
from support.file_server import FileServer, Misbehaviour, serving

CONTENT = random.Random(5).randbytes(200_000)
HALF = len(CONTENT) // 2
NOTHING = Misbehaviour(status=200, headers=(("Content-Length", "0"),))
DROPPED_HALFWAY = Misbehaviour(drop_after=HALF)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    monkeypatch.setenv("no_proxy", "*")
    with serving() as running:
        running.files["/folder/file.bin"] = CONTENT
        yield running


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record the waits between attempts instead of waiting."""
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    return waited


@pytest.fixture
def file(server: FileServer, tmp_path: Path) -> RemoteFile:
    return remote(server, tmp_path / "data" / "file.bin")


def remote(server: FileServer, path: Path) -> RemoteFile:
    checksum = Checksum("SHA-256", hashlib.sha256(CONTENT).hexdigest())
    return RemoteFile(f"{server.address}/folder/file.bin", path, len(CONTENT), checksum)


def part_of(file: RemoteFile, content: bytes | None = None) -> Path:
    part = file.path.with_name("file.bin.part")
    if content is not None:
        part.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content)
    return part


def file_names(file: RemoteFile) -> list[str]:
    return sorted(path.name for path in file.path.parent.iterdir())


def assert_fetched(file: RemoteFile) -> None:
    assert file.path.read_bytes() == CONTENT
    assert file_names(file) == ["file.bin"]


def test_a_file_is_fetched_and_nothing_else_is_left(server: FileServer, file: RemoteFile) -> None:
    fetch_all([file])
    assert_fetched(file)
    assert server.requests == [("/folder/file.bin", None)]


def test_progress_counts_over_all_files_and_starts_with_the_first_missing_one(
    server: FileServer, tmp_path: Path
) -> None:
    files = [remote(server, tmp_path / name) for name in ("one", "two", "three")]
    fetch_all(files[:1])
    reported: list[tuple[int, int | None]] = []
    fetch_all(files, lambda done, total: reported.append((done, total)))
    assert {total for _, total in reported} == {3 * len(CONTENT)}
    done = [done for done, _ in reported]
    assert done == sorted(done)
    assert len(CONTENT) < done[0] < 2 * len(CONTENT)
    assert done[-1] == 3 * len(CONTENT)
    reported.clear()
    fetch_all(files, lambda done, total: reported.append((done, total)))
    assert reported == []


def test_a_complete_file_is_fetched_again_only_if_forced(server: FileServer, file: RemoteFile) -> None:
    fetch_all([file])
    fetch_all([file])
    assert len(server.requests) == 1
    fetch_all([file], force=True)
    assert server.ranges == [None, None]
    assert_fetched(file)


def test_a_file_with_one_flipped_bit_is_fetched_again(server: FileServer, file: RemoteFile) -> None:
    fetch_all([file])
    damaged = bytearray(CONTENT)
    damaged[12_345] ^= 1
    file.path.write_bytes(damaged)
    assert not is_complete(file.path, file)
    fetch_all([file])
    assert_fetched(file)


def test_a_dropped_connection_is_resumed(server: FileServer, file: RemoteFile, waits: list[float]) -> None:
    server.next = [DROPPED_HALFWAY, Misbehaviour(drop_after=10)]
    fetch_all([file])
    assert_fetched(file)
    assert server.ranges == [None, f"bytes={HALF}-", f"bytes={HALF + 10}-"]
    assert waits == [1, 2]


def test_a_part_of_an_earlier_download_is_resumed(server: FileServer, file: RemoteFile) -> None:
    part_of(file, CONTENT[:1234])
    fetch_all([file])
    assert_fetched(file)
    assert server.ranges == ["bytes=1234-"]


def test_a_complete_part_needs_no_request(server: FileServer, file: RemoteFile) -> None:
    part_of(file, CONTENT)
    fetch_all([file])
    assert_fetched(file)
    assert server.requests == []


def test_a_forced_download_does_not_resume(server: FileServer, file: RemoteFile) -> None:
    part_of(file, CONTENT[:1234])
    fetch_all([file], force=True)
    assert_fetched(file)
    assert server.ranges == [None]


@pytest.mark.parametrize(
    ("misbehaviour", "ranges"),
    [
        pytest.param(Misbehaviour(ignore_range=True), ["bytes=1234-"], id="the server ignores Range"),
        pytest.param(Misbehaviour(status=416), ["bytes=1234-", None], id="the server rejects the Range"),
        pytest.param(Misbehaviour(shift=1), ["bytes=1234-", None], id="the server sends another range"),
    ],
)
def test_a_part_that_cannot_be_resumed_is_discarded(
    server: FileServer, file: RemoteFile, misbehaviour: Misbehaviour, ranges: list[str | None], waits: list[float]
) -> None:
    part_of(file, CONTENT[:1234])
    server.next = [misbehaviour]
    fetch_all([file])
    assert_fetched(file)
    assert server.ranges == ranges
    assert waits == []


def test_nothing_of_a_discarded_part_survives_a_dropped_restart(server: FileServer, file: RemoteFile) -> None:
    part_of(file, bytes(1234))
    server.next = [Misbehaviour(ignore_range=True, drop_after=1000)]
    fetch_all([file])
    assert_fetched(file)
    assert server.ranges == ["bytes=1234-", "bytes=1000-"]


@pytest.mark.parametrize("bad", [b"<html>", bytes(len(CONTENT)), CONTENT + b"!"], ids=["short", "equal", "long"])
def test_a_part_with_wrong_bytes_is_discarded(server: FileServer, file: RemoteFile, bad: bytes) -> None:
    part_of(file, bad)
    fetch_all([file])
    assert_fetched(file)
    assert server.ranges[-1] is None


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_rejected_request_is_not_retried_and_has_a_hint(
    server: FileServer, file: RemoteFile, status: int
) -> None:
    part_of(file, CONTENT[:1234])
    server.always = Misbehaviour(status=status)
    with pytest.raises(DataUnavailable, match=str(status)) as caught:
        fetch_all([file])
    assert file.url in caught.value.message
    assert "--from" in str(caught.value.hint)
    assert "fewparse data import" in str(caught.value.hint)
    assert len(server.requests) == 1
    assert file_names(file) == ["file.bin.part"]


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_transient_error_is_retried(
    server: FileServer, file: RemoteFile, status: int, waits: list[float]
) -> None:
    server.next = [Misbehaviour(status=status)] * 3
    fetch_all([file])
    assert_fetched(file)
    assert waits == [1, 2, 4]


def test_retry_after_is_respected(server: FileServer, file: RemoteFile, waits: list[float]) -> None:
    soon = formatdate(time.time() + 20, usegmt=True)
    server.next = [
        Misbehaviour(status=429, headers=(("Retry-After", after),)) for after in ("3", soon, "whenever")
    ]
    fetch_all([file])
    assert waits[0] == 3
    assert 10 < waits[1] <= 20
    assert waits[2] == 4


def test_a_long_retry_after_ends_the_download(server: FileServer, file: RemoteFile, waits: list[float]) -> None:
    server.always = Misbehaviour(status=429, headers=(("Retry-After", "3600"),))
    with pytest.raises(DataUnavailable, match="429 Too Many Requests and requests a wait of 3600 s"):
        fetch_all([file])
    assert (len(server.requests), waits) == (1, [])


def test_a_failing_server_is_tried_a_few_times(server: FileServer, file: RemoteFile) -> None:
    server.always = Misbehaviour(status=500)
    with pytest.raises(DataUnavailable, match="500"):
        fetch_all([file])
    assert len(server.requests) == download.MAX_ATTEMPTS
    assert file_names(file) == []


def test_a_failed_download_is_resumed_the_next_time(server: FileServer, file: RemoteFile) -> None:
    server.always = Misbehaviour(drop_after=40_000)
    with pytest.raises(DataUnavailable, match="connection was lost"):
        fetch_all([file])
    assert file_names(file) == ["file.bin.part"]
    assert part_of(file).read_bytes() == CONTENT[: 40_000 * download.MAX_ATTEMPTS]
    server.always = Misbehaviour()
    fetch_all([file])
    assert_fetched(file)
    assert server.ranges[-1] == f"bytes={40_000 * download.MAX_ATTEMPTS}-"


def test_a_server_that_drops_and_ignores_ranges_is_tried_a_few_times(server: FileServer, file: RemoteFile) -> None:
    server.always = replace(DROPPED_HALFWAY, ignore_range=True)
    with pytest.raises(DataUnavailable):
        fetch_all([file])
    assert len(server.requests) == download.MAX_ATTEMPTS
    assert not file.path.exists()


def test_a_silent_server_is_retried_after_the_timeout(
    server: FileServer, file: RemoteFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "RETRY", replace(download.RETRY, timeout=1.0))
    server.next = [Misbehaviour(stall_after=HALF), Misbehaviour(stall_after=0)]
    fetch_all([file])
    assert_fetched(file)
    assert server.ranges[2] is not None


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (bytes(len(CONTENT)), "SHA-256"),
        (CONTENT + b"!", f"size is {len(CONTENT) + 1}, not {len(CONTENT)}"),
        (CONTENT[:-1], f"size is {len(CONTENT) - 1}, not {len(CONTENT)}"),
        (b"<html>please log in</html>", "size is 26"),
        (b"", "size is 0"),
    ],
    ids=["other bytes", "longer", "shorter", "a web page", "nothing"],
)
def test_a_wrong_file_is_rejected_and_not_stored(
    server: FileServer, file: RemoteFile, body: bytes, message: str
) -> None:
    server.files["/folder/file.bin"] = body
    server.always = Misbehaviour() if body else NOTHING
    with pytest.raises(CorruptData, match=message) as caught:
        fetch_all([file])
    assert "import" in str(caught.value.hint)
    assert file_names(file) == []
    assert len(server.requests) == 1


def test_a_web_page_instead_of_the_rest_keeps_the_part(server: FileServer, file: RemoteFile) -> None:
    part_of(file, CONTENT[:1234])
    server.next = [Misbehaviour(body=b"<html>please log in</html>", ignore_range=True)]
    with pytest.raises(CorruptData):
        fetch_all([file])
    fetch_all([file])
    assert server.ranges[-1] == "bytes=1234-"
    assert_fetched(file)


def test_an_endless_response_is_cut_at_the_expected_size(server: FileServer, file: RemoteFile) -> None:
    server.always = Misbehaviour(body=CONTENT * 50, has_length=False)
    reported: list[int] = []
    with pytest.raises(CorruptData, match="over 200000, not 200000 bytes"):
        fetch_all([file], lambda done, _: reported.append(done))
    assert max(reported) <= len(CONTENT)
    assert file_names(file) == []


def test_a_response_without_a_length_is_accepted(server: FileServer, file: RemoteFile) -> None:
    server.always = Misbehaviour(has_length=False)
    fetch_all([file])
    assert_fetched(file)


def test_a_refused_connection_is_not_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with serving() as gone:
        file = remote(gone, tmp_path / "file.bin")
    with pytest.raises(DataUnavailable, match="Connection refused") as caught:
        fetch_all([file])
    assert "network" in str(caught.value.hint)


@pytest.mark.parametrize(
    "url",
    ["file:///etc/hostname", "ftp://host/x", "host/x", "", "http://host:port/x", "http://h/ö", "http://h/a b"],
)
def test_an_invalid_address_is_a_usage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("http_proxy", "")
    with pytest.raises(UsageError, match="not a web address"):
        fetch_all([RemoteFile(url, tmp_path / "file.bin", 1, Checksum.of(b"x"))])


def test_the_proxy_from_the_environment_is_used(
    server: FileServer, file: RemoteFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("no_proxy")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("http_proxy", server.address)
    server.files["http://far.invalid/file.bin"] = CONTENT
    fetch_all([replace(file, url="http://far.invalid/file.bin")])
    assert_fetched(file)


def test_concurrent_downloads_do_not_interfere(server: FileServer, file: RemoteFile) -> None:
    part_of(file, CONTENT[:1234])
    server.always = Misbehaviour(drop_after=70_000)
    both = threading.Barrier(2)

    def one(_: int) -> None:
        both.wait()
        fetch_all([file])

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(one, range(2)))
    assert_fetched(file)


def test_a_killed_download_is_resumed_and_a_running_one_left_alone(server: FileServer, file: RemoteFile) -> None:
    killed, living = (file.path.with_name(f"file.bin.{name}.part") for name in ("aaa", "bbb"))
    part_of(file, CONTENT[:10])
    killed.write_bytes(CONTENT[:4321])
    living.write_bytes(CONTENT[:9999])
    long_ago = time.time() - 2 * download.ABANDONED_SECONDS
    os.utime(killed, (long_ago, long_ago))
    fetch_all([file])
    assert server.ranges == ["bytes=4321-"]
    assert file_names(file) == ["file.bin", living.name]
    assert living.read_bytes() == CONTENT[:9999]


def test_an_interrupted_download_leaves_only_a_part(server: FileServer, file: RemoteFile) -> None:
    def interrupt(done: int, _total: int | None) -> None:
        if done > HALF:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch_all([file], interrupt)
    assert file_names(file) == ["file.bin.part"]
    fetch_all([file])
    assert_fetched(file)
    assert server.ranges[1] is not None


def test_an_unwritable_folder_is_reported(server: FileServer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(DataUnavailable, match="cannot be stored in") as caught:
        fetch_all([remote(server, tmp_path / "file" / "file.bin")])
    assert "FEWPARSE_DATA" in str(caught.value.hint)


@given(
    st.one_of(st.binary(max_size=50), st.integers(0, len(CONTENT)).map(lambda end: CONTENT[:end])),
    st.lists(
        st.builds(
            Misbehaviour,
            status=st.sampled_from([None, None, None, 416, 503]),
            drop_after=st.integers(0, len(CONTENT)),
            ignore_range=st.booleans(),
            has_length=st.booleans(),
            shift=st.integers(0, 1),
        ),
        max_size=download.MAX_ATTEMPTS - 1,
    ),
    st.booleans(),
)
@settings(max_examples=60)
def test_after_any_faults_the_file_is_complete_or_absent(
    part: bytes, faults: list[Misbehaviour], size_is_known: bool
) -> None:
    if not size_is_known:  # a response that is dropped and has no length seems to be complete
        faults = [replace(fault, has_length=True) for fault in faults]
    with pytest.MonkeyPatch.context() as patch, serving() as server, TemporaryDirectory() as folder:
        patch.setenv("no_proxy", "*")
        patch.setattr(time, "sleep", lambda _: None)
        server.files["/folder/file.bin"] = CONTENT
        server.next = list(faults)
        file = remote(server, Path(folder) / "file.bin")
        file = file if size_is_known else replace(file, size=None)
        part_of(file, part)
        try:
            fetch_all([file])
        except DataUnavailable:
            assert not file.path.exists()
            assert any(fault.status == 416 for fault in faults)
            server.next = []
            fetch_all([file])
        assert_fetched(file)
