"""The commands, the Python and the files of the documents work, in order, and print what the documents show."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from document import Block, blocks_of
from support.cli_runner import COMMAND, fewparse, shared_model
from terminal_picture import COMMANDS, PICTURE, lines_of
from test_documents import DOCUMENTS, ROOT, SHELL_OPERATORS, simple_commands

RUN = {"console", "python"}
GUIDES = ROOT / "docs" / "guides"
"""What guides show is run by tests of their own."""


def runnable(document: Path) -> list[Block]:
    """Return the blocks of a document that are run, written, or shown as output."""
    return [block for block in blocks_of(document) if block.exempt is None]


@pytest.mark.parametrize(
    "document",
    [d for d in DOCUMENTS if d.parent != GUIDES and RUN & {block.language for block in runnable(d)}],
    ids=lambda d: str(d.relative_to(ROOT)),
)
def test_what_a_document_shows_works_in_order(
    document: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    blocks = runnable(document)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(COMMAND).parent}:{os.environ['PATH']}")
    for dataset in ("geoquery", "overnight", "smcalflow"):
        if any(dataset in block.body for block in blocks if block.language in RUN):
            monkeypatch.setenv("FEWPARSE_DATA", str(request.getfixturevalue(f"{dataset}_data")))
    names: dict[str, object] = {"__name__": document.stem}
    output = ""
    for block in blocks:
        if block.title is not None:
            path = tmp_path / block.title
            path.parent.mkdir(exist_ok=True)
            path.write_text(block.body, encoding="utf-8")
        elif block.language == "console":
            output = "".join(map(run_line, block.body.replace("\\\n", " ").splitlines()))
            assert output.strip()
        elif block.language == "python":
            with shared_model():
                exec(compile(block.body, f"{document.name}", "exec"), names)
            output = capfd.readouterr().out
        elif block.language == "text" and block.adjacent:
            check_output(block.body, output)


def check_output(shown: str, output: str) -> None:
    """Check that a document shows the output of its commands; a line `...` stands for any others."""
    lines = [line.rstrip() for line in output.splitlines()]
    for part in shown.split("...\n"):
        expected = part.splitlines()
        found = (i for i in range(len(lines)) if lines[i : i + len(expected)] == expected)
        start = next(found, None)
        assert start is not None, f"the output has no\n{part}\nbut\n{output}"
        lines = lines[start + len(expected) :]


def run_line(line: str) -> str:
    """Run a line and return its output: `fewparse` in this process, any line with other commands by bash."""
    operators = set(shlex.shlex(line, posix=True, punctuation_chars=True)) & SHELL_OPERATORS
    stages = list(simple_commands(line))
    if not operators <= {"|"} or not {stage[0] for stage in stages} <= {"echo", "fewparse"}:
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", line], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout
    output = ""
    for name, *arguments in stages:
        if name == "echo":
            output = " ".join(arguments) + "\n"
        else:
            ended = fewparse(*arguments, stdin=output)
            assert ended.code == 0, ended.err
            output = ended.out
    return output


def test_the_picture_of_a_terminal_shows_what_the_commands_print() -> None:
    shown = lines_of(PICTURE.read_text(encoding="utf-8"))
    printed = [[f"$ {command}", *fewparse(*shlex.split(command)[1:]).out.splitlines()] for command in COMMANDS]
    assert shown == [line for lines in printed for line in lines]
