"""The user's data folder, and the one form in which every dataset is kept there.

<data>/<dataset>/<domain>/examples.jsonl   the training examples, in their official order
test.jsonl       the test examples
language.jsonl   every canonical utterance with its program, once
"""

import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_data_path

from fewparse.errors import DataUnavailable
from fewparse.example import Example

TRAIN, TEST, LANGUAGE = "examples.jsonl", "test.jsonl", "language.jsonl"
CHOOSE_ANOTHER = "Choose a folder that can be written and has space: --data DIR, or set FEWPARSE_DATA."


@dataclass(frozen=True)
class Splits:
    """The examples of one domain in their official order."""

    train: tuple[Example, ...]
    test: tuple[Example, ...]


@dataclass(frozen=True)
class Kept:
    """A domain that is in the data folder, with its numbers of examples."""

    domain: str
    train: int
    test: int
    path: Path


@dataclass(frozen=True)
class Outcome:
    """What fetching or importing a dataset came to; `notes` are for the user to read."""

    kept: tuple[Kept, ...]
    notes: tuple[str, ...] = ()


def data_folder(chosen: Path | None = None) -> Path:
    """Where datasets are kept: the folder chosen, `FEWPARSE_DATA` or the user's data directory."""
    named = os.environ.get("FEWPARSE_DATA")
    return chosen or (Path(named) if named else user_data_path("fewparse"))


def keep(domains: Mapping[str, Splits], folder: Path) -> tuple[Kept, ...]:
    """Write domains into a dataset's folder. All are written to a scratch folder before the first is moved."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".writing-") as scratch:
            for domain, splits in domains.items():
                write_domain(splits, Path(scratch) / domain)
            for domain in domains:
                (folder / domain).mkdir(exist_ok=True)
                for name in (TRAIN, TEST, LANGUAGE):
                    os.replace(Path(scratch) / domain / name, folder / domain / name)
    except OSError as error:
        raise cannot_keep(folder, error) from None
    return tuple(
        Kept(domain, len(splits.train), len(splits.test), folder / domain) for domain, splits in domains.items()
    )


def write_domain(splits: Splits, folder: Path) -> None:
    """The three files of a domain; the same examples always give the same bytes."""
    pairs = dict.fromkeys((e.canonical, e.program) for e in (*splits.train, *splits.test))
    folder.mkdir()
    for name, examples in ((TRAIN, splits.train), (TEST, splits.test)):
        fields = ({"utterance": e.utterance, "canonical": e.canonical, "program": e.program} for e in examples)
        write_lines(folder / name, fields)
    write_lines(folder / LANGUAGE, ({"canonical": c, "program": p} for c, p in pairs))


def write_lines(path: Path, objects: Iterable[Mapping[str, str | None]]) -> None:
    """Objects as JSON, one a line, on the disk when this returns."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(o, ensure_ascii=False) + "\n" for o in objects)
        file.flush()
        os.fsync(file.fileno())


def kept_domains(domains: Sequence[str], folder: Path) -> tuple[Kept, ...]:
    """Those of the domains that a dataset's folder has, all three files."""
    try:
        return tuple(
            Kept(
                domain, count_lines(folder / domain / TRAIN), count_lines(folder / domain / TEST), folder / domain
            )
            for domain in domains
            if all((folder / domain / name).is_file() for name in (TRAIN, TEST, LANGUAGE))
        )
    except OSError as error:
        raise DataUnavailable(f"{folder} cannot be read: {error.strerror or error}", CHOOSE_ANOTHER) from None


def count_lines(path: Path) -> int:
    """The number of examples in a file of the normal form."""
    return path.read_bytes().count(b"\n")


def cannot_keep(folder: Path, error: OSError) -> DataUnavailable:
    """The complaint about a folder that takes no files."""
    return DataUnavailable(f"the data cannot be kept in {folder}: {error.strerror or error}", CHOOSE_ANOTHER)
