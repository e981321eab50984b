"""Overnight (Wang, Berant and Liang, 2015): eight domains, 13,682 examples, the official split.

Downloaded from a repository that has the published SEMPRE files, or imported from a folder with these files or
with JSON lines. Each domain is stored with `language.jsonl`, its distinct pairs of canonical utterance and
program.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args

from fewparse.datasets.dataset import (
    CHECK_FILE,
    ONLY_ONCE,
    ConvertedFiles,
    Dataset,
    decode,
    not_published,
    read_bytes,
)
from fewparse.datasets.overnight.files import read_sempre
from fewparse.datasets.overnight.world import WORLDS
from fewparse.datasets.storage import TEST, TRAIN, to_jsonl
from fewparse.errors import DataError, DataUnavailable
from fewparse.example import Example
from fewparse.files import parse_json_line
from fewparse.text import is_unicode

LANGUAGE = "language.jsonl"
FILE_NAME = re.compile(
    r"(?P<domain>[a-z]+)\.(?:paraphrases\.(?P<sempre>train|test)\.examples|(?P<lines>train|test)\.jsonl(?:\.gz)?)"
)
KEYS = ("utterance", "canonical", "program")
Split = Literal["train", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)


class Overnight(Dataset):
    """The eight domains, each with its own executor."""

    name = "overnight"
    domains = tuple(f"overnight/{world}" for world in WORLDS)
    folder = Path(__file__).parent
    required_files = (LANGUAGE,)

    def settings(self, domain: str) -> dict[str, str]:
        """Return the name and the executor of a domain."""
        world = domain.removeprefix(f"{self.name}/")
        return {"name": domain, "executor": f"fewparse.datasets.overnight.executor:{world}"}

    def convert(self, source: Path) -> ConvertedFiles:
        """Convert the train and test file of each domain that the folder has."""
        domains = tuple(domain.removeprefix(f"{self.name}/") for domain in self.domains)
        found = find_files(source, domains)
        if not found:
            raise DataUnavailable(
                f"{source} has no files of {self.name}",
                f"File names are like {domains[0]}.paraphrases.train.examples "
                f"or {domains[0]}.train.jsonl.gz; the files may be in subfolders.",
            )
        notes: list[str] = []
        converted: dict[str, bytes] = {}
        for domain, paths in found.items():
            examples: dict[Split, tuple[Example, ...]] = {}
            for split in SPLITS:
                content = read_bytes(paths[split])
                if not self.sources.is_published(paths[split], content):
                    notes.append(not_published(paths[split]))
                examples[split] = read_examples(content, paths[split])
            converted |= {f"{domain}/{name}": lines for name, lines in normal_form(**examples).items()}
        if missing := [domain for domain in domains if domain not in found]:
            notes.append(f"not in {source}: {', '.join(missing)}")
        return ConvertedFiles(converted, tuple(notes))


OVERNIGHT = Overnight()


def normal_form(train: tuple[Example, ...], test: tuple[Example, ...]) -> dict[str, bytes]:
    """Return the three files of a domain by their names."""
    pairs = dict.fromkeys((e.canonical, e.program) for e in (*train, *test))
    return {
        TRAIN: to_jsonl({key: getattr(e, key) for key in KEYS} for e in train),
        TEST: to_jsonl({key: getattr(e, key) for key in KEYS} for e in test),
        LANGUAGE: to_jsonl({"canonical": canonical, "program": program} for canonical, program in pairs),
    }


def find_files(source: Path, domains: tuple[str, ...]) -> dict[str, dict[Split, Path]]:
    """Return the two files of each domain that has any; raise `DataError` for a missing or second one."""
    found: dict[str, dict[Split, Path]] = {}
    for path in sorted(source.rglob("*")):
        match = FILE_NAME.fullmatch(path.name)
        if match is None or match["domain"] not in domains or not os.path.isfile(path):
            continue
        split: Split = "train" if "train" in (match["sempre"], match["lines"]) else "test"
        other = found.setdefault(match["domain"], {}).setdefault(split, path)
        if other != path:
            raise DataError(f"the {split} split of {match['domain']} is also in {other}", path, hint=ONLY_ONCE)
    for domain, paths in found.items():
        for split in SPLITS:
            if split not in paths:
                hint = "A domain needs a train and a test file: add the missing one, or remove the other."
                raise DataError(f"{domain} has no {split} file", source, hint=hint)
    return {domain: found[domain] for domain in domains if domain in found}


def read_examples(content: bytes, path: Path) -> tuple[Example, ...]:
    """Return the examples of a SEMPRE or JSON lines file, in order; raise `DataError` if there are none."""
    text = decode(content, path)
    examples = tuple(read_sempre(text, path) if path.suffix == ".examples" else read_json_lines(text, path))
    if not examples:
        raise DataError("the file has no examples", path, hint=CHECK_FILE)
    return examples


def read_json_lines(text: str, path: Path) -> Iterator[Example]:
    """Yield the examples of a JSON lines file; blank lines are skipped."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        fields = parse_json_line(line, number, path, DataError, CHECK_FILE)
        for key in KEYS:
            value = fields.get(key)
            if not isinstance(value, str) or not value.strip() or not is_unicode(value):
                raise DataError(f"`{key}` is missing, empty or not text", path, number, 1, text, CHECK_FILE)
        yield Example(**{key: fields[key] for key in KEYS})
