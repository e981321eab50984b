"""GeoQuery: its two forms, what is said about the data, and damaged files."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fewparse.datasets.geoquery.dataset import GEOQUERY
from fewparse.datasets.geoquery.files import fill
from fewparse.errors import DataError, DataUnavailable, FewparseError
from support.data import GEOQUERY as SOURCE
from support.geoquery_files import published_queries
from support.shop import make_sqlite


def write_published(folder: Path, queries: Any = None) -> None:
    make_sqlite(folder / "geography-db.added-in-2020.sqlite")
    (folder / "geography.json").write_text(json.dumps(published_queries() if queries is None else queries))


def stored(folder: Path, name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (folder / "geoquery" / name).read_text().splitlines()]


def test_variables_are_filled_into_questions_and_the_first_query(tmp_path: Path) -> None:
    write_published(tmp_path)
    GEOQUERY.import_from(tmp_path, tmp_path / "data")
    prefix = "SELECT CUSTOMERalias0.NAME FROM CUSTOMER AS CUSTOMERalias0 WHERE CUSTOMERalias0"
    assert stored(tmp_path / "data", "examples.jsonl") == [
        {"utterance": "who lives in Bern", "program": f'{prefix}.CITY = "Bern" ;'},
        {"utterance": "who was among the first", "program": f"{prefix}.ID < 3 ;"},
    ]
    assert [item["utterance"] for item in stored(tmp_path / "data", "dev.jsonl")] == ["who lives in Oslo"]
    assert [item["program"] for item in stored(tmp_path / "data", "test.jsonl")] == [f'{prefix}.CITY = "Oslo" ;']


def test_a_variable_is_a_whole_word() -> None:
    values = {"city0": "Bern", "city00": "Oslo"}
    assert fill("from city0 to city00, not mycity0", values) == "from Bern to Oslo, not mycity0"


def test_the_notes_tell_other_data_from_the_published(tmp_path: Path) -> None:
    write_published(tmp_path)
    result = GEOQUERY.import_from(tmp_path, tmp_path / "data")
    assert "examples.jsonl differs from version 4 of the dataset; imported unchanged" in result.notes
    expected = ("training examples: others than the published", "test: 1 of 279 published questions")
    assert result.stored[0].data_notes == expected


@pytest.mark.skipif(not SOURCE.is_dir(), reason="the GeoQuery dataset was not found: set FEWPARSE_DATA")
def test_the_released_files_are_the_published_training_examples(tmp_path: Path) -> None:
    result = GEOQUERY.import_from(SOURCE, tmp_path)
    (domain,) = result.stored
    assert result.notes == ()
    assert (domain.train, domain.test, domain.others) == (549, 139, (("dev", 49),))
    assert domain.data_notes == ("training examples: the published 549", "test: 139 of 279 published questions")
    published = [json.loads(line)["utterance"] for line in (SOURCE / "train.jsonl").read_text().splitlines()]
    training = [example["utterance"] for example in stored(tmp_path, "examples.jsonl")]
    assert sorted(training) == sorted(published)
    assert training != published, "the order is not that of the queries"
    connection = sqlite3.connect(tmp_path / "geoquery" / "geography.sqlite")
    assert connection.execute("SELECT COUNT(*) FROM state").fetchone() == (51,)
    connection.close()


def without_database(folder: Path) -> None:
    (folder / "geography.json").write_text("[]")


def broken_json(folder: Path) -> None:
    write_published(folder)
    (folder / "geography.json").write_text("[{")


def another_format(folder: Path) -> None:
    write_published(folder, [{"question": "where"}])


def unknown_split(folder: Path) -> None:
    queries = published_queries()
    queries[0]["sentences"][0]["question-split"] = "0"
    write_published(folder, queries)


def no_test_questions(folder: Path) -> None:
    write_published(folder, published_queries()[1:])


def text_for_a_database(folder: Path) -> None:
    write_published(folder)
    (folder / "geography-db.added-in-2020.sqlite").write_text("hello")


def two_databases(folder: Path) -> None:
    write_published(folder)
    make_sqlite(folder / "geography.sqlite")


def both_forms(folder: Path) -> None:
    write_published(folder)
    (folder / "train.jsonl").write_text('{"utterance": "a", "sql": "SELECT 1"}\n')


def no_sql(folder: Path) -> None:
    make_sqlite(folder / "geography.sqlite")
    (folder / "train.jsonl").write_text('{"utterance": "a", "sql": "SELECT 1"}\n{"utterance": "b", "sql": 3}\n')
    (folder / "test.jsonl").write_text('{"utterance": "a", "sql": "SELECT 1"}\n')


@pytest.mark.parametrize(
    ("write", "error", "message"),
    [
        (without_database, DataUnavailable, "has no database"),
        (broken_json, DataError, "not readable JSON"),
        (another_format, DataError, "not the published format"),
        (unknown_split, DataError, "not the published format"),
        (no_test_questions, DataError, "no training or no test questions"),
        (text_for_a_database, DataError, "not a SQLite database"),
        (two_databases, DataError, "the database is also in"),
        (both_forms, DataError, "questions are also in"),
        (no_sql, DataError, r"train\.jsonl:2:1: `sql` is missing"),
    ],
)
def test_a_mistake_in_the_files_is_an_error(
    write: Callable[[Path], None], error: type[FewparseError], message: str, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    write(source)
    with pytest.raises(error, match=message):
        GEOQUERY.import_from(source, tmp_path / "data")
    assert not (tmp_path / "data" / "geoquery").exists()
