"""`fewparse eval`: tables, splits, stored records and errors."""

import json
from pathlib import Path

import pytest

from fewparse.domains.trust import trust_folder
from support.cli_runner import fewparse
from support.domain_files import to_json_lines
from support.lamp_domain import make_lamps
from support.tiny_model import write_tiny_model


@pytest.fixture
def lamps(tmp_path: Path) -> str:
    make_lamps(tmp_path / "lamps")
    return str(trust_folder(tmp_path / "lamps"))


def test_a_parser_is_evaluated_beside_the_baselines_without_a_model(lamps: str) -> None:
    done = fewparse("eval", lamps)
    assert done.code == 0, done.err
    title, empty, heads, *table = done.out.splitlines()
    assert title.startswith(
        "lamps: 2 test items, target canonical, 3 training examples, 2 in the prompt by bm25 (best-last)"
    )
    assert title.endswith(", compared by answer; the constraint accepts 2 of 2 gold outputs")
    assert not empty
    assert heads.startswith("system  ")
    assert [line.split("  ")[0] for line in table] == [
        "no model: nearest training utterance, embedding",
        "no model: nearest training utterance, bm25",
        "no model: output with the best word alignment",
        "no model: most similar canonical utterance, embedding",
        "speculative W=3",
    ]


def test_the_title_names_another_model_for_retrieval(lamps: str, tmp_path: Path) -> None:
    name = f"gguf:{write_tiny_model(tmp_path / 'tiny.gguf')}"
    done = fewparse("eval", lamps, "--limit", "1", "--retriever", "lm", "--retriever-model", name)
    assert done.code == 0, done.err
    assert f", 2 in the prompt by lm of {name} (best-last), embedded:" in done.out.splitlines()[0]


def test_all_decoders_are_compared_on_the_same_items_and_every_figure_is_json(lamps: str) -> None:
    done = fewparse("eval", lamps, "--compare", "--limit", "1", "--json")
    assert done.code == 0, done.err
    report = json.loads(done.out)
    assert (report["criterion"], report["gold_coverage"]) == ("answer", 1)
    table = [row for row in report["rows"] if not row["system"].startswith("no model")]
    decoders = ["greedy", "beam 5", "speculative W=5", "speculative W=10"]
    names = ["speculative W=3", *decoders, *(f"{name}, unconstrained" for name in decoders)]
    assert [row["system"] for row in table] == names
    for row in table:
        assert row["items"] == 1
        assert 0 <= row["accuracy"]["low"] <= row["accuracy"]["value"] <= row["accuracy"]["high"] <= 1
        assert row["requests"] > 0
        assert row["items_per_second"] > 0


def test_results_are_stored_and_a_run_is_resumed(lamps: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = fewparse("eval", lamps, "--limit", "1", "--out", str(out))
    before = (out / "records.jsonl").read_text()
    second = fewparse("eval", lamps, "--out", str(out))
    assert (first.code, second.code) == (0, 0), second.err
    assert (out / "records.jsonl").read_text().startswith(before)
    assert len((out / "records.jsonl").read_text().splitlines()) == 10
    report = json.loads((out / "report.json").read_text())
    assert [row["items"] for row in report["rows"]] == [2] * 5
    assert "| speculative W=3 |" in (out / "report.md").read_text()


def test_failed_items_are_counted_separately_and_the_others_are_evaluated(lamps: str, tmp_path: Path) -> None:
    items = [{"utterance": u, "program": "(on lamp)"} for u in ("lamp " * 10_000, "on lamp please")]
    (Path(lamps) / "test.jsonl").write_text(to_json_lines(items))
    done = fewparse("eval", lamps, "--decoder", "greedy", "--out", str(tmp_path / "out"))
    assert done.code == 0, done.err
    title, _, heads, *table = done.out.splitlines()
    assert title.endswith("; 1 items failed")
    assert "  failed  " in heads
    assert done.err.startswith("failed 1 times: the prompt needs 10")
    assert len(done.err.splitlines()) == 1
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert [(row["items"], row["failed"]) for row in report["rows"]] == [(2, 0)] * (len(table) - 1) + [(2, 1)]
    assert "| failed |" in (tmp_path / "out" / "report.md").read_text()


def test_the_training_split_is_evaluated_on_the_examples_beyond_the_pool(lamps: str) -> None:
    done = fewparse("eval", lamps, "--split", "train", "--decoder", "greedy", "--target", "program")
    assert done.code == 0, done.err
    assert done.out.startswith("lamps: 1 train items, target program, 3 training examples")
    done = fewparse("eval", lamps, "--split", "train", "--decoder", "greedy", "--pool", "2")
    assert done.out.startswith("lamps: 2 train items, target canonical, 2 training examples")


def test_another_data_file_is_a_split_and_is_compared_by_normal_form(lamps: str) -> None:
    settings = (Path(lamps) / "domain.toml").read_text()
    own = 'normal_form = "compare.py:normal"'
    (Path(lamps) / "domain.toml").write_text(settings.replace('executor = "executor.py:execute"', own))
    (Path(lamps) / "compare.py").write_text('def normal(program): return program.replace("light", "lamp")\n')
    items = [{"utterance": "on lamp please", "program": p, "canonical": p} for p in ("(on light)", "(on piano)")]
    (Path(lamps) / "dev_2.jsonl").write_text(to_json_lines(items))
    done = fewparse("eval", lamps, "--split", "dev_2", "--target", "program", "--decoder", "greedy", "--json")
    assert done.code == 0, done.err
    report = json.loads(done.out)
    assert report["title"].startswith("lamps: 2 dev_2 items, target program")
    assert report["title"].endswith(", compared by normal form; the constraint accepts 1 of 2 gold outputs")
    nearest = next(row for row in report["rows"] if row["system"].endswith("bm25"))
    assert (nearest["accuracy"]["value"], nearest["exact_match"]["value"]) == (0.5, 0)


def test_without_a_constraint_no_gold_coverage_is_reported(lamps: str) -> None:
    done = fewparse("eval", lamps, "--unconstrained", "--decoder", "greedy", "--limit", "1", "--json")
    assert done.code == 0, done.err
    report = json.loads(done.out)
    assert report["title"].endswith(", compared by answer")
    assert report["gold_coverage"] is None


def test_an_induced_constraint_can_be_evaluated_with_a_vote(lamps: str) -> None:
    done = fewparse("eval", lamps, "--constraint", "induced", "--target", "program", "--limit", "1", "--vote")
    assert done.code == 0, done.err
    title, _, heads, *table = done.out.splitlines()
    assert ", target program, " in title
    assert title.endswith("; the constraint accepts 1 of 1 gold outputs")
    assert "  by vote  " in heads
    assert table[-1].startswith("speculative W=3  ")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--constraint", "induced"], "target `program`"),
        (["--constraint", "tries"], "Did you mean trie?"),
        (["--pool", "9"], "the pool is 9 of 4 examples"),
        (["--limit", "0"], "--limit"),
        (["--decoder", "viterbi"], "unknown decoder 'viterbi'"),
        (["--split", "dev"], "unknown split 'dev'"),
        (["--split", "language"], "Known: test, train."),
    ],
)
def test_an_invalid_option_is_rejected_before_a_model_is_loaded(
    arguments: list[str], problem: str, lamps: str
) -> None:
    done = fewparse("eval", lamps, *arguments)
    assert done.code == 2
    assert problem in done.err
    assert done.out == ""


def test_the_error_without_held_out_examples_suggests_another_split(lamps: str) -> None:
    (Path(lamps) / "test.jsonl").unlink()
    done = fewparse("eval", lamps)
    assert done.code == 2
    assert "--split train" in done.err


def test_a_file_that_is_not_a_record_file_is_not_overwritten(lamps: str, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "records.jsonl").write_text("not a record\n")
    done = fewparse("eval", lamps, "--out", str(tmp_path / "out"))
    assert done.code == 1
    assert "records.jsonl:1: not a record of an evaluation" in done.err
    assert (tmp_path / "out" / "records.jsonl").read_text() == "not a record\n"


def test_the_error_for_a_missing_benchmark_has_the_download_command(tmp_path: Path) -> None:
    done = fewparse("eval", "overnight/calendar", "--data", str(tmp_path))
    assert done.code == 1
    assert "fewparse data get overnight" in done.err
