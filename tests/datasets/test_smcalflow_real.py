"""The real SMCalFlow data: its turns are the published ones, and both formats give the same stored files."""

import gzip
import hashlib
from pathlib import Path

import pytest

from fewparse.datasets.smcalflow.dataset import SMCALFLOW, SUBSTITUTE_IDS
from fewparse.domains.examples import read_examples
from fewparse.testing.datasets import contents
from support.file_server import serving
from support.smcalflow_files import (
    DEV_LIST,
    DIALOGUES,
    REAL,
    TABLES,
    TEST_LIST,
    add_skipped_turns,
    needs_real_data,
    publish,
    real_rows,
    to_dialogue_lines,
    to_id_list,
)

SPLITS = ("examples.jsonl", "test.jsonl", "dev_100.jsonl", "full.jsonl")


@needs_real_data
def test_the_real_turns_are_the_published_and_selected_ones() -> None:
    checksums = SMCALFLOW.sources.checksums
    for name, listed in (("dev_200.jsonl", TEST_LIST), ("dev_100.jsonl", DEV_LIST)):
        assert hashlib.sha256(to_id_list(real_rows(name))).hexdigest() == checksums[listed].value
    assert SUBSTITUTE_IDS.read_bytes() == to_id_list(real_rows("train_300.jsonl"))


def test_the_real_data_has_its_counts_and_shares_no_dialogue_with_training(smcalflow_data: Path) -> None:
    (domain,) = SMCALFLOW.stored(smcalflow_data)
    assert (domain.train, domain.test, domain.others) == (300, 200, (("dev_100", 100), ("full", 10_372)))
    folder = smcalflow_data / "smcalflow"
    read = {name: read_examples(folder / name) for name in SPLITS}
    contexts = {name: sum(bool(example.context) for example in examples) for name, examples in read.items()}
    assert (contexts["examples.jsonl"], contexts["test.jsonl"], contexts["dev_100.jsonl"]) == (218, 155, 85)
    assert set(read["test.jsonl"]) | set(read["dev_100.jsonl"]) <= set(read["full.jsonl"])
    assert not any(e.canonical for examples in read.values() for e in examples)
    assert set(contents(folder / "grammar")) == set(TABLES)


@needs_real_data
def test_the_real_data_is_the_same_when_downloaded_or_imported(
    smcalflow_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = add_skipped_turns(real_rows("dev_all.jsonl.gz"))
    assert any(turn.skip for turn in turns)
    files = {
        DIALOGUES: gzip.compress(to_dialogue_lines(turns)),
        TEST_LIST: to_id_list(real_rows("dev_200.jsonl")),
        DEV_LIST: to_id_list(real_rows("dev_100.jsonl")),
        **{name: (REAL / "released-grammar" / name).read_bytes() for name in TABLES},
    }
    with serving() as server:
        server.files = publish(files, monkeypatch)
        result = SMCALFLOW.download(tmp_path, base_url=f"{server.address}/mirror")
    assert [note.rpartition("; ")[2] for note in result.notes] == ["training examples are a substitute"]
    fetched, imported = contents(tmp_path / "smcalflow"), contents(smcalflow_data / "smcalflow")
    assert {name: content for name, content in fetched.items() if not name.startswith("original/")} == imported
