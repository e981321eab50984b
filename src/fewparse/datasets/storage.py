"""The data folder, and the normal form in which every dataset is stored there.

Each domain of a dataset has one folder, <data>/<domain name>, with at least two files:

examples.jsonl   the training examples, in their official order
test.jsonl       the test examples

Further files are described in the module of their dataset.
"""

import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_data_path

from fewparse.errors import DataUnavailable

TRAIN, TEST = "examples.jsonl", "test.jsonl"
CHOOSE_ANOTHER = "Choose a writable folder with free space: --data DIR, or set FEWPARSE_DATA."


@dataclass(frozen=True)
class StoredDomain:
    """A domain in the data folder: its name, its numbers of examples, its folder, and counts of optional files."""

    domain: str
    train: int
    test: int
    path: Path
    others: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class ImportResult:
    """The domains that a download or an import has stored; `notes` are messages for the user."""

    stored: tuple[StoredDomain, ...]
    notes: tuple[str, ...] = ()


def data_folder(chosen: Path | None = None) -> Path:
    """Return the folder of all datasets: the one chosen, `FEWPARSE_DATA`, or the user's data directory."""
    from_environment = os.environ.get("FEWPARSE_DATA")
    return chosen or (Path(from_environment) if from_environment else user_data_path("fewparse"))


def write_files(files: Mapping[str, bytes], folder: Path, outdated: Iterable[str] = ()) -> None:
    """Write files, given by their relative paths, into a folder, and delete the outdated ones.

    All files are written to a temporary folder before the first one is moved, so that a failure changes nothing.
    Raises `DataUnavailable` if the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".writing-") as scratch:
            for name, content in files.items():
                write_synced(Path(scratch) / name, content)
            for name in files:
                (folder / name).parent.mkdir(exist_ok=True)
                os.replace(Path(scratch) / name, folder / name)
        for name in outdated:
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise not_writable(folder, error) from None


def write_synced(path: Path, content: bytes) -> None:
    """Write a file and flush it to the disk."""
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def to_jsonl(objects: Iterable[Mapping[str, str | None]]) -> bytes:
    """Serialise objects as JSON lines; equal objects give equal bytes."""
    return "".join(json.dumps(o, ensure_ascii=False) + "\n" for o in objects).encode("utf-8")


def find_stored(
    domain: str, folder: Path, required: Sequence[str] = (), optional: Sequence[str] = ()
) -> StoredDomain | None:
    """Return a domain if its folder has the examples and all required files, else None.

    Raises `DataUnavailable` if the folder cannot be read.
    """
    try:
        if not all((folder / name).is_file() for name in (TRAIN, TEST, *required)):
            return None
        others = [path for name in optional if (path := folder / name).is_file()]
        return StoredDomain(
            domain,
            count_lines(folder / TRAIN),
            count_lines(folder / TEST),
            folder,
            tuple((path.stem, count_lines(path)) for path in others),
        )
    except OSError as error:
        raise DataUnavailable(f"{folder} cannot be read: {error.strerror or error}", CHOOSE_ANOTHER) from None


def count_lines(path: Path) -> int:
    """Return the number of examples in a JSON lines file."""
    return path.read_bytes().count(b"\n")


def not_writable(folder: Path, error: OSError) -> DataUnavailable:
    """Return the error for a folder into which files cannot be written."""
    return DataUnavailable(f"the data cannot be stored in {folder}: {error.strerror or error}", CHOOSE_ANOTHER)
