"""Systems are run side by side, judged by execution, and carried on where a run was stopped."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fewparse import Domain, Usage, load_domain
from fewparse.errors import DomainError, ResultsError, UnknownName, UsageError
from fewparse.evaluate.baselines import baselines
from fewparse.evaluate.records import Records
from fewparse.evaluate.report import markdown, plain, rows
from fewparse.evaluate.run import Outcome, evaluate, every_decoder, held_out, prompted, refuse_learned
from fewparse.lm.adapter import Adapter
from fewparse.lm.embedded import EmbeddedModel
from support.adapters import provenance
from support.lamp_domain import Scripted, make_lamps
from support.toy_model import ToyModel


@pytest.fixture
def lamps(tmp_path: Path) -> Domain:
    return make_lamps(tmp_path / "lamps")


def run(domain: Domain, *systems: Scripted, records: Records | None = None) -> list[Outcome]:
    return evaluate(domain, systems, domain.test_examples, "test", records)


def test_an_item_is_right_by_its_answer_and_exact_by_its_program(lamps: Domain) -> None:
    same_answer = Scripted("light", ("(on light)", 0.0, 0.0))
    (outcome,) = run(lamps, same_answer)
    assert [record.right for record in outcome.records] == [(True,), (False,)]
    assert [record.exact for record in outcome.records] == [(False,), (False,)]


def test_failing_programs_and_none_at_all_are_wrong(lamps: Domain) -> None:
    failing, nothing = Scripted("failing", ("(on fan)", 0.0, 0.0)), Scripted("no program", (None, 0.0, 0.0))
    table = rows(run(lamps, failing, nothing, Scripted("silent")), "failing")
    assert [row["accuracy"]["value"] for row in table] == [0, 0, 0]
    assert [row["items"] for row in table] == [2, 2, 2]


def test_the_first_right_candidate_counts_from_its_rank_on(lamps: Domain) -> None:
    system = Scripted("late", ("(on radio)", 0.0, 0.0), ("(on fan)", -1.0, -1.0), ("(on lamp)", -2.0, -2.0))
    (row,) = rows(run(lamps, system), "late")
    assert [row["top"][k]["value"] for k in ("1", "2", "5", "10")] == [0, 0, 0.5, 0.5]


def test_what_the_model_alone_and_a_vote_would_have_said_is_told_beside(lamps: Domain) -> None:
    system = Scripted("torn", ("(on radio)", -1.0, -3.0), ("(on lamp)", -1.2, -2.0), ("(on light)", -1.2, -4.0))
    (row,) = rows(run(lamps, system), "torn")
    assert row["accuracy"]["value"] == 0
    assert row["model_alone"]["value"] == row["by_vote"]["value"] == 0.5


def test_costs_are_those_of_an_item_and_reading_the_prompt_counts_as_time(lamps: Domain) -> None:
    (row,) = rows(run(lamps, Scripted("a")), "a")
    assert (row["requests"], row["forward_tokens"]) == (2, 7)
    assert (row["decoding_seconds"], row["prompt_seconds"], row["items_per_second"]) == (0.5, 1.5, 0.5)


def test_examples_that_did_not_fit_into_the_context_are_told(lamps: Domain) -> None:
    (row,) = rows(run(lamps, Scripted("a")), "a")
    assert row["examples_dropped"] == 3


def test_systems_are_compared_item_by_item(lamps: Domain) -> None:
    on, off = Scripted("on", ("(on lamp)", 0.0, 0.0)), Scripted("off", ("(off radio)", 0.0, 0.0))
    table = rows(run(lamps, on, off), "on")
    assert table[1]["against"] == {"system": "on", "only_this_right": 1, "only_that_right": 1, "p": 1.0}


def test_a_training_example_is_never_shown_to_itself_and_a_test_item_hides_nothing(lamps: Domain) -> None:
    system = Scripted("a")
    evaluate(lamps, [system], lamps.examples, "train")
    assert system.hidden == [[utterance] for utterance in system.asked]
    other = Scripted("b")
    run(lamps, other)
    assert other.hidden == [[], []]


def test_the_training_split_is_what_lies_beyond_the_pool(lamps: Domain) -> None:
    assert [item.program for item in lamps.examples] == ["(on lamp)", "(off lamp)", "(on radio)"]
    assert [item.program for item in held_out(lamps, "train")] == ["(off radio)"]
    whole = replace(lamps, examples=(*lamps.examples, *lamps.spare_examples))
    assert held_out(whole, "train") == whole.examples
    assert held_out(lamps, "test") == lamps.test_examples


def test_a_domain_without_held_out_examples_says_what_to_do(lamps: Domain) -> None:
    (lamps.data / "test.jsonl").unlink()
    with pytest.raises(UsageError, match="--split train"):
        held_out(lamps, "test")


def test_every_other_file_of_the_data_is_a_split_of_its_own_name(lamps: Domain) -> None:
    (lamps.data / "dev_100.jsonl").write_text('{"utterance": "u", "program": "(on fan)"}\n')
    assert [item.program for item in held_out(lamps, "dev_100")] == ["(on fan)"]
    system = Scripted("a")
    evaluate(lamps, [system], held_out(lamps, "dev_100"), "dev_100")
    assert (system.asked, system.hidden) == (["u"], [[]])


def test_an_unknown_split_lists_those_that_there_are(lamps: Domain) -> None:
    (lamps.data / "dev_100.jsonl").write_text("")
    for unknown in ("language", "examples", "../lamps/dev_100", "dev_100.jsonl", ""):
        with pytest.raises(UnknownName, match=f"unknown split {unknown!r}"):
            held_out(lamps, unknown)
    with pytest.raises(UnknownName, match=r"Known: test, train, dev_100\.$"):
        held_out(lamps, "zzz")


def test_a_split_without_items_is_a_mistake_of_its_file(lamps: Domain) -> None:
    (lamps.data / "dev_100.jsonl").write_text("\n")
    with pytest.raises(DomainError, match=r"dev_100\.jsonl: there are no examples"):
        held_out(lamps, "dev_100")


def test_a_tuned_model_is_not_judged_by_what_it_may_have_learned(lamps: Domain) -> None:
    def adapter(learned: str) -> Adapter:
        return Adapter(Path("adapter.gguf"), "", provenance(data_sha256=learned))

    refuse_learned(lamps, "train", "program", adapter(lamps.data_sha256("program")))
    refuse_learned(lamps, "test", "program", adapter("others"))
    refuse_learned(lamps, "train", "program", None)
    whole = replace(lamps, examples=(*lamps.examples, *lamps.spare_examples))
    everything = adapter(whole.data_sha256("program"))
    for domain, learned in ((whole, everything), (lamps, everything), (lamps, adapter("others"))):
        with pytest.raises(UsageError, match="may have learned"):
            refuse_learned(domain, "train", "program", learned)


def test_a_run_that_was_stopped_is_carried_on(lamps: Domain, tmp_path: Path) -> None:
    path = tmp_path / "out" / "records.jsonl"
    first, second = Scripted("a", ("(on lamp)", 0.0, 0.0)), Scripted("a", ("(on lamp)", 0.0, 0.0))
    before = run(lamps, first, records=Records(path))
    written = path.read_bytes()
    path.write_bytes(written[:-20])
    after = run(lamps, second, records=Records(path))
    assert second.asked == first.asked[1:]
    assert after == before
    assert path.read_bytes() == written


def test_records_of_other_settings_or_other_items_do_not_count(lamps: Domain, tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    run(lamps, Scripted("a", ("(on lamp)", 0.0, 0.0)), records=Records(path))
    other = Scripted("a", ("(on lamp)", 0.0, 0.0), note="another setting")
    run(lamps, other, records=Records(path))
    assert len(other.asked) == 2
    same = Scripted("a", ("(on lamp)", 0.0, 0.0))
    evaluate(lamps, [same], [*lamps.examples, *lamps.test_examples], "test", Records(path))
    assert same.asked == [example.utterance for example in lamps.examples]


CHANGES = {
    "an example": ("examples.jsonl", "on lamp please", "light up the lamp please"),
    "an output": ("language.jsonl", "switch off fan", "stop the fan"),
    "the executor": ("executor.py", "no fan here", "no fan there"),
    "a setting": ("domain.toml", "width = 3", "width = 2"),
}


@pytest.mark.parametrize(("file", "old", "new"), CHANGES.values(), ids=CHANGES)
def test_a_parser_is_another_system_once_a_file_of_its_domain_has_changed(
    file: str, old: str, new: str, lamps: Domain, tmp_path: Path
) -> None:
    def settings() -> object:
        (system,) = prompted(load_domain(lamps.folder), ToyModel(), {"own": {"examples": 0}})
        return system.settings

    before = settings()
    assert settings() == before
    text = (lamps.folder / file).read_text()
    assert old in text
    (lamps.folder / file).write_text(text.replace(old, new))
    assert settings() != before


def test_an_item_that_was_shown_to_itself_is_parsed_anew_where_it_must_not_be(
    lamps: Domain, tmp_path: Path
) -> None:
    item, records = lamps.examples[:1], Records(tmp_path / "records.jsonl")
    evaluate(lamps, [Scripted("a")], item, "test", records)
    system = Scripted("a")
    evaluate(lamps, [system], item, "train", records)
    assert system.hidden == [[item[0].utterance]]


@pytest.mark.parametrize("line", ["nonsense\n", "[]\n", '{"settings": "x"}\n', '{"settings": "x", "item": "y"}\n'])
def test_a_file_that_holds_no_records_is_refused_and_left_alone(line: str, tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(line)
    with pytest.raises(ResultsError, match=r"records\.jsonl:1: not a record"):
        Records(path)
    assert path.read_text() == line


def test_a_place_that_cannot_be_written_is_an_error_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultsError, match="cannot be written"):
        Records(tmp_path / "file" / "records.jsonl")


def test_a_record_survives_its_file(lamps: Domain, tmp_path: Path) -> None:
    system = Scripted("a", (None, -1.0, -2.0), ("(on lamp)", -2.0, -1.0))
    (outcome,) = run(lamps, system, records=Records(tmp_path / "r"))
    found = [json.loads(line) for line in (tmp_path / "r").read_text().splitlines()]
    assert [line["utterance"] for line in found] == ["i want it on lamp", "i want it off radio"]
    assert outcome.records[0].usage == Usage(requests=2, forward_tokens=7)
    assert Records(tmp_path / "r").find(system, lamps.test_examples[0], ()) == outcome.records[0]


def test_tables_have_the_main_figures_of_every_system(lamps: Domain) -> None:
    table = rows(run(lamps, Scripted("one", ("(on lamp)", 0.0, 0.0)), Scripted("another")), "one")
    assert "| one | 0.50 (0.09-0.91) | 0.50 |" in markdown(table)
    assert len({line.count("|") for line in markdown(table).splitlines()}) == 1
    lines = plain(table).splitlines()
    assert [line.split("  ")[0] for line in lines] == ["system", "one", "another"]


def test_without_a_model_programs_are_ranked_by_likeness_each_once(lamps: Domain) -> None:
    ranked = {b.name: b.predict(lamps.test_examples[0], ()) for b in baselines(lamps, "canonical", ToyModel(), 0)}
    assert len(ranked) == 4
    for name, prediction in ranked.items():
        programs = [candidate.program for candidate in prediction.candidates]
        assert len(set(programs)) == len(programs) > 0, name
        assert prediction.usage == Usage()
    explained = ranked["no model: output that explains the utterance best"].candidates
    assert (explained[0].program, explained[0].text) == ("(on lamp)", "switch on lamp")
    nearest = ranked["no model: nearest training utterance, bm25"].candidates
    assert {candidate.program for candidate in nearest} == {"(on lamp)", "(off lamp)", "(on radio)"}


def test_without_a_model_a_training_example_does_not_find_itself(lamps: Domain) -> None:
    first = lamps.examples[0]
    for baseline in list(baselines(lamps, "canonical", ToyModel(), 0))[:2]:
        seen = baseline.predict(first, ()).candidates
        hidden = baseline.predict(first, [first]).candidates
        assert first.program in {c.program for c in seen}
        assert first.program not in {c.program for c in hidden}


def test_every_decoder_runs_on_the_real_model_and_constrained_outputs_are_well_formed(
    lamps: Domain, model: EmbeddedModel
) -> None:
    systems = prompted(lamps, model, every_decoder())
    outcomes = evaluate(lamps, systems, lamps.test_examples[:1], "test")
    table = {row["system"]: row for row in rows(outcomes, "greedy")}
    assert len(table) == 8
    said = {meaning.canonical for meaning in lamps.known_outputs}
    for outcome in outcomes:
        if "unconstrained" not in outcome.name:
            assert set(outcome.records[0].outputs) <= said
            assert None not in outcome.records[0].programs
    assert table["beam 5"]["requests"] > table["greedy"]["requests"] > 0
    assert len({record.prompt_seconds for outcome in outcomes for record in outcome.records}) == 1
