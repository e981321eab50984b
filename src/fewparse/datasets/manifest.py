"""The manifest of a stored domain: the size, SHA-256 and number of lines of each of its files."""

import hashlib
import json
import os
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from fewparse.errors import DataError
from fewparse.files import exists, file_sha256, os_reason, read_bytes
from fewparse.limits import SETTINGS_BYTES

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Entry:
    """What a file must be."""

    size: int
    sha256: str
    lines: int

    @staticmethod
    def of(content: bytes) -> "Entry":
        """Return the entry of a file with this content."""
        return Entry(len(content), hashlib.sha256(content).hexdigest(), content.count(b"\n"))


Manifest = Mapping[str, Entry]
"""The entries by the paths of the files, relative to the folder of the domain."""


def to_manifest(files: Mapping[str, bytes], earlier: Manifest, outdated: Collection[str] = ()) -> bytes:
    """Return the manifest of files that are stored now, and of those stored earlier that stay."""
    kept = {name: entry for name, entry in earlier.items() if name not in outdated}
    entries = kept | {name: Entry.of(content) for name, content in files.items()}
    table = {"files": {name: asdict(entries[name]) for name in sorted(entries)}}
    return (json.dumps(table, indent=1) + "\n").encode()


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of a stored domain; None if an earlier version stored it, without a manifest.

    Raises `DataError` if the manifest is damaged.
    """
    path = folder / MANIFEST
    if not exists(path):
        return None
    try:
        table = json.loads(read_bytes(path, DataError, SETTINGS_BYTES))
        return {name: checked(Entry(**values)) for name, values in table["files"].items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise DataError("not the manifest of a stored dataset", path) from None


def checked(entry: Entry) -> Entry:
    """Return an entry if its values have the right types; raise `ValueError` otherwise."""
    if not (isinstance(entry.size, int) and isinstance(entry.sha256, str) and isinstance(entry.lines, int)):
        raise ValueError
    return entry


def find_damage(folder: Path, manifest: Manifest, thorough: bool) -> str | None:
    """Return what is wrong with the first file that is not as listed; None if all are.

    Unless `thorough`, the content of a file is checked only if it was changed after the manifest was written, so
    that it takes no time to load a domain.
    """
    written = os.stat(folder / MANIFEST).st_mtime_ns
    for name, entry in manifest.items():
        path = folder / name
        try:
            state = os.stat(path)
        except FileNotFoundError:
            return f"{name} is missing"
        except (OSError, ValueError) as error:
            return f"{name} cannot be read: {os_reason(error)}"
        if state.st_size != entry.size:
            return f"{name} has {state.st_size:,} bytes instead of {entry.size:,}"
        if (thorough or state.st_mtime_ns > written) and file_sha256(path, DataError) != entry.sha256:
            return f"{name} was changed"
    return None
