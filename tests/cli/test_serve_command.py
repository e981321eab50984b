"""`fewparse serve` as a process: its address, its refusals, and its orderly end."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from fewparse.serve.server import open_socket
from support.cli_runner import fewparse, start_process
from support.serving import PROGRAM, UTTERANCE


@contextmanager
def server() -> Iterator[tuple["subprocess.Popen[bytes]", str]]:
    """Yield a process that serves the calendar, and its address; the process is ended if the test fails."""
    with start_process("serve", "calendar", "--port", "0") as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline().decode().strip()
            assert line.startswith("Serving calendar at "), line
            yield process, line.partition(" at ")[2]
        finally:
            process.kill()


def is_refused(url: str) -> bool:
    try:
        return httpx2.get(f"{url}readyz").status_code == 503
    except httpx2.ConnectError:
        return True


def test_it_finishes_a_stream_after_sigterm_and_refuses_new_requests() -> None:
    with server() as (process, url):
        events = []
        with httpx2.stream("POST", f"{url}v1/parse/stream", json={"utterance": UTTERANCE}, timeout=60) as response:
            for line in response.iter_lines():
                if line.startswith("event: "):
                    events.append(line.removeprefix("event: "))
                if events == ["Queued", "Started", "Prompted"] and line == "":
                    process.send_signal(signal.SIGTERM)
                    deadline = time.monotonic() + 30
                    while not is_refused(url):
                        assert time.monotonic() < deadline
                if line.startswith("data: ") and events[-1] == "Parsed":
                    assert json.loads(line.removeprefix("data: "))["program"] == PROGRAM
        assert events[-1] == "Parsed"
        assert process.wait(30) in (0, -signal.SIGTERM)
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_a_port_in_use_is_an_error_before_anything_is_loaded() -> None:
    with open_socket("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        ended = fewparse("serve", "calendar", "--port", str(port))
    assert ended.code == 2
    assert f"the port {port} of 127.0.0.1 cannot be used" in ended.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["calender"], "Did you mean calendar"),
        (["calendar", "--host", "0.0.0.0"], "there is no API key"),
        (["calendar", "--host", "no.such.host.invalid", "--api-key-file", "KEYS"], "is not known"),
        (["calendar", "--api-key-file", "missing"], "missing"),
        (["calendar", "--api-key-file", "EMPTY"], "no API key"),
        (["calendar", "--api-key-file", "SHORT"], "at least 16"),
        (["calendar", "--model", "nothing"], "unknown model"),
        (["calendar", "--base-url", "http://x"], "--base-url is for a model behind a server"),
        (["calendar", "calendar"], "the same name"),
    ],
)
def test_mistakes_are_explained(arguments: list[str], words: str, tmp_path: Path) -> None:
    texts = {"KEYS": "k" * 20 + "\n", "EMPTY": "# none\n", "SHORT": "hidden\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    ended = fewparse(
        "serve", *[str(tmp_path / each) if each in texts else each for each in arguments], "--port", "0"
    )
    assert ended.code != 0
    assert words in ended.err
    assert "hidden" not in ended.err.replace("SHORT", "")
