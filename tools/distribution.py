"""Build the distributions of fewparse, and install them in environments of their own."""

import os
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROXIES = ("http_proxy", "https_proxy", "all_proxy")


def build(folder: Path) -> Path:
    """Write the source distribution, and the wheel that is built from it, to a folder; return the wheel."""
    run([sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)])
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(folder: Path, *requirements: str) -> Path:
    """Make an environment with these packages in a folder; return the folder of its commands."""
    venv.create(folder, with_pip=True)
    commands = folder / "bin"
    run([str(commands / "python"), "-m", "pip", "install", "--quiet", *requirements], env=environment(commands))
    return commands


def environment(commands: Path, **variables: str) -> dict[str, str]:
    """Return the variables of this process for an environment, without what makes Python import other packages."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {
        **inherited,
        "PATH": f"{commands}:{os.environ['PATH']}",
        "VIRTUAL_ENV": str(commands.parent),
        **variables,
    }


def offline() -> dict[str, str]:
    """Return variables with which neither this project nor pip reaches a network."""
    nowhere = "http://127.0.0.1:9"
    proxies = {variable: nowhere for name in PROXIES for variable in (name, name.upper())}
    return {**proxies, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_CONFIG_FILE": os.devnull}


def run(command: list[str], env: Mapping[str, str] | None = None, cwd: Path | None = None) -> str:
    """Run a command and return its output; exit with its messages if it fails."""
    done = subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\nexit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout
