"""The published files of a dataset: the table of them that comes with this package, fetching and reading them."""

import gzip
import hashlib
import json
import os
import zlib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path, PurePosixPath

from fewparse.datasets.download import Progress, RemoteFile, fetch_all
from fewparse.errors import DataError

ORIGINAL = "original"
WHOLE = "Is the file whole and unchanged? Copy or fetch it again."
ONLY_ONCE = "Import from a folder that has it only once."


@dataclass(frozen=True)
class Published:
    """One file of the repository."""

    path: PurePosixPath
    size: int
    sha256: str


@dataclass(frozen=True)
class Sources:
    """The repository that keeps the published files, at one commit."""

    address: str
    files: tuple[Published, ...]

    @property
    def hashes(self) -> dict[str, str]:
        """The SHA-256 of the files by their names."""
        return {file.path.name: file.sha256 for file in self.files}


def read_sources(dataset: str) -> Sources:
    """The table of a dataset's published files."""
    table = json.loads(
        (resources.files("fewparse.datasets") / dataset / "sources.json").read_text(encoding="utf-8")
    )
    repository = table["repository"].replace("https://github.com/", "https://raw.githubusercontent.com/")
    files = (Published(PurePosixPath(p), f["bytes"], f["sha256"]) for p, f in table["files"].items())
    return Sources(f"{repository}/{table['commit']}", tuple(files))


def mirror_variable(dataset: str) -> str:
    """The environment variable that names a mirror."""
    return f"FEWPARSE_{dataset.upper()}_URL"


def fetch_published(
    dataset: str, sources: Sources, folder: Path, progress: Progress | None, base_url: str | None, force: bool
) -> Path:
    """Fetch the published files into the data folder, those that are not there yet; gives the folder they are in.

    A mirror has the files under the same paths as the repository.
    """
    base = (base_url or os.environ.get(mirror_variable(dataset)) or sources.address).rstrip("/")
    original = folder / dataset / ORIGINAL
    files = [RemoteFile(f"{base}/{f.path}", original / f.path.name, f.size, f.sha256) for f in sources.files]
    fetch_all(files, progress, force)
    return original


def read_bytes(path: Path) -> bytes:
    """What a file holds, as it is."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", path) from None


def is_published(path: Path, content: bytes, sources: Sources) -> bool:
    """Whether this is the published file of that name; not known, and not denied, if none has that name."""
    expected = sources.hashes.get(path.name)
    return expected is None or hashlib.sha256(content).hexdigest() == expected


def unpublished(path: Path) -> str:
    """The note on a file that is not the published one."""
    return f"{path} is not the published file; imported as it is"


def read_as_text(content: bytes, path: Path) -> str:
    """The text that a file holds, unpacked if it is packed."""
    try:
        content = gzip.decompress(content) if path.suffix == ".gz" else content
        return content.decode("utf-8")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"not a whole gzip file: {error}", path, hint=WHOLE) from None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(f"not UTF-8 text (byte {error.start + 1})", path, line, hint=WHOLE) from None
