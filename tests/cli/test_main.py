"""The command line as a whole: errors of the operating system and defects are messages."""

import subprocess
from pathlib import Path

import pytest

from fewparse.cli import main, parse
from fewparse.cli.console import DEFECT, MAX_LINE_BYTES
from support.cli_runner import COMMAND, fewparse


@pytest.mark.parametrize("arguments", [["--version"], ["data", "path"], ["execute", "calendar"]])
def test_a_full_disk_under_standard_output_is_a_message(arguments: list[str]) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [COMMAND, *arguments],
            input=b"(what (meeting today))\n",
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
        )
    assert done.returncode == 1
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_reader_that_closes_the_pipe_ends_the_command_quietly() -> None:
    process = subprocess.Popen(
        [COMMAND, "execute", "calendar"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    _, err = process.communicate(b"(what (meeting today))\n" * 50, timeout=60)
    assert process.returncode == 1
    assert err == b""


@pytest.mark.parametrize("closed", [">&-", "<&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_are_no_defect(closed: str) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f'"{COMMAND}" execute calendar {closed}'],
        input=b"(nonsense\n",
        timeout=60,
        capture_output=True,
    )
    assert done.returncode == (0 if "<&-" in closed else 1)
    assert b"Traceback" not in done.stderr


def test_a_defect_is_a_message_with_a_way_to_report_it(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a mistake of ours")

    monkeypatch.setattr(parse, "prepare", fail)
    monkeypatch.setattr("sys.argv", ["fewparse", "parse", "calendar", "hello"])
    with pytest.raises(SystemExit) as ended:
        main.run()
    shown = capfd.readouterr().err
    assert ended.value.code == DEFECT
    assert "a defect in fewparse: ZeroDivisionError: a mistake of ours" in shown
    assert "FEWPARSE_TRACEBACK=1" in shown
    assert "Traceback" not in shown
    monkeypatch.setenv("FEWPARSE_TRACEBACK", "1")
    with pytest.raises(SystemExit):
        main.run()
    assert "Traceback" in capfd.readouterr().err


def test_a_line_beyond_the_limit_is_refused_and_the_next_one_is_read() -> None:
    lines = b"x" * (3 * MAX_LINE_BYTES) + b"\n(list (rooms))\n"
    result = fewparse("execute", "calendar", stdin=lines)
    first, second = result.out.splitlines()
    assert first == f"error: the line has more than {MAX_LINE_BYTES:,} bytes"
    assert not second.startswith("error: the line")


def test_escape_sequences_of_an_utterance_do_not_reach_the_terminal() -> None:
    result = fewparse("parse", "calendar", "\x1b]0;owned\x07list the rooms", "--decoder", "greedy")
    assert "\x1b" not in result.out + result.err
    assert "\\x1b]0;owned\\x07" in result.out
