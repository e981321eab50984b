"""Run the real command as a user does, in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

COMMAND = str(Path(sys.executable).with_name("fewparse"))
PLAIN = {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "200"}
QUICK = ("--examples", "2", "--decoder", "greedy")
HALL = "turn on the lamp in the hall"


@dataclass(frozen=True)
class Ended:
    """What a command left behind."""

    code: int
    out: str
    err: str


def fewparse(*arguments: str | bytes, stdin: str | bytes = b"", env: Mapping[str, str] | None = None) -> Ended:
    """Run the command to its end. Whatever happens, a user sees no traceback."""
    done = subprocess.run(
        [COMMAND, *arguments],
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        capture_output=True,
        env={**os.environ, **PLAIN, **(env or {})},
        timeout=300,
    )
    ended = Ended(done.returncode, done.stdout.decode(), done.stderr.decode())
    assert "Traceback" not in ended.out + ended.err, ended.err
    return ended


def started(*arguments: str) -> subprocess.Popen[bytes]:
    """The command, running, with pipes to all sides."""
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [COMMAND, *arguments], stdin=pipe, stdout=pipe, stderr=pipe, env={**os.environ, **PLAIN}
    )


def without_model(folder: Path) -> dict[str, str]:
    """An environment in which there are no weights and no way to fetch them."""
    return {
        "FEWPARSE_CACHE": str(folder / "no-models-here"),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": "",
        "PIP_CONFIG_FILE": os.devnull,
    }
