"""GeoQuery (Zelle and Mooney, 1996) with SQL and a SQLite database, as prepared by Finegan-Dollak et al. (2018).

Downloaded from their repository, text2sql-data, or imported from a folder with the published files or with a JSON
lines file for each split. It is one domain, with the question split. Besides the examples, these files are stored:

dev.jsonl          the development set
geography.sqlite   the database
data_notes.txt     whether these are the published training examples, and how many of the test questions there are
"""

import os
import random
from pathlib import Path

from fewparse.datasets.checksum import Checksum
from fewparse.datasets.dataset import CHECK_FILE, ONLY_ONCE, ConvertedFiles, Dataset, read_bytes
from fewparse.datasets.geoquery.files import SPLITS, read_published, read_split
from fewparse.datasets.storage import DATA_NOTES, TEST, TRAIN, to_data_notes, to_jsonl
from fewparse.errors import DataError, DataUnavailable
from fewparse.example import Example

NAME = "geoquery"
DEV = "dev.jsonl"
DATABASE = "geography.sqlite"
PUBLISHED = "geography.json"
PUBLISHED_DATABASE = "geography-db.added-in-2020.sqlite"
STORED = {"train": TRAIN, "dev": DEV, "test": TEST}
SPLIT_FILES = {"train": "train.jsonl", "dev": "dev.jsonl", "test": "test.jsonl"}
EXPECTED_FILES = (
    f"Expected {PUBLISHED} with {PUBLISHED_DATABASE}, or {', '.join(SPLIT_FILES.values())} with {DATABASE}; "
    "the files may be in subfolders."
)
PUBLISHED_TEST = 279
"""The number of test questions of the question split."""
ORDER_SEED = 0
"""The training questions, published query by query, are shuffled: the first N are a sample of all queries."""
KNOWN = {
    TRAIN: Checksum("SHA-256", "cac73cd2f96194db3f24e30e96f93ef5758cac9b493348f03274b531c87f061f"),
    DEV: Checksum("SHA-256", "0634a2c31683ee111a50fccce4ae4d0b8ee7d3ff8d3e8682ad4794736fef3ca8"),
    DATABASE: Checksum("SHA-256", "98955372123cd9a8e761b00c2c67fbf221f1b8699927add538b53154c702dd3c"),
}
"""Checksums of stored files: those of the published ones are not known."""


class GeoQuery(Dataset):
    """The one domain of GeoQuery."""

    name = NAME
    domains = (NAME,)
    folder = Path(__file__).parent
    required_files = (DATABASE,)
    optional_files = (DEV,)

    def convert(self, source: Path) -> ConvertedFiles:
        """Convert the questions of a folder, and copy its database."""
        database = find_database(source)
        splits = read_splits(source, database.parent)
        if not splits["train"] or not splits["test"]:
            raise DataError("there are no training or no test questions here", source, hint=EXPECTED_FILES)
        random.Random(ORDER_SEED).shuffle(splits["train"])
        converted = {STORED[split]: to_jsonl(map(to_fields, found)) for split, found in splits.items() if found}
        converted[DATABASE] = read_bytes(database)
        if not converted[DATABASE].startswith(b"SQLite format 3\0"):
            raise DataError("not a SQLite database", database, hint=CHECK_FILE)
        others = [
            name for name, checksum in KNOWN.items() if name in converted and not checksum.matches(converted[name])
        ]
        training = "others than the published" if TRAIN in others else f"the published {len(splits['train'])}"
        tested = f"test: {len(splits['test'])} of {PUBLISHED_TEST} published questions"
        return ConvertedFiles(
            {**converted, DATA_NOTES: to_data_notes([f"training examples: {training}", tested])},
            tuple(f"{name} differs from version 4 of the dataset; imported unchanged" for name in others),
        )


GEOQUERY = GeoQuery()


def find_database(source: Path) -> Path:
    """Return the only database in or below a folder; raise `DataUnavailable` if there is none."""
    names = (DATABASE, PUBLISHED_DATABASE)
    found = [path for path in sorted(source.rglob("*")) if path.name in names and os.path.isfile(path)]
    if not found:
        raise DataUnavailable(f"{source} has no database of {NAME}", EXPECTED_FILES)
    if len(found) > 1:
        raise DataError(f"the database is also in {found[0]}", found[1], hint=ONLY_ONCE)
    return found[0]


def read_splits(source: Path, beside: Path) -> dict[str, list[Example]]:
    """Return the questions of each split: of the published file below a folder, or those beside the database."""
    published = [path for path in sorted(source.rglob(PUBLISHED)) if os.path.isfile(path)]
    lines = {split: beside / name for split, name in SPLIT_FILES.items() if os.path.isfile(beside / name)}
    if len(published) + bool(lines) > 1:
        other = published[1] if len(published) > 1 else next(iter(lines.values()))
        raise DataError(f"questions are also in {published[0]}", other, hint=ONLY_ONCE)
    if published:
        return read_published(published[0])
    return {split: read_split(lines[split]) if split in lines else [] for split in SPLITS}


def to_fields(example: Example) -> dict[str, str]:
    """Return the fields of a stored example."""
    return {"utterance": example.utterance, "program": example.program}
