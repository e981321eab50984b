"""The user's data folder, and the one form in which every dataset is kept there.

A domain of a dataset is a folder, <data>/<dataset>/<domain>; that of a dataset with only one is <data>/<dataset>.

examples.jsonl   the training examples, in their official order
test.jsonl       the test examples

Beside these lies what else a dataset has: see there.
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
CHOOSE_ANOTHER = "Choose a folder that can be written and has space: --data DIR, or set FEWPARSE_DATA."


@dataclass(frozen=True)
class Kept:
    """A domain that is in the data folder, with its numbers of examples; `others` are those of further files."""

    domain: str
    train: int
    test: int
    path: Path
    others: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What fetching or importing a dataset came to; `notes` are for the user to read."""

    kept: tuple[Kept, ...]
    notes: tuple[str, ...] = ()


def data_folder(chosen: Path | None = None) -> Path:
    """Where datasets are kept: the folder chosen, `FEWPARSE_DATA` or the user's data directory."""
    named = os.environ.get("FEWPARSE_DATA")
    return chosen or (Path(named) if named else user_data_path("fewparse"))


def keep(files: Mapping[str, bytes], folder: Path, outdated: Iterable[str] = ()) -> None:
    """Write files, by their paths, into a dataset's folder, and take away those that they make outdated.

    All are written to a scratch folder before the first is moved.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".writing-") as scratch:
            for name, content in files.items():
                write(Path(scratch) / name, content)
            for name in files:
                (folder / name).parent.mkdir(exist_ok=True)
                os.replace(Path(scratch) / name, folder / name)
        for name in outdated:
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise cannot_keep(folder, error) from None


def write(path: Path, content: bytes) -> None:
    """A file that is on the disk when this returns."""
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def as_lines(objects: Iterable[Mapping[str, str | None]]) -> bytes:
    """Objects as JSON, one a line; the same objects always give the same bytes."""
    return "".join(json.dumps(o, ensure_ascii=False) + "\n" for o in objects).encode("utf-8")


def kept_domain(domain: str, folder: Path, needed: Sequence[str] = (), others: Sequence[str] = ()) -> Kept | None:
    """A domain, if its folder has the examples and all files that it needs; `others` it may have."""
    try:
        if not all((folder / name).is_file() for name in (TRAIN, TEST, *needed)):
            return None
        more = [path for name in others if (path := folder / name).is_file()]
        return Kept(
            domain,
            count_lines(folder / TRAIN),
            count_lines(folder / TEST),
            folder,
            tuple((path.stem, count_lines(path)) for path in more),
        )
    except OSError as error:
        raise DataUnavailable(f"{folder} cannot be read: {error.strerror or error}", CHOOSE_ANOTHER) from None


def count_lines(path: Path) -> int:
    """The number of examples in a file of the normal form."""
    return path.read_bytes().count(b"\n")


def cannot_keep(folder: Path, error: OSError) -> DataUnavailable:
    """The complaint about a folder that takes no files."""
    return DataUnavailable(f"the data cannot be kept in {folder}: {error.strerror or error}", CHOOSE_ANOTHER)
