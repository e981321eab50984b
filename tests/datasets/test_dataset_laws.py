"""Every registered dataset obeys the laws of datasets."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fewparse.datasets.registry import DATASETS
from fewparse.datasets.smcalflow.dataset import SUBSTITUTE_IDS
from fewparse.example import Example
from fewparse.testing import DATASET_LAWS
from fewparse.testing.datasets import Law
from support.domain_files import to_json_lines
from support.file_server import original_form, original_name
from support.function_call_items import item_rows, published_rows
from support.geoquery_files import published_queries
from support.shop import make_sqlite
from support.smcalflow_files import (
    DEV_LIST,
    DIALOGUES,
    TEST_LIST,
    TRAIN_DIALOGUES,
    TRAIN_LIST,
    TurnRow,
    to_dialogue_lines,
    to_id_list,
)


def write_function_calls(folder: Path) -> None:
    """Write both item sets as JSON lines."""
    for name in ("simple", "multiple"):
        (folder / f"{name}.jsonl").write_text(to_json_lines(item_rows(3)))


def write_published_function_calls(folder: Path) -> None:
    """Write one item set in the published form, in two files of the same name."""
    (folder / "possible_answer").mkdir()
    name = "BFCL_v4_simple_python.json"
    questions, answers = published_rows(3)
    (folder / name).write_text(to_json_lines(questions))
    (folder / "possible_answer" / name).write_text(to_json_lines(answers))


def write_geoquery(folder: Path) -> None:
    """Write a database and a JSON lines file for each split."""
    make_sqlite(folder / "geography.sqlite")
    for i, split in enumerate(("train", "dev", "test")):
        sql = f"SELECT CITYalias0.NAME FROM CUSTOMER AS CITYalias0 WHERE CITYalias0.ID = {i} ;"
        (folder / f"{split}.jsonl").write_text(json.dumps({"utterance": f"who is {i}", "sql": sql}) + "\n")


def write_published_geoquery(folder: Path) -> None:
    """Write a database and the questions in the published form."""
    make_sqlite(folder / "geography-db.added-in-2020.sqlite")
    (folder / "geography.json").write_text(json.dumps(published_queries()))


def write_overnight(folder: Path) -> None:
    """Write two of the eight domains as SEMPRE files."""
    examples = [Example(f"utterance {i}", f"(call f {i})", f"canonical {i}") for i in range(3)]
    for domain in ("calendar", "recipes"):
        for split, chosen in (("train", examples[:2]), ("test", examples[2:])):
            (folder / original_name(domain, split)).write_text(original_form(chosen))


def write_smcalflow(folder: Path) -> None:
    """Write dialogues with the ids of the training turns and two others, and the lists of test and dev ids."""
    ids = [line.split(",") for line in SUBSTITUTE_IDS.read_text().split()]
    train = sorted((dialogue, int(index)) for dialogue, index in ids)
    turns = [TurnRow(dialogue, i, "book it", "(Book)") for dialogue, i in (*train, ("dev", 0), ("test", 0))]
    (folder / DIALOGUES).write_bytes(gzip.compress(to_dialogue_lines(turns), mtime=0))
    (folder / TEST_LIST).write_bytes(to_id_list(turns[-1:]))
    (folder / DEV_LIST).write_bytes(to_id_list(turns[-2:-1]))


def write_smcalflow_with_training_set(folder: Path) -> None:
    """Write the same files, and the training dialogues with the list of their ids."""
    write_smcalflow(folder)
    turns = [TurnRow("train", i, "cancel it", "(Cancel)") for i in range(3)]
    (folder / TRAIN_DIALOGUES).write_bytes(gzip.compress(to_dialogue_lines(turns), mtime=0))
    (folder / TRAIN_LIST).write_bytes(to_id_list(turns[1:]))


WRITERS = [
    ("function-calls", write_function_calls),
    ("function-calls", write_published_function_calls),
    ("geoquery", write_geoquery),
    ("geoquery", write_published_geoquery),
    ("overnight", write_overnight),
    ("smcalflow", write_smcalflow),
    ("smcalflow", write_smcalflow_with_training_set),
]


def test_every_dataset_has_files_for_the_laws() -> None:
    assert {name for name, _ in WRITERS} == set(DATASETS.names)


@pytest.mark.parametrize(("name", "write"), WRITERS)
@pytest.mark.parametrize("law", DATASET_LAWS, ids=lambda law: law.__name__)
def test_a_dataset_obeys_the_law(law: Law, name: str, write: Callable[[Path], None], tmp_path: Path) -> None:
    source, folder = tmp_path / "source", tmp_path / "folder"
    source.mkdir()
    folder.mkdir()
    write(source)
    law(DATASETS[name], source, folder)
