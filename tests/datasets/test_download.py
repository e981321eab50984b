"""Downloads: resumed where they stopped, retried where it helps, whole or not at all."""

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
from fewparse.datasets.download import RemoteFile, fetch_all, is_whole
from fewparse.errors import CorruptData, DataUnavailable, UsageError
from support.file_server import Misbehaviour, Server, serving

CONTENT = random.Random(5).randbytes(200_000)
HALF = len(CONTENT) // 2
NOTHING = Misbehaviour(status=200, headers=(("Content-Length", "0"),))
DROPPED_HALFWAY = Misbehaviour(drop_after=HALF)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "*")
    with serving() as running:
        running.files["/folder/file.bin"] = CONTENT
        yield running


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was waited between tries, without waiting."""
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    return waited


@pytest.fixture
def file(server: Server, tmp_path: Path) -> RemoteFile:
    return remote(server, tmp_path / "data" / "file.bin")


def remote(server: Server, path: Path) -> RemoteFile:
    return RemoteFile(f"{server.address}/folder/file.bin", path, len(CONTENT), hashlib.sha256(CONTENT).hexdigest())


def part_of(file: RemoteFile, content: bytes | None = None) -> Path:
    part = file.path.with_name("file.bin.part")
    if content is not None:
        part.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content)
    return part


def names(file: RemoteFile) -> list[str]:
    return sorted(path.name for path in file.path.parent.iterdir())


def assert_fetched(file: RemoteFile) -> None:
    assert file.path.read_bytes() == CONTENT
    assert names(file) == ["file.bin"]


def test_a_file_is_fetched_and_nothing_else_is_left(server: Server, file: RemoteFile) -> None:
    fetch_all([file])
    assert_fetched(file)
    assert server.asked == [("/folder/file.bin", None)]


def test_progress_counts_over_all_files_and_begins_with_the_first_that_is_not_there(
    server: Server, tmp_path: Path
) -> None:
    files = [remote(server, tmp_path / name) for name in ("one", "two", "three")]
    fetch_all(files[:1])
    told: list[tuple[int, int]] = []
    fetch_all(files, lambda done, total: told.append((done, total)))
    assert {total for _, total in told} == {3 * len(CONTENT)}
    done = [done for done, _ in told]
    assert done == sorted(done)
    assert len(CONTENT) < done[0] < 2 * len(CONTENT)
    assert done[-1] == 3 * len(CONTENT)
    told.clear()
    fetch_all(files, lambda done, total: told.append((done, total)))
    assert told == []


def test_a_file_that_is_there_is_not_fetched_again_unless_forced(server: Server, file: RemoteFile) -> None:
    fetch_all([file])
    fetch_all([file])
    assert len(server.asked) == 1
    fetch_all([file], force=True)
    assert server.ranges == [None, None]
    assert_fetched(file)


def test_a_file_with_one_flipped_bit_is_fetched_again(server: Server, file: RemoteFile) -> None:
    fetch_all([file])
    damaged = bytearray(CONTENT)
    damaged[12_345] ^= 1
    file.path.write_bytes(damaged)
    assert not is_whole(file.path, file)
    fetch_all([file])
    assert_fetched(file)


def test_a_dropped_connection_is_carried_on_where_it_broke(
    server: Server, file: RemoteFile, waits: list[float]
) -> None:
    server.next = [DROPPED_HALFWAY, Misbehaviour(drop_after=10)]
    fetch_all([file])
    assert_fetched(file)
    assert server.ranges == [None, f"bytes={HALF}-", f"bytes={HALF + 10}-"]
    assert waits == [1, 2]


def test_what_an_earlier_download_left_is_carried_on(server: Server, file: RemoteFile) -> None:
    part_of(file, CONTENT[:1234])
    fetch_all([file])
    assert_fetched(file)
    assert server.ranges == ["bytes=1234-"]


def test_a_part_that_is_complete_needs_no_request(server: Server, file: RemoteFile) -> None:
    part_of(file, CONTENT)
    fetch_all([file])
    assert_fetched(file)
    assert server.asked == []


def test_forced_a_part_is_not_carried_on(server: Server, file: RemoteFile) -> None:
    part_of(file, CONTENT[:1234])
    fetch_all([file], force=True)
    assert_fetched(file)
    assert server.ranges == [None]


@pytest.mark.parametrize(
    ("misbehaviour", "asked"),
    [
        pytest.param(Misbehaviour(ignore_range=True), ["bytes=1234-"], id="the server ignores Range"),
        pytest.param(Misbehaviour(status=416), ["bytes=1234-", None], id="the server refuses the Range"),
        pytest.param(Misbehaviour(shift=1), ["bytes=1234-", None], id="the server sends another range"),
    ],
)
def test_a_part_that_cannot_be_carried_on_is_begun_afresh(
    server: Server, file: RemoteFile, misbehaviour: Misbehaviour, asked: list[str | None], waits: list[float]
) -> None:
    part_of(file, CONTENT[:1234])
    server.next = [misbehaviour]
    fetch_all([file])
    assert_fetched(file)
    assert server.ranges == asked
    assert waits == []


def test_nothing_of_a_bad_part_survives_a_fresh_start_that_breaks(server: Server, file: RemoteFile) -> None:
    part_of(file, bytes(1234))
    server.next = [Misbehaviour(ignore_range=True, drop_after=1000)]
    fetch_all([file])
    assert_fetched(file)
    assert server.ranges == ["bytes=1234-", "bytes=1000-"]


@pytest.mark.parametrize("bad", [b"<html>", bytes(len(CONTENT)), CONTENT + b"!"], ids=["short", "equal", "long"])
def test_a_part_with_other_bytes_is_begun_afresh(server: Server, file: RemoteFile, bad: bytes) -> None:
    part_of(file, bad)
    fetch_all([file])
    assert_fetched(file)
    assert server.ranges[-1] is None


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_refusal_is_told_at_once_with_another_way(server: Server, file: RemoteFile, status: int) -> None:
    part_of(file, CONTENT[:1234])
    server.always = Misbehaviour(status=status)
    with pytest.raises(DataUnavailable, match=str(status)) as caught:
        fetch_all([file])
    assert file.url in caught.value.message
    assert "--from" in str(caught.value.hint)
    assert "fewparse data import" in str(caught.value.hint)
    assert len(server.asked) == 1
    assert names(file) == ["file.bin.part"]


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_fault_that_may_pass_is_tried_again(
    server: Server, file: RemoteFile, status: int, waits: list[float]
) -> None:
    server.next = [Misbehaviour(status=status)] * 3
    fetch_all([file])
    assert_fetched(file)
    assert waits == [1, 2, 4]


def test_a_server_is_given_the_time_it_asks_for(server: Server, file: RemoteFile, waits: list[float]) -> None:
    soon = formatdate(time.time() + 20, usegmt=True)
    server.next = [
        Misbehaviour(status=429, headers=(("Retry-After", after),)) for after in ("3", soon, "whenever")
    ]
    fetch_all([file])
    assert waits[0] == 3
    assert 10 < waits[1] <= 20
    assert waits[2] == 4


def test_a_server_that_asks_for_an_hour_is_given_up(server: Server, file: RemoteFile, waits: list[float]) -> None:
    server.always = Misbehaviour(status=429, headers=(("Retry-After", "3600"),))
    with pytest.raises(DataUnavailable, match="429 Too Many Requests and asks to wait 3600 s"):
        fetch_all([file])
    assert (len(server.asked), waits) == (1, [])


def test_a_server_that_fails_for_ever_is_given_up_after_a_few_tries(server: Server, file: RemoteFile) -> None:
    server.always = Misbehaviour(status=500)
    with pytest.raises(DataUnavailable, match="500"):
        fetch_all([file])
    assert len(server.asked) == download.TRIES
    assert names(file) == []


def test_what_arrived_before_giving_up_is_carried_on_the_next_time(server: Server, file: RemoteFile) -> None:
    server.always = Misbehaviour(drop_after=40_000)
    with pytest.raises(DataUnavailable, match="connection was lost"):
        fetch_all([file])
    assert names(file) == ["file.bin.part"]
    assert part_of(file).read_bytes() == CONTENT[: 40_000 * download.TRIES]
    server.always = Misbehaviour()
    fetch_all([file])
    assert_fetched(file)
    assert server.ranges[-1] == f"bytes={40_000 * download.TRIES}-"


def test_a_server_that_drops_and_ignores_ranges_is_given_up_too(server: Server, file: RemoteFile) -> None:
    server.always = replace(DROPPED_HALFWAY, ignore_range=True)
    with pytest.raises(DataUnavailable):
        fetch_all([file])
    assert len(server.asked) == download.TRIES
    assert not file.path.exists()


def test_a_silent_server_is_left_and_asked_again(
    server: Server, file: RemoteFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "TIMEOUT_SECONDS", 0.3)
    server.next = [Misbehaviour(stall_after=HALF), Misbehaviour(stall_after=0)]
    fetch_all([file])
    assert_fetched(file)
    assert server.ranges[2] is not None


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (bytes(len(CONTENT)), "SHA-256"),
        (CONTENT + b"!", f"size is {len(CONTENT) + 1}, not {len(CONTENT)}"),
        (CONTENT[:-1], f"size is {len(CONTENT) - 1}, not {len(CONTENT)}"),
        (b"<html>please log in</html>", "size is 26"),
        (b"", "size is 0"),
    ],
    ids=["other bytes", "longer", "shorter", "a page", "nothing"],
)
def test_another_file_is_refused_and_nothing_of_it_kept(
    server: Server, file: RemoteFile, body: bytes, complaint: str
) -> None:
    server.files["/folder/file.bin"] = body
    server.always = Misbehaviour() if body else NOTHING
    with pytest.raises(CorruptData, match=complaint) as caught:
        fetch_all([file])
    assert "import" in str(caught.value.hint)
    assert names(file) == []
    assert len(server.asked) == 1


def test_a_page_in_place_of_the_rest_does_not_cost_what_was_there(server: Server, file: RemoteFile) -> None:
    part_of(file, CONTENT[:1234])
    server.next = [Misbehaviour(body=b"<html>please log in</html>", ignore_range=True)]
    with pytest.raises(CorruptData):
        fetch_all([file])
    fetch_all([file])
    assert server.ranges[-1] == "bytes=1234-"
    assert_fetched(file)


def test_a_server_that_does_not_stop_is_refused_as_soon_as_it_is_too_much(
    server: Server, file: RemoteFile
) -> None:
    server.always = Misbehaviour(body=CONTENT * 50, announced=False)
    reported: list[int] = []
    with pytest.raises(CorruptData, match="over 200000, not 200000 bytes"):
        fetch_all([file], lambda done, _: reported.append(done))
    assert max(reported) <= len(CONTENT)
    assert names(file) == []


def test_an_answer_without_a_length_is_taken_if_it_is_the_file(server: Server, file: RemoteFile) -> None:
    server.always = Misbehaviour(announced=False)
    fetch_all([file])
    assert_fetched(file)


def test_nobody_at_the_address_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_what_is_no_web_address_is_a_mistake_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("http_proxy", "")
    with pytest.raises(UsageError, match="no web address"):
        fetch_all([RemoteFile(url, tmp_path / "file.bin", 1, "")])


def test_the_proxy_of_the_environment_is_used(
    server: Server, file: RemoteFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("no_proxy")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("http_proxy", server.address)
    server.files["http://far.invalid/file.bin"] = CONTENT
    fetch_all([replace(file, url="http://far.invalid/file.bin")])
    assert_fetched(file)


def test_two_downloads_at_once_do_not_disturb_each_other(server: Server, file: RemoteFile) -> None:
    part_of(file, CONTENT[:1234])
    server.always = Misbehaviour(drop_after=70_000)
    both = threading.Barrier(2)

    def one(_: int) -> None:
        both.wait()
        fetch_all([file])

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(one, range(2)))
    assert_fetched(file)


def test_what_a_killed_download_left_is_carried_on_and_what_a_living_one_writes_is_left_alone(
    server: Server, file: RemoteFile
) -> None:
    killed, living = (file.path.with_name(f"file.bin.{name}.part") for name in ("aaa", "bbb"))
    part_of(file, CONTENT[:10])
    killed.write_bytes(CONTENT[:4321])
    living.write_bytes(CONTENT[:9999])
    long_ago = time.time() - 2 * download.ABANDONED_SECONDS
    os.utime(killed, (long_ago, long_ago))
    fetch_all([file])
    assert server.ranges == ["bytes=4321-"]
    assert names(file) == ["file.bin", living.name]
    assert living.read_bytes() == CONTENT[:9999]


def test_an_interrupted_download_leaves_no_file_but_a_part(server: Server, file: RemoteFile) -> None:
    def interrupt(done: int, _total: int) -> None:
        if done > HALF:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch_all([file], interrupt)
    assert names(file) == ["file.bin.part"]
    fetch_all([file])
    assert_fetched(file)
    assert server.ranges[1] is not None


def test_a_folder_that_cannot_be_written_is_told_with_its_place(server: Server, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("in the way")
    with pytest.raises(DataUnavailable, match="cannot be stored in") as caught:
        fetch_all([remote(server, tmp_path / "taken" / "file.bin")])
    assert "FEWPARSE_DATA" in str(caught.value.hint)


@given(
    st.one_of(st.binary(max_size=50), st.integers(0, len(CONTENT)).map(lambda end: CONTENT[:end])),
    st.lists(
        st.builds(
            Misbehaviour,
            status=st.sampled_from([None, None, None, 416, 503]),
            drop_after=st.integers(0, len(CONTENT)),
            ignore_range=st.booleans(),
            announced=st.booleans(),
            shift=st.integers(0, 1),
        ),
        max_size=download.TRIES - 1,
    ),
)
@settings(max_examples=60)
def test_whatever_was_there_and_whatever_happens_the_file_is_whole_or_not_there(
    left: bytes, faults: list[Misbehaviour]
) -> None:
    with pytest.MonkeyPatch.context() as patch, serving() as server, TemporaryDirectory() as folder:
        patch.setenv("no_proxy", "*")
        patch.setattr(time, "sleep", lambda _: None)
        server.files["/folder/file.bin"] = CONTENT
        server.next = list(faults)
        file = remote(server, Path(folder) / "file.bin")
        part_of(file, left)
        try:
            fetch_all([file])
        except DataUnavailable:
            assert not file.path.exists()
            assert any(fault.status == 416 for fault in faults)
            server.next = []
            fetch_all([file])
        assert_fetched(file)
