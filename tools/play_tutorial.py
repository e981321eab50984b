"""Play the tutorial literally: in an empty environment, with the wheel that is built from this repository.

Every file of docs/tutorial.md is written and every command is run, in order, in one shell. Each step is printed
with its output and its seconds; a command that fails ends the program.
Run: python tools/play_tutorial.py [--without-tuning].
"""

import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from distribution import ROOT, build, environment
from document import Block, blocks_of

TUTORIAL = ROOT / "docs" / "tutorial.md"
COMMANDS = {"console", "sh"}
STEP = "\x1e"
"""Printed by the shell before each step."""
TUNING = "fewparse tune"


def steps(blocks: list[Block], tuning: bool) -> Iterator[tuple[str, str]]:
    """Yield the title and the script of each step: a file, a block of commands, or a program in Python."""
    for block in blocks:
        if block.title is not None:
            folder, file = shlex.quote(str(Path(block.title).parent)), shlex.quote(block.title)
            yield block.title, f"mkdir -p {folder}\ncat > {file} <<'END OF FILE'\n{block.body}END OF FILE\n"
        elif block.language in COMMANDS:
            if not tuning and TUNING in block.body:
                continue
            yield block.body.strip(), block.body
        elif block.language == "python":
            yield "Python", f"python - <<'END OF FILE'\n{block.body}END OF FILE\n"


def play(script: str, titles: list[str], folder: Path, env: dict[str, str]) -> float:
    """Run the script of all steps in one shell; print the output and the seconds of each; return all seconds."""
    start = before = time.monotonic()
    number = -1
    command = ["bash", "-c", f"set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{script}"]
    with subprocess.Popen(
        command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as shell:
        assert shell.stdout is not None
        for line in shell.stdout:
            if not line.startswith(STEP):
                print(f"    {line}", end="", flush=True)
                continue
            now = time.monotonic()
            if number >= 0:
                print(f"    ({now - before:.0f} s)")
            number, before = number + 1, now
            if number < len(titles):
                print(f"[{number + 1}/{len(titles)}] {titles[number]}", flush=True)
    if shell.returncode:
        sys.exit(f"error: the step failed with exit code {shell.returncode}")
    return time.monotonic() - start


def main(tuning: bool) -> None:
    """Play the tutorial."""
    parts = list(steps(list(blocks_of(TUTORIAL)), tuning))
    marked = [f"printf '{STEP}\\n'\n{script}" for _, script in parts]
    with tempfile.TemporaryDirectory() as scratch:
        wheel = build(Path(scratch) / "dist")
        folder = Path(scratch) / "work"
        folder.mkdir()
        found = " ".join([str(wheel.parent), os.environ.get("PIP_FIND_LINKS", "")])
        env = environment(Path(sys.executable).parent, PIP_FIND_LINKS=found)
        env |= {"FEWPARSE_CONFIG": str(Path(scratch) / "config"), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        env["PATH"] = env["PATH"].partition(":")[2]
        del env["VIRTUAL_ENV"]
        seconds = play("".join([*marked, f"printf '{STEP}\\n'"]), [title for title, _ in parts], folder, env)
    print(f"{len(parts)} steps in {seconds / 60:.1f} minutes{'' if tuning else ', without tuning'}")


if __name__ == "__main__":
    main("--without-tuning" not in sys.argv)
