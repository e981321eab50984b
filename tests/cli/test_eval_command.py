"""`fewparse eval`: tables, splits, stored records and errors."""

import json
import re
from pathlib import Path

import pytest

from fewparse.cli.evaluate import MAX_SHOWN
from fewparse.domains.trust import trust_folder
from fewparse.lm.catalogue import SMOLLM2_SHA256
from support.adapters import provenance, write_adapter
from support.cli_runner import fewparse
from support.domain_files import to_json_lines
from support.lamp_domain import make_lamps
from support.tiny_model import write_tiny_model


@pytest.fixture
def lamps(tmp_path: Path) -> str:
    make_lamps(tmp_path / "lamps")
    return str(trust_folder(tmp_path / "lamps"))


def title(out: str) -> str:
    """Return the title, which is on several lines."""
    return " ".join(out.split("\n\n")[0].split())


def test_a_parser_is_evaluated_beside_the_baselines_without_a_model(lamps: str) -> None:
    done = fewparse("eval", lamps)
    assert done.code == 0, done.err
    shown, quality, cost, items = done.out.split("\n\n", 3)
    assert title(shown).startswith(
        "lamps: 2 test items, target canonical, 3 training examples, 2 in the prompt by bm25 (best-last)"
    )
    assert title(shown).endswith(", compared by answer; the constraint accepts 2 of 2 gold outputs")
    assert " ".join(quality.split()).startswith("system accuracy (95% exact before by top top")
    systems = [line for line in quality.splitlines() if re.search(r"  [01]\.[0-9]{2} ", line)]
    starts = [*["no model: nearest"] * 2, "no model: output", "no model: most similar", "speculative W=3  "]
    assert all(line.startswith(start) for line, start in zip(systems, starts, strict=True))
    assert cost.splitlines()[-1].startswith("speculative W=3  ")
    assert re.match(r"(All 2|[12] of 2) items are (right|wrong)", items)
    assert max(map(len, done.out.splitlines())) <= 80


ITEMS = [
    {"utterance": "on lamp please", "program": "(on lamp)", "canonical": "switch on lamp"},
    {"utterance": "off lamp please", "program": "(off piano)", "canonical": "switch off piano"},
    {"utterance": "lamp " * 10_000, "program": "(off lamp)", "canonical": "switch off lamp"},
]


def test_wrong_items_are_listed_with_the_reason(lamps: str, tmp_path: Path) -> None:
    (Path(lamps) / "test.jsonl").write_text(to_json_lines(ITEMS))
    arguments = ("eval", lamps, "--out", str(tmp_path / "out"))
    wrong, everything, nothing = (fewparse(*arguments, "--show", show).out for show in ("wrong", "all", "none"))
    assert " of 3 items are wrong:\n" in wrong
    assert "  1 not reachable: the constraint does not accept the gold output\n" in wrong
    assert "\noff lamp please\n  gold       (off piano)\n  predicted  (" in wrong
    assert "\n  gold       (off lamp)\n  predicted  -\n  other: the prompt needs " in wrong
    assert wrong.count("\n  gold  ") == len(wrong_items(tmp_path / "out")) >= 2
    assert [item["reason"] for item in wrong_items(tmp_path / "out")][-2:] == ["not reachable", "other"]
    assert "\non lamp please\n" in everything
    assert "gold  " not in nothing
    assert "## Wrong items" in (tmp_path / "out" / "report.md").read_text()


def wrong_items(folder: Path) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads((folder / "report.json").read_text())["wrong_items"]
    return found


def test_of_many_wrong_items_the_first_are_listed(lamps: str) -> None:
    items = [
        {"utterance": f"piano {i}", "program": "(on piano)", "canonical": "piano"} for i in range(MAX_SHOWN + 2)
    ]
    (Path(lamps) / "test.jsonl").write_text(to_json_lines(items))
    done = fewparse("eval", lamps, "--decoder", "greedy", "--max-tokens", "1")
    assert done.out.count("\n  gold  ") == MAX_SHOWN
    assert done.out.endswith("\n... and 2 more: --show all, or --out for a report of all\n")


def test_the_title_names_the_adapter(lamps: str, tmp_path: Path) -> None:
    own = provenance(SMOLLM2_SHA256, domain="lamps", target="canonical")
    path = write_adapter(tmp_path / "mine.gguf", strength=0.0, provenance=own)
    done = fewparse("eval", lamps, "--limit", "1", "--adapter", str(path), "--decoder", "greedy", "--show", "none")
    assert done.code == 0, done.err
    tuned = "tuned on 20 examples other than the present ones (mine.gguf), compared by answer"
    assert f", 0 in the prompt, embedded:smollm2-135m {tuned}" in title(done.out)


def test_the_title_names_another_model_for_retrieval(lamps: str, tmp_path: Path) -> None:
    name = f"gguf:{write_tiny_model(tmp_path / 'tiny.gguf')}"
    done = fewparse("eval", lamps, "--limit", "1", "--retriever", "lm", "--retriever-model", name)
    assert done.code == 0, done.err
    assert f", 2 in the prompt by lm of {name} (best-last), embedded:" in title(done.out)


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
    assert title(done.out).endswith("; 1 items failed")
    assert "  failed\n" in done.out
    assert done.err.startswith("failed 1 times: the prompt needs 10")
    assert len(done.err.splitlines()) == 1
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert [(row["items"], row["failed"]) for row in report["rows"]] == [(2, 0)] * 4 + [(2, 1)]
    assert "| failed |" in (tmp_path / "out" / "report.md").read_text()


def test_the_training_split_is_evaluated_on_the_examples_beyond_the_pool(lamps: str) -> None:
    done = fewparse("eval", lamps, "--split", "train", "--decoder", "greedy", "--target", "program")
    assert done.code == 0, done.err
    assert title(done.out).startswith("lamps: 1 train items, target program, 3 training examples")
    done = fewparse("eval", lamps, "--split", "train", "--decoder", "greedy", "--pool", "2")
    assert title(done.out).startswith("lamps: 2 train items, target canonical, 2 training examples")


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
    assert ", target program, " in title(done.out)
    assert title(done.out).endswith("; the constraint accepts 1 of 1 gold outputs")
    assert "\nspeculative W=3  " in done.out


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
