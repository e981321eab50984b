"""Overnight (Wang, Berant and Liang, 2015): eight domains, 13,682 examples, the official split.

Fetched from the repository that keeps the published files, or imported from a folder that holds them, as they
are or as JSON lines.
"""

import gzip
import hashlib
import json
import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Literal, get_args

from fewparse.data.download import Progress, RemoteFile, fetch_all
from fewparse.data.folder import Kept, Outcome, Splits, keep, kept_domains
from fewparse.data.sempre import WHOLE, read_sempre
from fewparse.errors import DataError, DataUnavailable, UsageError
from fewparse.example import Example, is_unicode
from fewparse.json_line import read_object

NAME = "overnight"
MIRROR = "FEWPARSE_OVERNIGHT_URL"
ORIGINAL = "original"
FILE_NAME = re.compile(
    r"(?P<domain>[a-z]+)\.(?:paraphrases\.(?P<part>train|test)\.examples|(?P<lines>train|test)\.jsonl(?:\.gz)?)"
)
KEYS = ("utterance", "canonical", "program")
Part = Literal["train", "test"]
PARTS: tuple[Part, ...] = get_args(Part)


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
    def domains(self) -> tuple[str, ...]:
        """The names of the domains, in order."""
        return tuple(dict.fromkeys(file.path.name.partition(".")[0] for file in self.files))


def read_sources() -> Sources:
    """The table of published files that comes with this package."""
    table = json.loads((resources.files("fewparse.data") / "overnight_sources.json").read_text(encoding="utf-8"))
    repository = table["repository"].replace("https://github.com/", "https://raw.githubusercontent.com/")
    files = (Published(PurePosixPath(p), f["bytes"], f["sha256"]) for p, f in table["files"].items())
    return Sources(f"{repository}/{table['commit']}", tuple(files))


def get(
    folder: Path, progress: Progress | None = None, base_url: str | None = None, force: bool = False
) -> Outcome:
    """Fetch the published files into the data folder, those that are not there yet, and import them.

    A mirror has the files under the same paths as the repository.
    """
    sources = read_sources()
    base = (base_url or os.environ.get(MIRROR) or sources.address).rstrip("/")
    original = folder / NAME / ORIGINAL
    files = [RemoteFile(f"{base}/{f.path}", original / f.path.name, f.size, f.sha256) for f in sources.files]
    fetch_all(files, progress, force)
    return import_from(original, folder)


def import_from(source_dir: Path, folder: Path) -> Outcome:
    """Bring the domains found in or below a folder into the data folder; all that are found, or none."""
    if not source_dir.is_dir():
        raise UsageError(f"there is no folder {source_dir}")
    sources = read_sources()
    found = find_files(source_dir, sources.domains)
    if not found:
        raise DataUnavailable(
            f"{source_dir} holds no file of {NAME}",
            f"Files are called {sources.domains[0]}.paraphrases.train.examples "
            f"or {sources.domains[0]}.train.jsonl.gz; they may be in subfolders.",
        )
    published = {file.path.name: file.sha256 for file in sources.files}
    notes = []
    domains: dict[str, Splits] = {}
    for domain, files in found.items():
        read: dict[Part, tuple[Example, ...]] = {}
        for part in PARTS:
            content = read_bytes(files[part])
            expected = published.get(files[part].name)
            if expected and hashlib.sha256(content).hexdigest() != expected:
                notes.append(f"{files[part]} is not the published file; imported as it is")
            read[part] = read_examples(content, files[part])
        domains[domain] = Splits(read["train"], read["test"])
    if missing := [domain for domain in sources.domains if domain not in found]:
        notes.append(f"not in {source_dir}: {', '.join(missing)}")
    return Outcome(keep(domains, folder / NAME), tuple(notes))


def kept(folder: Path) -> tuple[Kept, ...]:
    """The domains that are in the data folder."""
    return kept_domains(read_sources().domains, folder / NAME)


def find_files(source_dir: Path, known: tuple[str, ...]) -> dict[str, dict[Part, Path]]:
    """The two files of each domain that has any."""
    found: dict[str, dict[Part, Path]] = {}
    for path in sorted(source_dir.rglob("*")):
        match = FILE_NAME.fullmatch(path.name)
        if match is None or match["domain"] not in known or not path.is_file():
            continue
        part: Part = "train" if "train" in (match["part"], match["lines"]) else "test"
        other = found.setdefault(match["domain"], {}).setdefault(part, path)
        if other != path:
            hint = "Import from a folder that has it only once."
            raise DataError(f"the {part} part of {match['domain']} is also in {other}", path, hint=hint)
    for domain, files in found.items():
        for part in PARTS:
            if part not in files:
                hint = "A domain has a train and a test file: add the missing one, or take the other away."
                raise DataError(f"{domain} has no {part} file", source_dir, hint=hint)
    return {domain: found[domain] for domain in known if domain in found}


def read_bytes(path: Path) -> bytes:
    """What a file holds, unpacked if it is packed."""
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"not a whole gzip file: {error}", path, hint=WHOLE) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", path) from None


def read_examples(content: bytes, path: Path) -> tuple[Example, ...]:
    """The examples of a file in either form, in their order."""
    try:
        source = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(f"not UTF-8 text (byte {error.start + 1})", path, line, hint=WHOLE) from None
    examples = tuple(read_sempre(source, path) if path.suffix == ".examples" else read_lines(source, path))
    if not examples:
        raise DataError("there is no example in this file", path, hint=WHOLE)
    return examples


def read_lines(source: str, path: Path) -> Iterator[Example]:
    """Examples as JSON, one a line."""
    for number, line in enumerate(source.split("\n"), 1):
        if not line.strip():
            continue
        fields = read_object(line, number, path, DataError, WHOLE)
        for key in KEYS:
            text = fields.get(key)
            if not isinstance(text, str) or not text.strip() or not is_unicode(text):
                raise DataError(f"`{key}` is missing, empty or no text", path, number, 1, source, WHOLE)
        yield Example(**{key: fields[key] for key in KEYS})
