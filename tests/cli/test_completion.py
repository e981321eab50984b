"""Shell completion, in a real bash, and `python -m fewparse`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fewparse
from support.cli_runner import COMMAND

BASH = shutil.which("bash")
COMPLETE = """
. "$HOME/.bashrc"
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_fewparse_completion fewparse
printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.mark.skipif(BASH is None, reason="there is no bash")
def test_the_installed_completion_completes_commands_options_and_values(tmp_path: Path) -> None:
    env = {**os.environ, "HOME": str(tmp_path), "PATH": f"{Path(COMMAND).parent}:{os.environ['PATH']}"}

    def bash(script: str, *arguments: str) -> str:
        command = ["bash", "-c", script, "bash", *arguments]
        ended = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    assert "bash completion installed" in bash("fewparse --install-completion && true")  # bash stays the parent
    assert bash(COMPLETE, "fewparse", "gra").split() == ["grammar"]
    assert "--decoder" in bash(COMPLETE, "fewparse", "parse", "calendar", "--dec").split()
    assert bash(COMPLETE, "fewparse", "parse", "calendar", "--decoder", "spec").split() == ["speculative"]
    assert bash(COMPLETE, "fewparse", "check", "cal").split() == ["calendar"]
    assert bash(COMPLETE, "fewparse", "check", "./no-such-folder").split() == []


def test_the_package_can_be_run_as_a_module() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "fewparse", "--version"], capture_output=True, text=True, check=True
    ).stdout
    assert shown == f"fewparse {fewparse.__version__}\n"
