"""Reviewing the log: the order, checked programs, and appending to the files of a domain."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fewparse.confidence.feedback import FeedbackLog
from fewparse.confidence.review import Conflict, add_example, add_out_of_scope, checked_example, to_review
from fewparse.domains.domain import Domain
from fewparse.domains.load import load_domain
from fewparse.errors import UsageError
from fewparse.example import Example
from support.domain_files import copy_starter
from support.parses import parse_of

NEW = Example("make it bright in the hall", "(set (lamp hall) on)")


@pytest.fixture
def domain(tmp_path: Path) -> Domain:
    return load_domain(copy_starter(tmp_path / "home"))


def lines(domain: Domain, name: str = "examples.jsonl") -> list[dict[str, str]]:
    path = domain.folder / name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_what_users_said_comes_first_then_the_least_confident(tmp_path: Path) -> None:
    log = FeedbackLog(tmp_path / "feedback.sqlite")
    certain = log.record(parse_of("certain", "(a)", confidence=0.99, decision="execute"))
    unsure = log.record(parse_of("unsure", "(a)", confidence=0.5, decision="confirm"))
    log.record(parse_of("doubtful", "(a)", confidence=0.2, decision="confirm"))
    corrected = log.record(parse_of("corrected", "(a)", confidence=0.97, decision="execute"))
    log.record(parse_of("far", "(a)", confidence=0.01, decision="decline"))
    accepted = log.record(parse_of("accepted", "(a)", confidence=0.6, decision="confirm"))
    log.record(parse_of("unsure", "(a)", confidence=0.4, decision="confirm"))
    log.resolve(corrected, "corrected", "(b)")
    log.resolve(accepted, "accepted")
    order = ["corrected", "doubtful", "unsure", "far"]
    assert [entry.utterance for entry in to_review(log.entries())] == order
    assert unsure not in [entry.id for entry in to_review(log.entries())]
    everything = {entry.utterance for entry in to_review(log.entries(), everything=True)}
    assert everything == {*order, "certain", "accepted"}
    log.mark_reviewed(corrected)
    assert [entry.utterance for entry in to_review(log.entries())] == order[1:]
    assert certain


def test_what_a_user_said_is_reviewed_even_if_the_utterance_was_executed_later(tmp_path: Path) -> None:
    log = FeedbackLog(tmp_path / "feedback.sqlite")
    rejected = log.record(parse_of("lamp", "(a)", confidence=0.6, decision="confirm"))
    for confidence in (0.7, 0.98):
        log.record(parse_of("lamp", "(a)", confidence=confidence, decision="execute"))
    other = log.record(parse_of("radio", "(a)", confidence=0.5, decision="confirm"))
    log.resolve(rejected, "rejected")
    assert [entry.id for entry in to_review(log.entries())] == [rejected, other]
    assert log.mark_reviewed(rejected)
    assert [entry.id for entry in to_review(log.entries(), everything=True)] == [other]


def test_a_typed_program_is_checked_by_the_grammar_with_a_caret(domain: Domain) -> None:
    assert checked_example(domain, NEW.utterance, NEW.program) == NEW
    with pytest.raises(UsageError) as caught:
        checked_example(domain, NEW.utterance, "(set (lamp hal) on)")
    assert caught.value.message.splitlines()[1:] == ["    (set (lamp hal) on)", "                  ^"]


def test_a_canonical_utterance_becomes_its_program() -> None:
    calendar = load_domain("calendar")
    found = checked_example(calendar, "next one with Elena?", "when is my next meeting with Elena")
    assert found.program == "(when (next (meetings (with me Elena))))"
    assert found.canonical == "when is my next meeting with Elena"
    assert checked_example(calendar, "next one with Elena?", found.program) == found
    with pytest.raises(UsageError) as caught:
        checked_example(calendar, "next one?", "when is my next meeting with Elsa")
    assert "when is my next meeting with Elsa" in caught.value.message


def test_an_example_is_appended_once(domain: Domain) -> None:
    before = lines(domain)
    assert [add_example(domain, NEW), add_example(domain, NEW)] == ["added", "present"]
    assert lines(domain) == [*before, {"utterance": NEW.utterance, "program": NEW.program}]
    assert NEW in load_domain(domain.folder).examples


def test_a_file_without_a_last_line_break_is_continued_on_a_new_line(domain: Domain) -> None:
    path = domain.folder / "examples.jsonl"
    path.write_text(path.read_text().rstrip("\n"))
    before = lines(domain)
    add_example(domain, NEW)
    assert len(lines(domain)) == len(before) + 1


OTHER = Example(NEW.utterance, "(set (lamp hall) off)")


@pytest.mark.parametrize(
    ("options", "programs"),
    [({"replace": True}, [OTHER.program]), ({"beside": True}, [NEW.program, OTHER.program])],
)
def test_another_program_for_an_utterance_is_a_conflict_to_decide(
    options: dict[str, bool], programs: list[str], domain: Domain
) -> None:
    add_example(domain, NEW)
    with pytest.raises(Conflict) as caught:
        add_example(domain, OTHER)
    assert caught.value.found == (NEW.program,)
    add_example(domain, OTHER, **options)
    assert [line["program"] for line in lines(domain) if line["utterance"] == NEW.utterance] == programs


def test_an_utterance_is_in_scope_or_out_of_it(domain: Domain) -> None:
    assert [add_out_of_scope(domain, NEW.utterance), add_out_of_scope(domain, NEW.utterance)] == [
        "added",
        "present",
    ]
    with pytest.raises(Conflict, match="out of scope"):
        add_example(domain, NEW)
    add_example(domain, NEW, replace=True)
    assert lines(domain, "out_of_scope.jsonl") == []
    with pytest.raises(Conflict):
        add_out_of_scope(domain, NEW.utterance)
    add_out_of_scope(domain, NEW.utterance, replace=True)
    assert [line["utterance"] for line in lines(domain, "out_of_scope.jsonl")] == [NEW.utterance]
    assert NEW.utterance not in [line["utterance"] for line in lines(domain)]


def test_an_utterance_of_the_test_set_is_not_learned(domain: Domain) -> None:
    item = domain.test_examples[0]
    with pytest.raises(UsageError, match="test set"):
        add_example(domain, item)
    with pytest.raises(UsageError, match="test set"):
        add_out_of_scope(domain, item.utterance)


@pytest.mark.parametrize("add", [lambda d: add_example(d, NEW), lambda d: add_out_of_scope(d, "order a pizza")])
def test_an_installed_domain_is_not_changed(add: Callable[[Domain], object]) -> None:
    with pytest.raises(UsageError, match="installed package"):
        add(load_domain("starter"))


def test_reviews_at_the_same_time_add_every_example_once(domain: Domain) -> None:
    examples = [Example(f"lamp number {i % 10}", "(set (lamp hall) on)") for i in range(40)]
    before = len(lines(domain))
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda example: add_example(domain, example), examples))
    assert results.count("added") == 10
    assert len(lines(domain)) == before + 10
