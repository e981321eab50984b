"""`fewparse parse` on a calibrated domain: exit codes, the question, the log; `fewparse feedback`."""

import json
from pathlib import Path

import pytest

from fewparse.cli import confirm
from fewparse.cli.domain import make_domain
from fewparse.confidence.feedback import FeedbackLog
from fewparse.domains.load import load_domain
from fewparse.domains.trust import trust_folder
from fewparse.lm.embedded import EmbeddedModel
from fewparse.parser import Parser
from support.calibrations import calibrate_parser
from support.cli_runner import HALL, CommandResult, fewparse
from support.parses import parse_of

GREEDY = ("--decoder", "greedy")
ANSWER = '= {"device": "lamp", "room": "hall", "state": "on"}'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return trust_folder(make_domain("starter", tmp_path / "home"))


def calibrated(home: Path, model: EmbeddedModel, right: float = 3.0, scope: float | None = 5.0) -> Path:
    parser = Parser.from_domain(home, model, adapter=home / "adapter-program.gguf", decoder="greedy")
    calibrate_parser(parser, right, scope)
    return home


def parse(home: Path, *arguments: str, utterance: str = HALL) -> CommandResult:
    return fewparse("parse", str(home), utterance, *GREEDY, *arguments)


@pytest.mark.parametrize(
    ("right", "scope", "arguments", "code", "shown"),
    [
        (3.0, 5.0, (), 0, ANSWER),
        (0.0, 5.0, (), 3, "Did you mean: (set (lamp hall) on)?"),
        (0.0, 5.0, ("--yes",), 0, ANSWER),
        (0.0, 5.0, ("--max-risk", "0.4"), 0, ANSWER),
        (0.0, -5.0, (), 4, "declined: the utterance seems to be out of scope"),
        (0.0, -5.0, ("--yes",), 4, "declined"),
        (0.0, -5.0, ("--max-risk", "1"), 0, ANSWER),
    ],
)
def test_the_exit_code_and_the_output_follow_the_decision(
    right: float, scope: float, arguments: tuple[str, ...], code: int, shown: str, home: Path, model: EmbeddedModel
) -> None:
    ended = parse(calibrated(home, model, right, scope), *arguments)
    assert (ended.code, ended.err) == (code, "")
    assert shown in ended.out
    assert (ANSWER in ended.out) == (code == 0)


def test_json_has_the_decision_and_the_question(home: Path, model: EmbeddedModel) -> None:
    ended = parse(calibrated(home, model, right=0.0), "--json")
    found = json.loads(ended.out)
    assert (ended.code, found["decision"]) == (3, "confirm")
    assert found["question"]["choices"][0]["program"] == found["program"]
    assert found["confidence"] == pytest.approx(0.4967, abs=1e-3)


def test_of_several_lines_the_exit_code_is_that_of_the_worst(home: Path, model: EmbeddedModel) -> None:
    calibrated(home, model, right=0.0)
    ended = fewparse("parse", str(home), *GREEDY, stdin=f"{HALL}\n{HALL}\n")
    assert ended.code == 3
    assert ended.out.count("Did you mean") == 2


def test_another_decoder_is_a_warning_that_says_what_to_run(home: Path, model: EmbeddedModel) -> None:
    ended = fewparse("parse", str(calibrated(home, model)), HALL, "--decoder", "beam", "--json")
    assert ended.code == 0
    assert "was made for decoder greedy" in ended.err
    assert f"fewparse calibrate {home}" in ended.err.replace("\n", "")
    assert json.loads(ended.out)["confidence"] is None


def test_a_damaged_calibration_is_an_error(home: Path) -> None:
    (home / "calibration.json").write_text("{")
    ended = parse(home)
    assert (ended.code, ended.out) == (1, "")
    assert "calibration.json is not a file of calibrations" in ended.err


@pytest.mark.parametrize(
    ("typed", "code", "outcome"), [("what\ny", 0, "accepted"), ("1", 0, "accepted"), ("n", 3, "rejected")]
)
def test_in_a_terminal_the_question_is_asked_until_it_is_answered(
    typed: str, code: int, outcome: str, home: Path, model: EmbeddedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    calibrated(home, model, right=0.0)
    answers = iter(typed.splitlines())
    monkeypatch.setattr("builtins.input", lambda prompt="": next(answers))
    monkeypatch.setattr(confirm, "in_terminal", lambda: True)
    ended = parse(home, "--log")
    assert ended.code == code
    assert (ANSWER in ended.out) == (code == 0)
    assert ("not executed" in ended.out) == (code != 0)
    (entry,) = FeedbackLog.of(load_domain(home)).entries()
    assert (entry.decision, entry.outcome) == ("confirm", outcome)


def test_the_log_has_the_decision_even_if_the_program_is_executed_without_a_question(
    home: Path, model: EmbeddedModel
) -> None:
    assert parse(calibrated(home, model, right=0.0), "--yes", "--log").code == 0
    (entry,) = FeedbackLog.of(load_domain(home)).entries()
    assert (entry.decision, entry.outcome) == ("confirm", None)


def test_only_domains_that_ask_for_it_are_logged(home: Path) -> None:
    log = FeedbackLog.of(load_domain(home))
    parse(home)
    assert not log.path.exists()
    settings = home / "domain.toml"
    settings.write_text(settings.read_text() + "\n[feedback]\nlog = true\n")
    parse(home)
    parse(home, "--no-log")
    assert [entry.utterance for entry in log.entries()] == [HALL]


def logged(home: Path) -> FeedbackLog:
    log = FeedbackLog.of(load_domain(home))
    log.record(parse_of("hall lamp on please", "(set (lamp hall) off)", confidence=0.3, decision="confirm"))
    log.record(parse_of("order a pizza", "(set (lamp hall) on)", confidence=0.1, decision="decline"))
    return log


def test_the_log_is_listed_shown_exported_and_forgotten(home: Path, tmp_path: Path) -> None:
    logged(home)
    listed = fewparse("feedback", "list", str(home)).out
    assert "confirm" in listed
    assert "order a pizza" in listed
    assert "(set (lamp hall) off)" in fewparse("feedback", "show", str(home), "1").out
    exported = fewparse("feedback", "export", str(home)).out.splitlines()
    assert [json.loads(line)["utterance"] for line in exported] == ["hall lamp on please", "order a pizza"]
    fewparse("feedback", "export", str(home), "--out", str(tmp_path / "log.jsonl"))
    assert (tmp_path / "log.jsonl").read_text().splitlines() == exported
    assert fewparse("feedback", "forget", str(home), "1").out == "1 entries deleted\n"
    assert fewparse("feedback", "forget", str(home)).code == 2
    assert fewparse("feedback", "forget", str(home), "--all").out == "1 entries deleted\n"
    assert "The log is empty" in fewparse("feedback", "list", str(home)).out
    assert fewparse("feedback", "show", str(home), "1").code == 2


def test_a_review_adds_what_is_right_and_what_is_out_of_scope(home: Path) -> None:
    log = logged(home)
    before = (home / "examples.jsonl").read_text()
    ended = fewparse("feedback", "review", str(home), stdin="(set (lamp hal) on)\n(set (lamp hall) on)\no\n")
    assert ended.code == 0
    assert "^" in ended.err
    assert "2 added" in ended.out
    added = (home / "examples.jsonl").read_text().removeprefix(before)
    assert json.loads(added) == {"utterance": "hall lamp on please", "program": "(set (lamp hall) on)"}
    assert json.loads((home / "out_of_scope.jsonl").read_text()) == {"utterance": "order a pizza"}
    assert all(entry.reviewed for entry in log.entries())
    assert "There is nothing to review." in fewparse("feedback", "review", str(home)).out
    assert fewparse("check", str(home)).code == 0


def test_a_review_asks_about_an_utterance_that_is_an_example_with_another_program(home: Path) -> None:
    log = FeedbackLog.of(load_domain(home))
    example = load_domain(home).examples[0]
    other = "(set (lamp hall) off)" if example.program != "(set (lamp hall) off)" else "(set (lamp hall) on)"
    log.resolve(log.record(parse_of(example.utterance, example.program)), "corrected", other)
    before = (home / "examples.jsonl").read_text()
    left = fewparse("feedback", "review", str(home), stdin="y\nno\n")
    assert "is already in the domain, as" in left.err
    assert (home / "examples.jsonl").read_text() == before
    log.resolve(1, "corrected", other)
    fewparse("feedback", "review", str(home), stdin="y\nr\n")
    programs = {e.utterance: e.program for e in load_domain(home).examples}
    assert programs[example.utterance] == other
    assert len(load_domain(home).examples) == len(before.splitlines())


def test_two_reviews_at_the_same_time_deal_with_every_entry_once(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = logged(home)
    answers = iter(["y", "o", "q"])

    def answer(question: str = "") -> str:
        monkeypatch.setattr("builtins.input", lambda question="": next(answers))
        assert "1 added" in fewparse("feedback", "review", str(home), "--limit", "1").out  # the other review
        return "(set (lamp hall) on)"

    monkeypatch.setattr("builtins.input", answer)
    ended = fewparse("feedback", "review", str(home))
    assert "another review has dealt with this entry meanwhile" in ended.err
    assert "1 added" in ended.out
    assert all(entry.reviewed for entry in log.entries())
    assert load_domain(home).examples[-1].program == "(set (lamp hall) off)"


def test_a_domain_that_is_not_the_users_own_is_not_reviewed() -> None:
    ended = fewparse("feedback", "review", "calendar")
    assert (ended.code, ended.out) == (2, "")
    assert "to a folder of your own" in ended.err


def test_a_review_that_ends_early_leaves_the_rest(home: Path) -> None:
    log = logged(home)
    assert "0 added" in fewparse("feedback", "review", str(home), stdin="s\nq\n").out
    assert not any(entry.reviewed for entry in log.entries())


def test_too_few_examples_to_calibrate_are_an_error_with_their_number(home: Path) -> None:
    ended = fewparse("calibrate", str(home), *GREEDY)
    assert (ended.code, ended.out) == (1, "")
    assert "the domain starter has 48 examples, too few to calibrate" in ended.err
    assert "at least 50" in ended.err
