"""Keep the records behind the paper's tables in the repository, without the text of the datasets.

`pack FOLDER` compresses the records of `fewparse reproduce --out FOLDER` to benchmarks/results/paper, without the
utterances and gold programs, which belong to the datasets. `unpack FOLDER` restores them: `fewparse reproduce`
with that folder continues from them, as long as the version, the data and the settings are the same.
Run: python benchmarks/paper_records.py pack|unpack FOLDER [NAME]. NAME (default: paper) distinguishes folders.
"""

import gzip
import json
import sys
from pathlib import Path

from measure import RESULTS

PACKED = RESULTS / "paper"
RECORDS = "records.jsonl"
WITHHELD = ("utterance", "gold")


def pack(folder: Path, name: str) -> None:
    """Write the records of each dataset of a folder to the repository."""
    PACKED.mkdir(parents=True, exist_ok=True)
    for path in sorted(folder.glob(f"*/{RECORDS}")):
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        lines = [json.dumps(record | dict.fromkeys(WITHHELD, "")) + "\n" for record in records]
        content = gzip.compress("".join(lines).encode(), mtime=0)
        packed_path(name, path.parent.name).write_bytes(content)
        print(f"{len(records):6} records of {path.parent.name}: {len(content):,} bytes")


def unpack(folder: Path, name: str) -> None:
    """Restore the records of each dataset in a folder that has none."""
    for packed in sorted(PACKED.glob(packed_path(name, "*").name)):
        dataset = packed.name.removeprefix(f"{name}-").removesuffix(f"-{RECORDS}.gz")
        path = folder / dataset / RECORDS
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.write(gzip.decompress(packed.read_bytes()))


def packed_path(name: str, dataset: str) -> Path:
    """Return the file of the records of a dataset."""
    return PACKED / f"{name}-{dataset}-{RECORDS}.gz"


if __name__ == "__main__":
    command, folder, *name = sys.argv[1:]
    {"pack": pack, "unpack": unpack}[command](Path(folder), *(name or ["paper"]))
