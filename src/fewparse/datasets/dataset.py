"""The interface of a benchmark dataset: its domains, its published files, and their conversion to the normal form.

A dataset is a package with three files:

domain.toml    the settings of its domains
sources.json   the published files: repository, commit, and the path and checksum of each file, which is its size
               and SHA-256 (`bytes`, `sha256`), or the id of its git blob (`git_blob`), or nothing if neither is
               known; `optional` if the domains can be made without the file
dataset.py     a subclass of `Dataset`, and an instance of it that is listed in `fewparse.datasets.registry`
"""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from fewparse import files
from fewparse.datasets.checksum import Checksum
from fewparse.datasets.download import Progress, RemoteFile, fetch_all
from fewparse.datasets.storage import (
    DATA_NOTES,
    TRAIN,
    ImportResult,
    StoredDomain,
    complete_replacement,
    dataset_lock,
    find_stored,
    write_files,
)
from fewparse.errors import DataError, UsageError
from fewparse.files import decompress, opened, os_reason, user_path

ORIGINAL = "original"
CHECK_FILE = "Check that the file is complete and unchanged, or copy or download it again."
ONLY_ONCE = "Import from a folder that has the file only once."


@dataclass(frozen=True)
class PublishedFile:
    """A file in the repository of a dataset; `size` and `checksum` are None if they are unknown."""

    path: PurePosixPath
    size: int | None
    checksum: Checksum | None
    optional: bool = False

    @staticmethod
    def from_entry(path: str, entry: Mapping[str, Any]) -> "PublishedFile":
        """Return the file of an entry of sources.json."""
        optional = entry.get("optional", False)
        if "git_blob" in entry:
            return PublishedFile(PurePosixPath(path), None, Checksum("git blob id", entry["git_blob"]), optional)
        if "sha256" not in entry:
            return PublishedFile(PurePosixPath(path), None, None, optional)
        return PublishedFile(PurePosixPath(path), entry["bytes"], Checksum("SHA-256", entry["sha256"]), optional)


@dataclass(frozen=True)
class Sources:
    """The published files of a dataset; `base_url` is their repository at one commit."""

    base_url: str
    files: tuple[PublishedFile, ...]

    @property
    def checksums(self) -> dict[str, Checksum]:
        """The checksum of each file by its name, if it is known."""
        return {file.path.name: file.checksum for file in self.files if file.checksum is not None}

    def local_path(self, file: PublishedFile) -> PurePosixPath:
        """Return where a file is downloaded to: its name, in subfolders if other files have the same name."""
        folders = [other.path.parent for other in self.files if other.path.name == file.path.name]
        return file.path.relative_to(os.path.commonpath(folders))

    def is_published(self, path: Path, content: bytes) -> bool:
        """Return False if a published file has this name and another content."""
        expected = self.checksums.get(path.name)
        return expected is None or expected.matches(content)

    def is_published_file(self, path: Path) -> bool:
        """Return the same for the content of the file at this path; it is not read as a whole."""
        expected = self.checksums.get(path.name)
        if expected is None:
            return True
        with opened(path, DataError) as file:
            return expected.matches_file(file)


@dataclass(frozen=True)
class ConvertedFiles:
    """Files in the normal form, by their paths below the dataset's folder; `notes` are messages for the user."""

    files: Mapping[str, bytes]
    notes: tuple[str, ...] = ()


class Dataset(ABC):
    """A benchmark dataset. Subclasses set `name`, `domains` and `folder`, and implement `convert`."""

    name: str
    """The name of the dataset, such as `overnight`."""
    domains: tuple[str, ...]
    """The names of its domains: `name` alone if there is only one, else `name/part` for each."""
    folder: Path
    """The folder with its domain.toml and sources.json."""
    required_files: tuple[str, ...] = ()
    """Files that every stored domain has besides its training and test examples."""
    optional_files: tuple[str, ...] = ()
    """Files that a stored domain may have."""

    @abstractmethod
    def convert(self, source: Path) -> ConvertedFiles:
        """Convert the dataset's files in or below an existing folder to the normal form.

        Raises `DataUnavailable` if the folder has none of them, and `DataError` at a mistake in one of them.
        """

    def settings(self, domain: str) -> dict[str, str]:
        """Return the keys of domain.toml that have another value for this domain."""
        return {}

    @cached_property
    def sources(self) -> Sources:
        """The published files, as listed in sources.json."""
        table = json.loads((self.folder / "sources.json").read_text(encoding="utf-8"))
        repository = table["repository"].replace("https://github.com/", "https://raw.githubusercontent.com/")
        files = tuple(PublishedFile.from_entry(path, entry) for path, entry in table["files"].items())
        return Sources(f"{repository}/{table['commit']}", files)

    def download(
        self, data: Path, progress: Progress | None = None, base_url: str | None = None, force: bool = False
    ) -> ImportResult:
        """Download the published files that are missing in the data folder, or all if forced, and import them.

        `base_url` is a mirror, on which the files have the same paths as in the repository. Optional files that
        cannot be downloaded are noted.
        """
        base = (base_url or os.environ.get(mirror_variable(self.name)) or self.sources.base_url).rstrip("/")
        original = data / self.name / ORIGINAL
        files = [
            RemoteFile(f"{base}/{f.path}", original / self.sources.local_path(f), f.size, f.checksum, f.optional)
            for f in self.sources.files
        ]
        with dataset_lock(data / self.name):
            failures = fetch_all(files, progress, force)
            converted = self._converted(original)
            return self._store(replace(converted, notes=(*failures, *converted.notes)), data)

    def import_from(self, source: Path, data: Path) -> ImportResult:
        """Store all domains found in or below a folder in the data folder, or none if there is an error."""
        converted = self._converted(user_path(source))
        with dataset_lock(data / self.name):
            return self._store(converted, data)

    def _converted(self, source: Path) -> ConvertedFiles:
        """Convert the files of a folder; raise `UsageError` if there is no such folder."""
        if not os.path.isdir(source):
            raise UsageError(f"there is no folder {source}")
        try:
            return self.convert(source)
        except OSError as error:
            raise DataError(f"cannot be read: {os_reason(error)}", error.filename or source) from None

    def _store(self, converted: ConvertedFiles, data: Path) -> ImportResult:
        """Store the files of all converted domains; the caller holds the lock."""
        written = {f"{self.name}/{path}" for path in converted.files}
        imported = [domain for domain in self.domains if f"{domain}/{TRAIN}" in written]
        optional = {f"{domain}/{name}" for domain in imported for name in (*self.optional_files, DATA_NOTES)}
        outdated = [path.removeprefix(f"{self.name}/") for path in sorted(optional - written)]
        parts = [domain.removeprefix(self.name).removeprefix("/") or "." for domain in imported]
        write_files(converted.files, data / self.name, parts, outdated)
        return ImportResult(tuple(d for d in self.stored(data) if d.domain in imported), converted.notes)

    def stored(self, data: Path) -> tuple[StoredDomain, ...]:
        """Return the domains that are in the data folder."""
        complete_replacement(data / self.name)
        found = (find_stored(d, data / d, self.required_files, self.optional_files) for d in self.domains)
        return tuple(domain for domain in found if domain)


def mirror_variable(dataset: str) -> str:
    """Return the name of the environment variable for a mirror of a dataset."""
    return f"FEWPARSE_{dataset.upper().replace('-', '_')}_URL"


def read_bytes(path: Path) -> bytes:
    """Return the content of a file; raise `DataError` if it cannot be read."""
    return files.read_bytes(path, DataError)


def decode(content: bytes, path: Path) -> str:
    """Return the text of a file, unpacked if its name ends in .gz; raise `DataError` if it has none."""
    try:
        content = decompress(content, path, DataError) if path.suffix == ".gz" else content
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(f"not UTF-8 text (byte {error.start + 1})", path, line, hint=CHECK_FILE) from None


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file, unpacked if its name ends in .gz; raise `DataError` if one is not text.

    The file is not read as a whole, so it may be large.
    """
    for number, line in enumerate(files.read_lines(path, DataError), 1):
        try:
            yield line.decode("utf-8").removesuffix("\n")
        except UnicodeDecodeError as error:
            message = f"not UTF-8 text (byte {error.start + 1} of the line)"
            raise DataError(message, path, number, hint=CHECK_FILE) from None


def not_published(path: Path) -> str:
    """Return the note on a file that differs from the published one."""
    return f"{path} is not the published file; imported unchanged"
