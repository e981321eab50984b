"""GeoQuery as a domain: its queries in the normal form have the rows that SQLite gives for the published ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from fewparse.domains.domain import Domain
from fewparse.domains.load import load_domain
from fewparse.domains.sql.judge import same_rows
from fewparse.evaluate.metrics import Judge
from fewparse.evaluate.run import load_split
from fewparse.example import Example
from support.cli_runner import fewparse
from support.data import GEOQUERY


@pytest.fixture(scope="module")
def geoquery(geoquery_data: Path) -> Domain:
    return load_domain("geoquery", geoquery_data)


def published(split: str) -> dict[str, dict[str, Any]]:
    """Return the items of a released file by their utterances."""
    lines = (GEOQUERY / f"{split}.jsonl").read_text().splitlines()
    return {item["utterance"]: item for item in map(json.loads, lines)}


def is_normal(example: Example, item: dict[str, Any]) -> bool:
    return bool(example.program != item["sql"])


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_nearly_all_queries_are_in_the_language_and_have_the_same_rows(split: str, geoquery: Domain) -> None:
    items = published(split)
    examples = geoquery.read_examples("examples.jsonl") if split == "train" else load_split(geoquery, split)
    executable = [(e, items[e.utterance]) for e in examples if items[e.utterance]["rows"] is not None]
    normal = [(example, item) for example, item in executable if is_normal(example, item)]
    assert len(normal) >= 0.95 * len(executable)
    for example, item in normal:
        rows = geoquery.execute(example.program)["rows"]
        assert same_rows(rows, item["rows"], ordered=False), example.program


def test_training_examples_outside_the_language_are_left_out_and_counted(geoquery: Domain) -> None:
    assert len(geoquery.examples) + geoquery.underivable == 549
    assert geoquery.underivable < 10
    assert all(example.program.startswith("SELECT ") for example in geoquery.examples)
    assert len(geoquery.test_examples) == 139
    assert geoquery.spare_examples == ()


def test_gold_queries_are_correct_by_their_rows(geoquery: Domain) -> None:
    judge = Judge(geoquery)
    items = published("test")
    for example in geoquery.test_examples[:40]:
        expected = items[example.utterance]["rows"] is not None
        assert judge.is_correct(example.program, example.program) is expected


def test_the_commands_know_the_domain(geoquery_data: Path) -> None:
    env = {"FEWPARSE_DATA": str(geoquery_data)}
    written = 'SELECT CITYalias0.POPULATION FROM CITY AS CITYalias0 WHERE CITYalias0.CITY_NAME = "austin" ;\n'
    there = fewparse("grammar", "translate", "geoquery", "--to", "utterance", stdin=written, env=env)
    utterance = json.loads(there.out)["output"]
    back = fewparse("grammar", "translate", "geoquery", "--to", "program", stdin=f"{utterance}\n", env=env)
    ended = fewparse("execute", "geoquery", stdin=json.loads(back.out)["output"] + "\n", env=env)
    assert (ended.code, ended.out) == (0, "345496\n")


def test_without_the_data_the_command_to_get_it_is_named(tmp_path: Path) -> None:
    env = {"FEWPARSE_DATA": str(tmp_path)}
    for arguments in (("grammar", "stats", "geoquery"), ("execute", "geoquery"), ("parse", "geoquery", "x")):
        ended = fewparse(*arguments, stdin="SELECT 1\n", env=env)
        assert ended.code == 1
        assert "No such file" in ended.err or "fewparse data get geoquery" in ended.err
