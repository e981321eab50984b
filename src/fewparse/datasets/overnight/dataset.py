"""Overnight (Wang, Berant and Liang, 2015): eight domains, 13,682 examples, the official split.

Fetched from the repository that keeps the published files, or imported from a folder that holds them, as they
are or as JSON lines. A domain is kept with `language.jsonl`: every canonical utterance with its program, once.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args

from fewparse.datasets.download import Progress
from fewparse.datasets.folder import TEST, TRAIN, Kept, Outcome, as_lines, keep, kept_domain
from fewparse.datasets.overnight.files import read_sempre
from fewparse.datasets.published import (
    ONLY_ONCE,
    WHOLE,
    Sources,
    fetch_published,
    is_published,
    read_as_text,
    read_bytes,
    read_sources,
    unpublished,
)
from fewparse.errors import DataError, DataUnavailable, UsageError
from fewparse.example import Example, is_unicode
from fewparse.files import parse_json_line

NAME = "overnight"
LANGUAGE = "language.jsonl"
FILE_NAME = re.compile(
    r"(?P<domain>[a-z]+)\.(?:paraphrases\.(?P<part>train|test)\.examples|(?P<lines>train|test)\.jsonl(?:\.gz)?)"
)
KEYS = ("utterance", "canonical", "program")
Part = Literal["train", "test"]
PARTS: tuple[Part, ...] = get_args(Part)


def domains_of(sources: Sources) -> tuple[str, ...]:
    """The names of the domains, in order."""
    return tuple(dict.fromkeys(file.path.name.partition(".")[0] for file in sources.files))


def get(
    folder: Path, progress: Progress | None = None, base_url: str | None = None, force: bool = False
) -> Outcome:
    """Fetch the published files into the data folder, those that are not there yet, and import them."""
    return import_from(fetch_published(NAME, read_sources(NAME), folder, progress, base_url, force), folder)


def import_from(source_dir: Path, folder: Path) -> Outcome:
    """Bring the domains found in or below a folder into the data folder; all that are found, or none."""
    if not source_dir.is_dir():
        raise UsageError(f"there is no folder {source_dir}")
    sources = read_sources(NAME)
    domains = domains_of(sources)
    found = find_files(source_dir, domains)
    if not found:
        raise DataUnavailable(
            f"{source_dir} holds no file of {NAME}",
            f"Files are called {domains[0]}.paraphrases.train.examples "
            f"or {domains[0]}.train.jsonl.gz; they may be in subfolders.",
        )
    notes = []
    normal: dict[str, bytes] = {}
    for domain, files in found.items():
        read: dict[Part, tuple[Example, ...]] = {}
        for part in PARTS:
            content = read_bytes(files[part])
            if not is_published(files[part], content, sources):
                notes.append(unpublished(files[part]))
            read[part] = read_examples(content, files[part])
        normal |= {f"{domain}/{name}": lines for name, lines in normal_form(**read).items()}
    if missing := [domain for domain in domains if domain not in found]:
        notes.append(f"not in {source_dir}: {', '.join(missing)}")
    keep(normal, folder / NAME)
    return Outcome(tuple(domain for domain in kept(folder) if domain.domain in found), tuple(notes))


def normal_form(train: tuple[Example, ...], test: tuple[Example, ...]) -> dict[str, bytes]:
    """The three files of a domain."""
    pairs = dict.fromkeys((e.canonical, e.program) for e in (*train, *test))
    return {
        TRAIN: as_lines({key: getattr(e, key) for key in KEYS} for e in train),
        TEST: as_lines({key: getattr(e, key) for key in KEYS} for e in test),
        LANGUAGE: as_lines({"canonical": canonical, "program": program} for canonical, program in pairs),
    }


def kept(folder: Path) -> tuple[Kept, ...]:
    """The domains that are in the data folder."""
    domains = domains_of(read_sources(NAME))
    found = (kept_domain(domain, folder / NAME / domain, [LANGUAGE]) for domain in domains)
    return tuple(domain for domain in found if domain)


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
            raise DataError(f"the {part} part of {match['domain']} is also in {other}", path, hint=ONLY_ONCE)
    for domain, files in found.items():
        for part in PARTS:
            if part not in files:
                hint = "A domain has a train and a test file: add the missing one, or take the other away."
                raise DataError(f"{domain} has no {part} file", source_dir, hint=hint)
    return {domain: found[domain] for domain in known if domain in found}


def read_examples(content: bytes, path: Path) -> tuple[Example, ...]:
    """The examples of a file in either form, in their order."""
    source = read_as_text(content, path)
    examples = tuple(read_sempre(source, path) if path.suffix == ".examples" else read_lines(source, path))
    if not examples:
        raise DataError("there is no example in this file", path, hint=WHOLE)
    return examples


def read_lines(source: str, path: Path) -> Iterator[Example]:
    """Examples as JSON, one a line."""
    for number, line in enumerate(source.split("\n"), 1):
        if not line.strip():
            continue
        fields = parse_json_line(line, number, path, DataError, WHOLE)
        for key in KEYS:
            text = fields.get(key)
            if not isinstance(text, str) or not text.strip() or not is_unicode(text):
                raise DataError(f"`{key}` is missing, empty or no text", path, number, 1, source, WHOLE)
        yield Example(**{key: fields[key] for key in KEYS})
