"""The guide "Add a dataset": one package, one line in the registry, and the laws that check it."""

import hashlib
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fewparse import load_domain
from fewparse.cli.main import app
from fewparse.datasets.registry import DATASETS
from fewparse.testing import DATASET_LAWS
from fewparse.testing.datasets import Law

DATASET_PY = """
from pathlib import Path

from fewparse.datasets.dataset import ConvertedFiles, Dataset, decode, read_bytes
from fewparse.datasets.storage import TEST, TRAIN, to_jsonl
from fewparse.errors import DataUnavailable

SPLITS = {TRAIN: "train.tsv", TEST: "test.tsv"}


class Lamps(Dataset):
    name = "lamps"
    domains = ("lamps",)
    folder = Path(__file__).parent

    def convert(self, source: Path) -> ConvertedFiles:
        files = {}
        for split, name in SPLITS.items():
            path = next(source.rglob(name), None)
            if path is None:
                raise DataUnavailable(f"{source} has no {name}", "Files are train.tsv and test.tsv.")
            rows = [line.split("\\t") for line in decode(read_bytes(path), path).splitlines()]
            files[split] = to_jsonl({"utterance": utterance, "program": program} for utterance, program in rows)
        return ConvertedFiles(files)


LAMPS = Lamps()
"""
DOMAIN_TOML = """
name = "lamps"
description = "Switch lamps on and off."
target = "program"
prompt = "lisp"

[constraint]
kind = "induced"
"""
PUBLISHED = {
    "train.tsv": "lamp on please\t(set lamp on)\nswitch the lamp off\t(set lamp off)\n",
    "test.tsv": "turn on the lamp\t(set lamp on)\n",
}
SOURCES = {
    "repository": "https://github.com/you/lamps",
    "commit": "0123456789abcdef",
    "files": {
        f"data/{name}": {"bytes": len(text), "sha256": hashlib.sha256(text.encode()).hexdigest()}
        for name, text in PUBLISHED.items()
    },
}


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Add the dataset to fewparse, and return a folder with its published files."""
    package = tmp_path / "package" / "lamps"
    package.mkdir(parents=True)
    (package / "dataset.py").write_text(DATASET_PY)
    (package / "domain.toml").write_text(DOMAIN_TOML)
    (package / "sources.json").write_text(json.dumps(SOURCES))
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.setitem(DATASETS.bundled, "lamps", "lamps.dataset:LAMPS")
    published = tmp_path / "published"
    published.mkdir()
    for name, text in PUBLISHED.items():
        (published / name).write_text(text)
    return published


@pytest.mark.parametrize("law", DATASET_LAWS, ids=lambda law: law.__name__)
def test_the_dataset_obeys_the_laws(law: Law, source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    law(DATASETS["lamps"], source, folder)


def test_the_dataset_is_listed_imported_and_loaded(source: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    listed = CliRunner().invoke(app, ["data", "list", "--data", str(data)])
    assert "lamps is not stored. Download it: fewparse data get lamps\n" in listed.output
    imported = CliRunner().invoke(app, ["data", "import", "lamps", str(source), "--data", str(data)])
    assert imported.output == f"lamps: 2 train, 1 test, in {data / 'lamps'}\n"
    domain = load_domain("lamps", data)
    domain.check()
    assert [example.program for example in domain.examples] == ["(set lamp on)", "(set lamp off)"]
    assert [example.utterance for example in domain.test_examples] == ["turn on the lamp"]
