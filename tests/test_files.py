"""Reading files of every kind with limits, and replacing files atomically."""

import gzip
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest.mock import patch

import pytest

from fewparse.errors import DataError, DomainError, UsageError
from fewparse.files import (
    atomic_replacement,
    decompress,
    exists,
    file_sha256,
    parse_json_line,
    parse_toml,
    read_bytes,
    read_lines,
    read_text,
    user_path,
    write_atomically,
)
from fewparse.limits import FILE_BYTES, LIMITS, SETTINGS_BYTES, Limit
from support.faults import FAULTS, Fault, Killed, faulty_files

PATH = Path("file")


@contextmanager
def a_socket(path: Path) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        yield


def no_permission(path: Path) -> None:
    path.write_text("secret")
    path.chmod(0)


def link_to_itself(path: Path) -> None:
    path.symlink_to(path)


def sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


KINDS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a folder": (Path.mkdir, "not a regular file but a folder"),
    "a pipe": (os.mkfifo, "not a regular file but a pipe"),
    "a link to itself": (link_to_itself, "cannot be read: Too many levels of symbolic links"),
    "a broken link": (lambda path: path.symlink_to("nowhere"), "cannot be read: No such file or directory"),
    "missing": (lambda path: None, "cannot be read: No such file or directory"),
    "a huge sparse file": (sparse, "larger than 512,000,000 bytes"),
    "a link to a device": (lambda path: path.symlink_to("/dev/zero"), "not a regular file but a device"),
}


@pytest.mark.parametrize(("make", "message"), KINDS.values(), ids=KINDS)
def test_only_regular_files_are_read(make: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    make(path)
    with pytest.raises(DataError, match=f"file: {message}"):
        read_bytes(path, DataError)
    with pytest.raises(DomainError, match="file: "):
        read_text(path, DomainError)


def test_a_socket_is_not_read(tmp_path: Path) -> None:
    with a_socket(tmp_path / "s"), pytest.raises(DataError, match="not a regular file but a socket"):
        read_bytes(tmp_path / "s", DataError)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_permission_is_an_error_with_the_reason(tmp_path: Path) -> None:
    no_permission(tmp_path / "file")
    with pytest.raises(DataError, match="cannot be read: Permission denied"):
        read_bytes(tmp_path / "file", DataError)


ODD_PATHS = ["a\0b", "x" * 300, "\ud800", "/proc/self/mem", "/dev/zero", "/dev/tty", "", "a/" * 3000]


@pytest.mark.parametrize("name", ODD_PATHS)
def test_odd_paths_are_errors(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError):
        read_bytes(tmp_path / name, DataError)


def test_the_files_of_proc_have_no_size_and_are_read_to_the_limit() -> None:
    assert read_bytes(Path("/proc/self/status"), DataError).startswith(b"Name:")
    with pytest.raises(DataError, match="larger than 10 bytes"):
        read_bytes(Path("/proc/self/status"), DataError, 10)


def test_a_file_that_becomes_a_pipe_before_it_is_opened_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("text")
    state = os.stat(path)
    path.unlink()
    os.mkfifo(path)
    with patch.object(os, "stat", lambda _: state), pytest.raises(DataError, match="but a pipe"):
        read_bytes(path, DataError)


def test_a_file_that_grows_while_it_is_read_ends_at_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(1000))
    stopping = threading.Event()

    def grow() -> None:
        with path.open("ab") as file:
            while not stopping.is_set() and file.tell() < 50_000_000:
                file.write(bytes(100_000))

    thread = threading.Thread(target=grow)
    thread.start()
    try:
        for _ in range(1000):
            with suppress(DataError):
                assert len(read_bytes(path, DataError, 2_000_000)) <= 2_000_000
    finally:
        stopping.set()
        thread.join()


def test_a_limit_is_named_with_its_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(bytes(11))
    monkeypatch.setenv(SETTINGS_BYTES.variable, "10")
    with pytest.raises(DataError, match=f"larger than 10 bytes\n.*set {SETTINGS_BYTES.variable}"):
        read_bytes(tmp_path / "file", DataError, SETTINGS_BYTES)
    monkeypatch.setenv(SETTINGS_BYTES.variable, "11")
    assert read_bytes(tmp_path / "file", DataError, SETTINGS_BYTES) == bytes(11)
    assert read_bytes(tmp_path / "file", DataError, 11) == bytes(11)


def test_limits_have_different_variables() -> None:
    assert len({limit.variable for limit in LIMITS}) == len(LIMITS)
    assert all(isinstance(limit, Limit) and limit.value == limit.default for limit in LIMITS)


def test_gzip_of_several_members_is_unpacked() -> None:
    assert decompress(gzip.compress(b"one ") + gzip.compress(b"two"), PATH, DataError) == b"one two"
    assert decompress(gzip.compress(b""), PATH, DataError) == b""


def test_no_more_than_the_limit_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = gzip.compress(bytes(1_000_000)) * 3000
    start = time.monotonic()
    with pytest.raises(DataError, match="unpacked larger than 10,000,000 bytes"):
        decompress(bomb, PATH, DataError, 10_000_000)
    monkeypatch.setenv(FILE_BYTES.variable, "1000000")
    with pytest.raises(DataError, match=f"unpacked larger than .*\n.*{FILE_BYTES.variable}"):
        decompress(bomb, PATH, DataError)
    assert time.monotonic() - start < 10


@pytest.mark.parametrize("cut", [1, 5, 10, 15, 20, -1, -5, -8])
def test_a_damaged_gzip_file_is_an_error(cut: int) -> None:
    content = gzip.compress(os.urandom(100), mtime=0)
    with pytest.raises(DataError, match="not a complete gzip file"):
        decompress(content[:cut], PATH, DataError)
    flipped = bytearray(content)
    flipped[cut] ^= 0xFF
    try:
        assert len(decompress(bytes(flipped), PATH, DataError)) == 100, "a byte of the header without a meaning"
    except DataError as error:
        assert "not a complete gzip file" in error.message  # noqa: PT017


@pytest.mark.parametrize(("name", "pack"), [("file.txt", bytes), ("file.gz", gzip.compress)])
def test_lines_are_read_one_by_one_up_to_the_limit(
    name: str, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(pack(b"one\n\ntwo"))
    assert list(read_lines(path, DataError, 8)) == [b"one\n", b"\n", b"two"]
    lines = read_lines(path, DataError, 7)
    assert [next(lines), next(lines)] == [b"one\n", b"\n"]
    with pytest.raises(DataError, match="larger than 7 bytes"):
        next(lines)
    path.write_bytes(pack(b""))
    assert list(read_lines(path, DataError)) == []
    with pytest.raises(DataError, match="cannot be read"):
        next(read_lines(tmp_path / "missing", DataError))


@pytest.mark.parametrize("content", [b"plain text", gzip.compress(b"one\ntwo\n")[:-9]], ids=["plain", "cut"])
def test_lines_of_a_damaged_gzip_file_are_an_error(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file.gz"
    path.write_bytes(content)
    with pytest.raises(DataError, match="not a complete gzip file"):
        list(read_lines(path, DataError))


DEEP_TOML = ["a = " + "[" * 3000, "a = " + "{a=" * 3000, "a." * 3000 + "a = 1", "[" + "a." * 3000]


@pytest.mark.parametrize("source", DEEP_TOML, ids=lambda source: source[:6])
def test_deep_toml_is_an_error_or_a_table(source: str) -> None:
    try:
        parse_toml(source, PATH)
    except DomainError as error:
        assert "TOML" in error.message  # noqa: PT017


@pytest.mark.parametrize("value", ["9" * 5000, "-" + "9" * 5000, "0x" + "f" * 9000])
def test_long_numbers_in_toml_and_json_are_errors_or_values(value: str) -> None:
    try:
        assert parse_toml(f"a = {value}", PATH)["a"]
    except DomainError as error:
        assert "TOML" in error.message  # noqa: PT017
    with pytest.raises(DomainError, match="JSON"):
        parse_json_line(f'{{"a": {value}}}', 7, PATH, DomainError)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "nul", "", "[]", "1"])
def test_a_line_that_is_not_an_object_is_an_error_with_its_number(text: str) -> None:
    with pytest.raises(DomainError, match=r"file:7.*(JSON|object)"):
        parse_json_line(text, 7, PATH, DomainError)


@pytest.mark.parametrize("path", ["a\0", "x" * 5000, "y/" * 5000])
def test_paths_that_no_file_can_have_are_usage_errors(path: str) -> None:
    with pytest.raises(UsageError):
        user_path(path)


def test_the_home_folder_is_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/somewhere")
    assert user_path("~/a") == Path("/somewhere/a")
    assert user_path("~nobody-has-this-name/a") == Path("~nobody-has-this-name/a")


def test_a_path_exists_unless_the_system_says_that_it_does_not(tmp_path: Path) -> None:
    link_to_itself(tmp_path / "loop")
    assert not exists(tmp_path / "none")
    assert not exists(tmp_path / "none" / "below")
    for path in (tmp_path, tmp_path / "loop", tmp_path / ("x" * 300), tmp_path / "a\0b"):
        assert exists(path)


def test_the_hash_of_a_file_needs_no_memory_of_its_size(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    assert file_sha256(tmp_path / "file", DataError).startswith("ba7816bf")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="but a pipe"):
        file_sha256(tmp_path / "pipe", DataError)


@pytest.mark.parametrize("fault", FAULTS)
def test_an_atomic_write_leaves_the_old_content_or_the_new_one(fault: Fault, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with faulty_files(fault) as faults:
        write_atomically(path, b"new")
    for at in range(faults.count):
        path.write_bytes(b"old")
        with suppress(OSError, Killed), faulty_files(fault, at):
            write_atomically(path, b"new")
        assert path.read_bytes() in (b"old", b"new"), at
    write_atomically(path, b"last")
    assert path.read_bytes() == b"last"


def test_temporary_files_of_killed_processes_are_deleted_after_an_hour(tmp_path: Path) -> None:
    abandoned, recent, other = (tmp_path / f"{n}.part" for n in ("f.12-0123abcd", "f.13-0123abcd", "f.txt"))
    for path in (abandoned, recent, other):
        path.touch()
    for path in (abandoned, other):
        os.utime(path, (0, 0))
    write_atomically(tmp_path / "f", b"")
    assert {p.name for p in tmp_path.iterdir()} == {"f", recent.name, other.name}


def test_a_symbolic_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/dev/null")])
def test_folders_and_devices_are_never_replaced(make: Callable[[Path], object], tmp_path: Path) -> None:
    make(tmp_path / "it")
    with pytest.raises(OSError, match="it is "):
        write_atomically(tmp_path / "it", b"")
    assert not (tmp_path / "it").is_file()
    assert Path("/dev/null").is_char_device()


def test_two_threads_that_write_the_same_file_do_not_interfere(tmp_path: Path) -> None:
    with atomic_replacement(tmp_path / "f") as first, atomic_replacement(tmp_path / "f") as second:
        first.write_text("first")
        second.write_text("second")
    assert (tmp_path / "f").read_text() == "first", "the last to end wins"
