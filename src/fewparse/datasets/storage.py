"""The data folder, and the normal form in which every dataset is stored there.

Each domain of a dataset has one folder, <data>/<domain name>, with at least three files:

examples.jsonl   the training examples, in their official order
test.jsonl       the test examples
manifest.json    size and SHA-256 of every file

A folder may have data_notes.txt, with what reports should say about the data, one note per line. Further files are
described in the module of their dataset.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from platformdirs import user_data_path

from fewparse.datasets.manifest import MANIFEST, Manifest, find_damage, read_manifest, to_manifest
from fewparse.errors import DataError, DataUnavailable, SourceError
from fewparse.files import exists, os_reason, read_bytes, read_text, user_path
from fewparse.limits import SETTINGS_BYTES
from fewparse.locks import Locked, file_lock
from fewparse.replacement import needs_recovery, recover, replace_files, sibling

TRAIN, TEST, DATA_NOTES = "examples.jsonl", "test.jsonl", "data_notes.txt"
LOCK_SECONDS = 60.0
"""How long to wait for another process that stores the same dataset."""
CHOOSE_ANOTHER = "Choose a writable folder with free space: --data DIR, or set FEWPARSE_DATA."


@dataclass(frozen=True)
class StoredDomain:
    """A domain in the data folder: its name, its numbers of examples, its folder, and counts of optional files.

    `damage` is what is wrong with its files, if anything; the numbers are then 0. `verified` is false if an
    earlier version stored it, without a manifest. `data_notes` is what reports should say about the data.
    """

    domain: str
    train: int
    test: int
    path: Path
    others: tuple[tuple[str, int], ...] = ()
    damage: str | None = None
    verified: bool = True
    data_notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ImportResult:
    """The domains that a download or an import has stored; `notes` are messages for the user."""

    stored: tuple[StoredDomain, ...]
    notes: tuple[str, ...] = ()


def data_folder(chosen: Path | None = None) -> Path:
    """Return the folder of all datasets: the one chosen, `FEWPARSE_DATA`, or the user's data directory."""
    from_environment = os.environ.get("FEWPARSE_DATA")
    given = chosen or from_environment
    return user_path(given) if given else user_data_path("fewparse")


@contextmanager
def dataset_lock(folder: Path) -> Iterator[None]:
    """Exclude other processes from storing the dataset of a folder.

    Raises `DataUnavailable` if another process stores it for long, or the folder cannot be written.
    """
    with ExitStack() as stack:
        try:
            path = sibling(folder, "lock")
            path.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(file_lock(path, LOCK_SECONDS))
        except Locked as error:
            message = f"another process stores data in {folder}: {error.message}"
            raise DataUnavailable(message, "Wait for its end, then try again.") from None
        except (OSError, ValueError) as error:
            raise not_writable(folder, error) from None
        yield


def write_files(
    files: Mapping[str, bytes], folder: Path, domains: Iterable[str] = (".",), outdated: Iterable[str] = ()
) -> None:
    """Write files into the folder of a dataset, and delete the outdated ones: all or nothing.

    Files are given by their paths relative to the folder, and so are the folders of its domains, which get a
    manifest. The caller holds the lock. Raises `DataUnavailable` if the folder cannot be written.
    """
    outdated = set(outdated)
    manifests: dict[str, bytes] = {}
    try:
        recover(folder)
        for domain in domains:
            own, old = within(domain, files), within(domain, dict.fromkeys(outdated, b""))
            manifests[(PurePosixPath(domain) / MANIFEST).as_posix()] = to_manifest(
                own, earlier_manifest(folder / domain), old
            )
        replace_files(folder, {**files, **manifests}, outdated)
    except (OSError, ValueError) as error:
        raise not_writable(folder, error) from None


def within(domain: str, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of a domain's folder by their paths relative to it."""
    paths = ((PurePosixPath(name), content) for name, content in files.items())
    return {p.relative_to(domain).as_posix(): content for p, content in paths if p.is_relative_to(domain)}


def earlier_manifest(folder: Path) -> Manifest:
    """Return the entries of the files that a domain has already; none if it has no manifest or a damaged one."""
    try:
        entries = read_manifest(folder) or {}
    except DataError:
        return {}
    return {name: entry for name, entry in entries.items() if os.path.isfile(folder / name)}


def to_jsonl(objects: Iterable[Mapping[str, Any]]) -> bytes:
    """Serialise objects as JSON lines; equal objects give equal bytes."""
    return "".join(json.dumps(o, ensure_ascii=False) + "\n" for o in objects).encode("utf-8")


def to_data_notes(notes: Iterable[str]) -> bytes:
    """Return the content of data_notes.txt."""
    return "".join(f"{note}\n" for note in notes).encode("utf-8")


def read_data_notes(path: Path) -> tuple[str, ...]:
    """Return the notes of data_notes.txt; none if there is no such file. Raises `DataError`."""
    if not exists(path):
        return ()
    return tuple(filter(None, read_text(path, DataError, SETTINGS_BYTES).split("\n")))


def find_stored(
    domain: str, folder: Path, required: Sequence[str] = (), optional: Sequence[str] = ()
) -> StoredDomain | None:
    """Return a domain whose folder has the examples and all required files, or is damaged; else None.

    All files are read, and compared with the manifest. Raises `DataUnavailable` if the folder cannot be read.
    """
    try:
        manifest = read_manifest(folder)
        damage = None if manifest is None else find_damage(folder, manifest, thorough=True)
        needed = (TRAIN, TEST, *required)
        if missing := [name for name in needed if damage is None and not os.path.isfile(folder / name)]:
            if manifest is None:
                return None
            damage = f"{missing[0]} is missing"
        if damage is not None:
            return StoredDomain(domain, 0, 0, folder, damage=damage)
        others = [path for name in optional if os.path.isfile(path := folder / name)]
        return StoredDomain(
            domain,
            count_lines(folder / TRAIN),
            count_lines(folder / TEST),
            folder,
            tuple((path.stem, count_lines(path)) for path in others),
            verified=manifest is not None,
            data_notes=read_data_notes(folder / DATA_NOTES),
        )
    except SourceError as error:
        return StoredDomain(domain, 0, 0, folder, damage=error.message)
    except OSError as error:
        raise DataUnavailable(f"{folder} cannot be read: {error.strerror or error}", CHOOSE_ANOTHER) from None


def check_stored(domain: str, folder: Path) -> None:
    """Raise `DataUnavailable` if the files of a stored domain are not those of its manifest, by a quick check."""
    try:
        manifest = read_manifest(folder)
        damage = None if manifest is None else find_damage(folder, manifest, thorough=False)
    except DataError as error:
        damage = error.message
    except OSError as error:
        damage = os_reason(error)
    if damage is not None:
        raise DataUnavailable(f"the data of {domain} in {folder} is damaged: {damage}", store_again(domain))


def store_again(domain: str) -> str:
    """Return how to repair a stored domain."""
    name = domain.partition("/")[0]
    return f"Store it again: fewparse data get {name}, or fewparse data import {name} DIR"


def complete_replacement(folder: Path) -> None:
    """Complete the replacement of a dataset's folder that was interrupted, if it is missing because of that."""
    if needs_recovery(folder):
        with dataset_lock(folder):
            try:
                recover(folder)
            except OSError as error:
                raise not_writable(folder, error) from None


def count_lines(path: Path) -> int:
    """Return the number of examples in a JSON lines file."""
    return read_bytes(path, DataError).count(b"\n")


def not_writable(folder: Path, error: OSError | ValueError) -> DataUnavailable:
    """Return the error for a folder into which files cannot be written."""
    return DataUnavailable(f"the data cannot be stored in {folder}: {os_reason(error)}", CHOOSE_ANOTHER)
