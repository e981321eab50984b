"""The feedback log: entries, outcomes, deletion, damage, several writers."""

import multiprocessing
import sqlite3
from pathlib import Path

import pytest

from fewparse.confidence.feedback import FeedbackLog, Outcome, feedback_path
from fewparse.domains.load import load_domain
from fewparse.errors import FeedbackError, UnknownName, UsageError
from fewparse.example import Parse
from support.domain_files import copy_starter
from support.parses import parse_of


@pytest.fixture
def log(tmp_path: Path) -> FeedbackLog:
    return FeedbackLog(tmp_path / "log" / "feedback.sqlite")


def test_an_entry_has_the_parse_and_later_what_the_user_said(log: FeedbackLog) -> None:
    number = log.record(
        parse_of("lamp on", "(on lamp)", "(off lamp)", confidence=0.7, decision="confirm"), "hello"
    )
    (entry,) = log.entries()
    assert (entry.id, entry.utterance, entry.context, entry.decision) == (number, "lamp on", "hello", "confirm")
    assert [candidate.program for candidate in entry.candidates] == ["(on lamp)", "(off lamp)"]
    assert (entry.confidence, entry.outcome, entry.reviewed) == (0.7, None, False)
    assert entry.version
    log.resolve(number, "chosen", "(off lamp)")
    (entry,) = log.entries()
    assert (entry.outcome, entry.program) == ("chosen", "(off lamp)")


def test_the_log_is_kept_by_the_file(log: FeedbackLog) -> None:
    log.record(parse_of("lamp on", "(on lamp)"))
    assert [entry.utterance for entry in FeedbackLog(log.path).entries()] == ["lamp on"]


@pytest.mark.parametrize(
    ("outcome", "program"), [("accepted", "(on lamp)"), ("chosen", None), ("corrected", None)]
)
def test_a_program_belongs_to_chosen_and_corrected_only(
    outcome: Outcome, program: str | None, log: FeedbackLog
) -> None:
    number = log.record(parse_of("lamp on", "(on lamp)"))
    with pytest.raises(UsageError, match="program"):
        log.resolve(number, outcome, program)
    assert log.entries()[0].outcome is None


def test_unknown_entries_and_outcomes_are_usage_errors(log: FeedbackLog) -> None:
    with pytest.raises(UsageError, match="no entry 7"):
        log.resolve(7, "accepted")
    with pytest.raises(UnknownName, match="outcome"):
        log.resolve(7, "acepted")  # type: ignore[arg-type]


def test_an_entry_is_marked_as_reviewed_once_and_again_after_a_new_answer(log: FeedbackLog) -> None:
    number = log.record(parse_of("lamp on", "(on lamp)"))
    assert [log.mark_reviewed(number), log.mark_reviewed(number)] == [True, False]
    log.resolve(number, "rejected")
    assert log.mark_reviewed(number)


def test_forgotten_text_is_not_in_the_file_any_more(log: FeedbackLog) -> None:
    numbers = [log.record(parse_of(f"secret number {i}", "(on lamp)")) for i in range(3)]
    assert log.forget(numbers[:1]) == 1
    assert [entry.id for entry in log.entries()] == numbers[1:]
    assert log.forget() == 2
    assert log.entries() == []
    assert b"secret" not in log.path.read_bytes()


def test_nothing_is_created_by_reading(log: FeedbackLog) -> None:
    assert (log.entries(), log.forget()) == ([], 0)
    assert not log.path.exists()


@pytest.mark.parametrize("content", [b"not a database" * 100, b""])
def test_a_damaged_log_is_set_aside_and_a_new_one_begun(content: bytes, log: FeedbackLog) -> None:
    warnings: list[str] = []
    log = FeedbackLog(log.path, warnings.append)
    log.path.parent.mkdir()
    log.path.write_bytes(content)
    log.record(parse_of("lamp on", "(on lamp)"))
    assert [entry.utterance for entry in log.entries()] == ["lamp on"]
    aside = list(log.path.parent.glob("feedback.sqlite.corrupt-*"))
    assert [path.read_bytes() for path in aside] == ([content] if content else [])
    assert len(warnings) == len(aside)
    assert all("is damaged" in warning and str(aside[0]) in warning for warning in warnings)


def test_a_file_of_another_program_is_set_aside(log: FeedbackLog) -> None:
    log.path.parent.mkdir()
    with sqlite3.connect(log.path) as connection:
        connection.execute("CREATE TABLE other (id INTEGER)")
    connection.close()
    log.record(parse_of("lamp on", "(on lamp)"))
    assert len(log.entries()) == 1


def test_entries_whose_content_was_changed_are_set_aside(log: FeedbackLog) -> None:
    log.record(parse_of("lamp on", "(on lamp)"))
    with sqlite3.connect(log.path) as connection:
        connection.execute("UPDATE entries SET candidates = '['")
    connection.close()
    assert log.entries() == []


def test_a_log_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FeedbackError, match="cannot be used"):
        FeedbackLog(tmp_path / "file" / "feedback.sqlite").record(parse_of("lamp on", "(on lamp)"))


def write(path: Path, name: str) -> None:
    log = FeedbackLog(path)
    for i in range(20):
        log.record(parse_of(f"{name} {i}", "(on lamp)"))


def test_processes_that_write_at_the_same_time_lose_nothing(log: FeedbackLog) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=write, args=(log.path, name)) for name in ("first", "second")]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert sorted(entry.utterance for entry in log.entries()) == sorted(
        f"{name} {i}" for name in ("first", "second") for i in range(20)
    )


def test_the_log_of_a_folder_is_in_it_and_that_of_an_installed_domain_is_not(tmp_path: Path) -> None:
    folder = copy_starter(tmp_path / "home")
    assert feedback_path(load_domain(folder)) == folder / "feedback.sqlite"
    installed = load_domain("calendar")
    assert installed.folder not in feedback_path(installed).parents


def test_a_parse_without_an_output_is_logged(log: FeedbackLog) -> None:
    empty: Parse = parse_of("lamp on")
    log.record(empty)
    assert log.entries()[0].candidates == ()
