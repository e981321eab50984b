"""Running systems side by side: judging by execution, splits, records and resuming, baselines."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fewparse import Domain, Usage, load_domain
from fewparse.errors import DomainError, ResultsError, UnknownName, UsageError
from fewparse.evaluate.baselines import baselines
from fewparse.evaluate.records import Records
from fewparse.evaluate.report import markdown, plain, rows
from fewparse.evaluate.run import (
    SystemResult,
    check_not_tuned_on,
    every_decoder,
    load_split,
    parser_systems,
    run_evaluation,
)
from fewparse.lm.adapter import Adapter
from fewparse.lm.embedded import EmbeddedModel
from support.adapters import provenance
from support.lamp_domain import FixedSystem
from support.toy_model import ToyModel


def run(domain: Domain, *systems: FixedSystem, records: Records | None = None) -> list[SystemResult]:
    return run_evaluation(domain, systems, domain.test_examples, "test", records)


def test_a_candidate_is_correct_by_its_answer_and_an_exact_match_by_its_program(lamps: Domain) -> None:
    same_answer = FixedSystem("light", ("(on light)", 0.0, 0.0))
    (result,) = run(lamps, same_answer)
    assert [record.correct for record in result.records] == [(True,), (False,)]
    assert [record.exact_match for record in result.records] == [(False,), (False,)]


def test_failing_and_missing_programs_are_wrong(lamps: Domain) -> None:
    failing, nothing = FixedSystem("failing", ("(on fan)", 0.0, 0.0)), FixedSystem("no program", (None, 0.0, 0.0))
    table = rows(run(lamps, failing, nothing, FixedSystem("no candidates")), "failing")
    assert [row["accuracy"]["value"] for row in table] == [0, 0, 0]
    assert [row["items"] for row in table] == [2, 2, 2]


def test_top_k_accuracy_counts_a_correct_candidate_from_its_rank_on(lamps: Domain) -> None:
    system = FixedSystem("late", ("(on radio)", 0.0, 0.0), ("(on fan)", -1.0, -1.0), ("(on lamp)", -2.0, -2.0))
    (row,) = rows(run(lamps, system), "late")
    assert [row["top_k"][k]["value"] for k in ("1", "2", "5", "10")] == [0, 0, 0.5, 0.5]


def test_accuracy_before_reranking_and_by_vote_is_reported_too(lamps: Domain) -> None:
    system = FixedSystem("torn", ("(on radio)", -1.0, -3.0), ("(on lamp)", -1.2, -2.0), ("(on light)", -1.2, -4.0))
    (row,) = rows(run(lamps, system), "torn")
    assert row["accuracy"]["value"] == 0
    assert row["before_reranking"]["value"] == row["by_vote"]["value"] == 0.5


def test_costs_are_means_per_item_and_time_includes_the_prefill(lamps: Domain) -> None:
    (row,) = rows(run(lamps, FixedSystem("a")), "a")
    assert (row["requests"], row["forward_tokens"]) == (2, 7)
    assert (row["decoding_seconds"], row["prompt_seconds"], row["items_per_second"]) == (0.5, 1.5, 0.5)


def test_examples_that_did_not_fit_into_the_context_are_reported(lamps: Domain) -> None:
    (row,) = rows(run(lamps, FixedSystem("a")), "a")
    assert row["examples_dropped"] == 3


def test_systems_are_compared_item_by_item(lamps: Domain) -> None:
    on, off = FixedSystem("on", ("(on lamp)", 0.0, 0.0)), FixedSystem("off", ("(off radio)", 0.0, 0.0))
    table = rows(run(lamps, on, off), "on")
    assert table[1]["comparison"] == {
        "reference": "on",
        "only_this_correct": 1,
        "only_reference_correct": 1,
        "p_value": 1.0,
    }


def test_a_training_example_is_hidden_from_its_own_prompt_and_a_test_item_hides_nothing(lamps: Domain) -> None:
    system = FixedSystem("a")
    run_evaluation(lamps, [system], lamps.examples, "train")
    assert system.hidden == [[utterance] for utterance in system.utterances]
    other = FixedSystem("b")
    run(lamps, other)
    assert other.hidden == [[], []]


def test_the_training_split_has_the_examples_beyond_the_pool(lamps: Domain) -> None:
    assert [item.program for item in lamps.examples] == ["(on lamp)", "(off lamp)", "(on radio)"]
    assert [item.program for item in load_split(lamps, "train")] == ["(off radio)"]
    whole = replace(lamps, examples=(*lamps.examples, *lamps.spare_examples))
    assert load_split(whole, "train") == whole.examples
    assert load_split(lamps, "test") == lamps.test_examples


def test_a_domain_without_held_out_examples_is_an_error_with_a_hint(lamps: Domain) -> None:
    (lamps.data / "test.jsonl").unlink()
    with pytest.raises(UsageError, match="--split train"):
        load_split(lamps, "test")


def test_every_other_data_file_is_a_split(lamps: Domain) -> None:
    (lamps.data / "dev_100.jsonl").write_text('{"utterance": "u", "program": "(on fan)"}\n')
    assert [item.program for item in load_split(lamps, "dev_100")] == ["(on fan)"]
    system = FixedSystem("a")
    run_evaluation(lamps, [system], load_split(lamps, "dev_100"), "dev_100")
    assert (system.utterances, system.hidden) == (["u"], [[]])


def test_the_error_for_an_unknown_split_lists_the_known_ones(lamps: Domain) -> None:
    (lamps.data / "dev_100.jsonl").write_text("")
    for unknown in ("language", "examples", "../lamps/dev_100", "dev_100.jsonl", ""):
        with pytest.raises(UnknownName, match=f"unknown split {unknown!r}"):
            load_split(lamps, unknown)
    with pytest.raises(UnknownName, match=r"Known: test, train, dev_100\.$"):
        load_split(lamps, "zzz")


def test_an_empty_split_is_an_error_of_its_file(lamps: Domain) -> None:
    (lamps.data / "dev_100.jsonl").write_text("\n")
    with pytest.raises(DomainError, match=r"dev_100\.jsonl: there are no examples"):
        load_split(lamps, "dev_100")


def test_a_tuned_model_is_not_evaluated_on_its_training_examples(lamps: Domain) -> None:
    def adapter(data_sha256: str) -> Adapter:
        return Adapter(Path("adapter.gguf"), "", provenance(data_sha256=data_sha256))

    check_not_tuned_on(lamps, "train", "program", adapter(lamps.data_sha256("program")))
    check_not_tuned_on(lamps, "test", "program", adapter("others"))
    check_not_tuned_on(lamps, "train", "program", None)
    whole = replace(lamps, examples=(*lamps.examples, *lamps.spare_examples))
    everything = adapter(whole.data_sha256("program"))
    for domain, tuned in ((whole, everything), (lamps, everything), (lamps, adapter("others"))):
        with pytest.raises(UsageError, match="may have been tuned on"):
            check_not_tuned_on(domain, "train", "program", tuned)


def test_an_interrupted_run_is_resumed(lamps: Domain, tmp_path: Path) -> None:
    path = tmp_path / "out" / "records.jsonl"
    first, second = FixedSystem("a", ("(on lamp)", 0.0, 0.0)), FixedSystem("a", ("(on lamp)", 0.0, 0.0))
    before = run(lamps, first, records=Records(path))
    written = path.read_bytes()
    path.write_bytes(written[:-20])
    after = run(lamps, second, records=Records(path))
    assert second.utterances == first.utterances[1:]
    assert after == before
    assert path.read_bytes() == written


def test_records_of_other_settings_or_other_items_are_not_reused(lamps: Domain, tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    run(lamps, FixedSystem("a", ("(on lamp)", 0.0, 0.0)), records=Records(path))
    other = FixedSystem("a", ("(on lamp)", 0.0, 0.0), note="another setting")
    run(lamps, other, records=Records(path))
    assert len(other.utterances) == 2
    same = FixedSystem("a", ("(on lamp)", 0.0, 0.0))
    run_evaluation(lamps, [same], [*lamps.examples, *lamps.test_examples], "test", Records(path))
    assert same.utterances == [example.utterance for example in lamps.examples]


CHANGES = {
    "an example": ("examples.jsonl", "on lamp please", "light up the lamp please"),
    "an output": ("language.jsonl", "switch off fan", "stop the fan"),
    "the executor": ("executor.py", "no fan here", "no fan there"),
    "a setting": ("domain.toml", "width = 3", "width = 2"),
}


@pytest.mark.parametrize(("file", "old", "new"), CHANGES.values(), ids=CHANGES)
def test_the_settings_of_a_parser_change_with_the_files_of_its_domain(
    file: str, old: str, new: str, lamps: Domain, tmp_path: Path
) -> None:
    def settings() -> object:
        (system,) = parser_systems(load_domain(lamps.folder), ToyModel(), {"own": {"examples": 0}})
        return system.settings

    before = settings()
    assert settings() == before
    text = (lamps.folder / file).read_text()
    assert old in text
    (lamps.folder / file).write_text(text.replace(old, new))
    assert settings() != before


def test_a_record_is_not_reused_if_other_examples_are_hidden(lamps: Domain, tmp_path: Path) -> None:
    item, records = lamps.examples[:1], Records(tmp_path / "records.jsonl")
    run_evaluation(lamps, [FixedSystem("a")], item, "test", records)
    system = FixedSystem("a")
    run_evaluation(lamps, [system], item, "train", records)
    assert system.hidden == [[item[0].utterance]]


@pytest.mark.parametrize("line", ["nonsense\n", "[]\n", '{"settings": "x"}\n', '{"settings": "x", "item": "y"}\n'])
def test_a_file_without_records_is_rejected_and_not_changed(line: str, tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(line)
    with pytest.raises(ResultsError, match=r"records\.jsonl:1: not a record"):
        Records(path)
    assert path.read_text() == line


def test_a_path_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultsError, match="cannot be written"):
        Records(tmp_path / "file" / "records.jsonl")


def test_a_record_is_read_as_it_was_written(lamps: Domain, tmp_path: Path) -> None:
    system = FixedSystem("a", (None, -1.0, -2.0), ("(on lamp)", -2.0, -1.0))
    (result,) = run(lamps, system, records=Records(tmp_path / "r"))
    found = [json.loads(line) for line in (tmp_path / "r").read_text().splitlines()]
    assert [line["utterance"] for line in found] == ["i want it on lamp", "i want it off radio"]
    assert result.records[0].usage == Usage(requests=2, forward_tokens=7)
    assert Records(tmp_path / "r").find(system, lamps.test_examples[0], ()) == result.records[0]


def test_tables_have_the_main_figures_of_every_system(lamps: Domain) -> None:
    table = rows(run(lamps, FixedSystem("one", ("(on lamp)", 0.0, 0.0)), FixedSystem("another")), "one")
    assert "| one | 0.50 (0.09-0.91) | 0.50 |" in markdown(table)
    assert len({line.count("|") for line in markdown(table).splitlines()}) == 1
    lines = plain(table).splitlines()
    assert [start for line in lines if (start := line.split("  ")[0]) in ("system", "one", "another")] == [
        *("system", "one", "another"),
        *("system", "one", "another"),
    ]
    assert max(map(len, lines)) <= 80


def test_baselines_rank_distinct_programs(lamps: Domain) -> None:
    ranked = {b.name: b.predict(lamps.test_examples[0], ()) for b in baselines(lamps, "canonical", ToyModel(), 0)}
    assert len(ranked) == 4
    for name, prediction in ranked.items():
        programs = [candidate.program for candidate in prediction.candidates]
        assert len(set(programs)) == len(programs) > 0, name
        assert prediction.usage == Usage()
    aligned = ranked["no model: output with the best word alignment"].candidates
    assert (aligned[0].program, aligned[0].text) == ("(on lamp)", "switch on lamp")
    nearest = ranked["no model: nearest training utterance, bm25"].candidates
    assert {candidate.program for candidate in nearest} == {"(on lamp)", "(off lamp)", "(on radio)"}


def test_baselines_do_not_retrieve_hidden_examples(lamps: Domain) -> None:
    first = lamps.examples[0]
    for baseline in list(baselines(lamps, "canonical", ToyModel(), 0))[:2]:
        all_candidates = baseline.predict(first, ()).candidates
        without_first = baseline.predict(first, [first]).candidates
        assert first.program in {c.program for c in all_candidates}
        assert first.program not in {c.program for c in without_first}


def test_every_decoder_runs_on_the_real_model_and_constrained_outputs_are_well_formed(
    lamps: Domain, model: EmbeddedModel
) -> None:
    systems = parser_systems(lamps, model, every_decoder(model))
    results = run_evaluation(lamps, systems, lamps.test_examples[:1], "test")
    table = {row["system"]: row for row in rows(results, "greedy")}
    assert len(table) == 8
    allowed = {meaning.canonical for meaning in lamps.known_outputs}
    for result in results:
        if "unconstrained" not in result.name:
            assert set(result.records[0].outputs) <= allowed
            assert None not in result.records[0].programs
    assert table["beam 5"]["requests"] > table["greedy"]["requests"] > 0
    assert len({record.prompt_seconds for result in results for record in result.records}) == 1
