"""Confidence, decision and question of a parse, with the real model and calibrations of chosen numbers."""

import re
from pathlib import Path
from typing import Any

import pytest

from fewparse.confidence.question import indented
from fewparse.domains.load import load_domain
from fewparse.lm.embedded import EmbeddedModel
from fewparse.parser import Parser
from support.calibrations import calibrate_parser
from support.cli_runner import HALL
from support.domain_files import copy_starter

OPTIONS: dict[str, Any] = {"examples": 2, "decoder": "beam", "width": 2}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return copy_starter(tmp_path / "home")


def parser_of(home: Path, model: EmbeddedModel, **options: Any) -> Parser:
    return Parser.from_domain(home, model, **{**OPTIONS, **options})


def test_without_a_calibration_nothing_is_invented(home: Path, model: EmbeddedModel) -> None:
    parse = parser_of(home, model).parse(HALL)
    assert (parse.confidence, parse.decision, parse.question, parse.features) == (None, None, None, None)
    assert parse.answer is not None


def test_a_calibrated_parse_has_a_confidence_and_is_executed(home: Path, model: EmbeddedModel) -> None:
    calibrate_parser(parser_of(home, model), right=3.0, scope=5.0)
    parse = parser_of(home, model).parse(HALL)
    assert parse.confidence == pytest.approx(0.9526 * 0.9933, abs=1e-3)
    assert (parse.decision, parse.question) == ("execute", None)
    assert parse.as_dict()["decision"] == "execute"


def test_an_unsure_parse_comes_with_a_question_of_different_readings(home: Path, model: EmbeddedModel) -> None:
    calibrate_parser(parser_of(home, model), right=0.0)
    parse = parser_of(home, model).parse(HALL)
    assert parse.decision == "confirm"
    assert parse.question is not None
    assert parse.question.text.startswith("Did you mean")
    programs = [choice.program for choice in parse.question.choices]
    assert programs[0] == parse.program
    assert len(set(programs)) == len(programs)
    assert parse.as_dict()["question"]["choices"][0]["candidate"] == 0
    assert parser_of(home, model, max_risk=0.4).parse(HALL).decision == "execute"


def test_an_utterance_out_of_scope_is_declined(home: Path, model: EmbeddedModel) -> None:
    calibrate_parser(parser_of(home, model), right=3.0, scope=-3.0)
    parse = parser_of(home, model).parse("order a pizza")
    assert (parse.decision, parse.question) == ("decline", None)
    assert parser_of(home, model, max_risk=1).parse("order a pizza").decision == "execute"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [({"width": 3}, "width 2"), ({"decoder": "greedy"}, "decoder beam"), ({"retriever": "bm25"}, "retriever emb")],
)
def test_the_calibration_of_another_use_is_ignored_with_a_warning_that_says_what_to_run(
    changed: dict[str, Any], reason: str, home: Path, model: EmbeddedModel
) -> None:
    calibrate_parser(parser_of(home, model))
    with pytest.warns(UserWarning, match=f"{reason}.*fewparse calibrate {re.escape(str(home))}"):
        parser = parser_of(home, model, **changed)
    assert parser.parse(HALL).confidence is None


def test_a_calibration_is_not_for_a_constraint_that_the_caller_made(home: Path, model: EmbeddedModel) -> None:
    calibrate_parser(parser_of(home, model))
    constraint = parser_of(home, model).domain.constraint(model.vocabulary, "program")
    with pytest.warns(UserWarning, match="another constraint than the domain"):
        parser_of(home, model, constraint=constraint)


def test_a_calibration_that_uses_answers_is_not_used_if_programs_are_not_executed(
    home: Path, model: EmbeddedModel
) -> None:
    calibrate_parser(parser_of(home, model), column="fails")
    assert parser_of(home, model).parse(HALL).confidence is not None
    with pytest.warns(UserWarning, match="programs are not executed"):
        parser = parser_of(home, model, execute=False)
    assert parser.parse(HALL).confidence is None


def test_the_calibration_of_another_grammar_is_ignored(home: Path, model: EmbeddedModel) -> None:
    calibrate_parser(parser_of(home, model))
    grammar = home / "grammar.lark"
    grammar.write_text(grammar.read_text().replace('"radio"', '"radio" | "heater"'))
    with pytest.warns(UserWarning, match="another grammar"):
        parser_of(home, model)


def test_more_examples_do_not_make_a_calibration_useless(home: Path, model: EmbeddedModel) -> None:
    calibrate_parser(parser_of(home, model))
    with (home / "examples.jsonl").open("a") as file:
        file.write('{"utterance": "hall lamp on", "program": "(set (lamp hall) on)"}\n')
    assert parser_of(home, model).parse(HALL).confidence is not None


def test_a_program_with_effects_is_not_executed_before_it_is_confirmed(home: Path, model: EmbeddedModel) -> None:
    settings = home / "domain.toml"
    settings.write_text(settings.read_text().replace("\n[retrieve]", 'execute = "on-request"\n\n[retrieve]', 1))
    calibrate_parser(parser_of(home, model, execute=True), right=0.0)
    unsure = parser_of(home, model, execute=True).parse(HALL)
    assert (unsure.decision, unsure.answer, unsure.answer_error) == ("confirm", None, None)
    sure = parser_of(home, model, execute=True, max_risk=0.4).parse(HALL)
    assert (sure.decision, sure.answer["device"], sure.answer["room"]) == ("execute", "lamp", "hall")


def test_a_question_uses_the_words_of_the_grammar_whatever_the_target(model: EmbeddedModel) -> None:
    from fewparse.confidence.question import wording
    from fewparse.example import Candidate

    program = "(when (next (meetings (with me Elena))))"
    candidate = Candidate(program, 0.0, program, 0.0)
    assert wording(load_domain("calendar"), "program", candidate) == "when is my next meeting with Elena"


def test_a_long_program_is_indented() -> None:
    short = "(when (next (meetings)))"
    assert indented(short) == short
    long = f"(first {' '.join(f'(second (third {i}))' for i in range(6))})"
    assert len(indented(long).splitlines()) > 1
    assert "".join(line.strip() for line in indented(long).splitlines()).replace(" ", "") == long.replace(" ", "")
    assert indented('{"a": [' + ", ".join(map(str, range(60))) + "]}").startswith('{\n  "a": [\n    0,')
