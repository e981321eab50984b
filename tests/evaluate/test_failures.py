"""Models that fail or cost money: what is recorded, retried and reported, and when a run is aborted."""

import json
from collections.abc import Callable
from pathlib import Path
from threading import Barrier, Event

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewparse import Domain, Usage
from fewparse.errors import (
    BudgetExceeded,
    ContextOverflow,
    FewparseError,
    LimitExceeded,
    ModelUnavailable,
    ServerRejected,
    ServerUnavailable,
    UsageError,
)
from fewparse.evaluate.records import Records
from fewparse.evaluate.report import failed_items, failures, markdown, plain, rows
from fewparse.evaluate.run import ABORT_AFTER, SystemResult, run_evaluation
from support.lamp_domain import FixedSystem, RemoteSystem, make_lamps, numbered

TIMEOUT = 120
DOWN = ServerUnavailable("the server is down", "Start it.")


@pytest.fixture(scope="module")
def lamps(tmp_path_factory: pytest.TempPathFactory) -> Domain:
    return make_lamps(tmp_path_factory.mktemp("domains") / "lamps")


def failing(*which: int, error: FewparseError = DOWN) -> Callable[[str], None]:
    def behave(utterance: str) -> None:
        if int(utterance) in which:
            raise error

    return behave


def run(domain: Domain, *systems: RemoteSystem, items: int = 4, path: Path | None = None) -> list[SystemResult]:
    return run_evaluation(domain, systems, numbered(items), "test", Records(path))


def reasons(result: SystemResult) -> list[str | None]:
    return [record.failure for record in result.records]


@pytest.mark.parametrize("error", [DOWN, ServerRejected("no"), ContextOverflow(9, 8), LimitExceeded("too much")])
@pytest.mark.parametrize("max_concurrency", [1, 3])
def test_an_item_on_which_the_model_fails_is_wrong_and_the_run_continues(
    max_concurrency: int, error: FewparseError, lamps: Domain
) -> None:
    (result,) = run(lamps, RemoteSystem(max_concurrency, failing(1, error=error)))
    assert reasons(result) == [None, error.message, None, None]
    (row,) = rows([result], "remote")
    assert (row["items"], row["failed"], row["accuracy"]["value"]) == (4, 1, 0.75)


@pytest.mark.parametrize("error", [ModelUnavailable("no weights"), UsageError("the utterance is empty")])
@pytest.mark.parametrize("max_concurrency", [1, 3])
def test_an_error_that_concerns_all_items_ends_the_run(
    max_concurrency: int, error: FewparseError, lamps: Domain
) -> None:
    with pytest.raises(type(error), match=error.message):
        run(lamps, RemoteSystem(max_concurrency, failing(1, error=error)))


@given(st.sets(st.integers(0, 11)), st.integers(1, 6))
def test_failures_and_correct_items_do_not_depend_on_concurrency(
    lamps: Domain, which: set[int], max_concurrency: int
) -> None:
    def behave(utterance: str) -> None:
        if int(utterance) in which:
            raise ServerUnavailable(f"no answer to {utterance}")

    (result,) = run(lamps, RemoteSystem(max_concurrency, behave), items=12)
    assert reasons(result) == [f"no answer to {n}" if n in which else None for n in range(12)]
    assert [record.correct for record in result.records] == [() if n in which else (True,) for n in range(12)]


def test_a_failed_item_is_retried_by_the_next_run_until_it_succeeds(lamps: Domain, tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    run(lamps, RemoteSystem(2, failing(1, 2)), path=path)
    assert [json.loads(line)["failure"] for line in path.read_text().splitlines()].count(DOWN.message) == 2
    again = RemoteSystem(2, failing(2))
    assert reasons(run(lamps, again, path=path)[0]) == [None, None, DOWN.message, None]
    assert sorted(again.utterances) == ["1", "2"]
    last = RemoteSystem(2)
    assert reasons(run(lamps, last, path=path)[0]) == [None] * 4
    assert last.utterances == ["2"]
    failing_system = RemoteSystem(2, failing(0, 1, 2, 3))
    assert reasons(run(lamps, failing_system, path=path)[0]) == [None] * 4
    assert failing_system.utterances == []


def test_a_failed_item_is_retried_with_the_same_records_object(lamps: Domain) -> None:
    records, again = Records(), RemoteSystem()
    run_evaluation(lamps, [RemoteSystem(1, failing(1))], numbered(3), "test", records)
    run_evaluation(lamps, [again], numbered(3), "test", records)
    assert again.utterances == ["1"]


def test_a_good_record_is_used_even_if_a_failed_one_follows_it(lamps: Domain, tmp_path: Path) -> None:
    path, other = tmp_path / "records.jsonl", tmp_path / "failed.jsonl"
    run(lamps, RemoteSystem(), path=path)
    run(lamps, RemoteSystem(1, failing(0)), path=other)
    path.write_text(path.read_text() + other.read_text())
    system = RemoteSystem()
    assert reasons(run(lamps, system, path=path)[0]) == [None] * 4
    assert system.utterances == []


@pytest.mark.parametrize("max_concurrency", [1, 3, 8])
def test_a_run_is_aborted_if_its_first_items_all_fail_with_the_same_error(
    max_concurrency: int, lamps: Domain, tmp_path: Path
) -> None:
    system, path = RemoteSystem(max_concurrency, failing(*range(100))), tmp_path / "records.jsonl"
    with pytest.raises(ServerUnavailable, match="the server is down"):
        run(lamps, system, items=100, path=path)
    assert (
        max(ABORT_AFTER, max_concurrency)
        <= len(system.utterances)
        <= max(ABORT_AFTER, max_concurrency) + max_concurrency
    )
    assert len(path.read_text().splitlines()) == len(system.utterances), "every failure is recorded"


def test_a_run_is_aborted_if_one_of_several_systems_always_fails(lamps: Domain) -> None:
    good, bad = RemoteSystem(name="good"), RemoteSystem(1, failing(*range(100)), name="bad")
    with pytest.raises(ServerUnavailable):
        run(lamps, good, bad, items=100)
    assert len(bad.utterances) == ABORT_AFTER


def test_a_resumed_run_is_aborted_too(lamps: Domain, tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    run(lamps, RemoteSystem(), path=path)
    system = RemoteSystem(1, failing(*range(100)))
    with pytest.raises(ServerUnavailable):
        run(lamps, system, items=100, path=path)
    assert len(system.utterances) == ABORT_AFTER


def test_a_run_is_not_aborted_while_an_item_now_and_then_succeeds(lamps: Domain) -> None:
    good = set(range(0, 20, ABORT_AFTER))
    (result,) = run(lamps, RemoteSystem(1, failing(*(set(range(20)) - good))), items=20)
    assert reasons(result).count(DOWN.message) == 20 - len(good)


@pytest.mark.parametrize("good", [1, 7])
def test_a_run_is_aborted_if_the_model_disappears(good: int, lamps: Domain, tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    system = RemoteSystem(1, failing(*range(good, 100)))
    with pytest.raises(ServerUnavailable):
        run(lamps, system, items=100, path=path)
    assert len(system.utterances) == good + ABORT_AFTER
    assert reasons(run(lamps, RemoteSystem(1), items=100, path=path)[0]) == [None] * 100


def test_a_run_is_not_aborted_if_the_errors_differ(lamps: Domain) -> None:
    def behave(utterance: str) -> None:
        raise ServerRejected(f"item {int(utterance) % 2} is not accepted")

    (result,) = run(lamps, RemoteSystem(1, behave), items=20)
    assert None not in reasons(result)


@pytest.mark.parametrize("has_file", [True, False])
def test_when_the_budget_is_spent_no_item_is_started_and_finished_ones_are_kept(
    has_file: bool, lamps: Domain, tmp_path: Path
) -> None:
    path = tmp_path / "records.jsonl" if has_file else None

    def behave(utterance: str) -> None:
        failing(1)(utterance)
        failing(*range(3, 100), error=BudgetExceeded("$1.00 are spent"))(utterance)

    system = RemoteSystem(1, behave)
    with pytest.raises(BudgetExceeded) as raised:
        run(lamps, system, items=100, path=path)
    assert raised.value.message == "$1.00 are spent; 2 of 100 items are done"
    assert "he same command with a larger budget resumes the run" in str(raised.value.hint)
    assert ("--out" in str(raised.value.hint)) is not has_file
    assert system.utterances == ["0", "1", "2", "3"]
    if path is not None:
        resumed = RemoteSystem()
        run(lamps, resumed, items=6, path=path)
        assert resumed.utterances == ["1", "3", "4", "5"]


def test_a_running_prediction_is_kept_when_the_budget_ends_and_no_other_system_is_run(
    lamps: Domain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, both, stopping = tmp_path / "records.jsonl", Barrier(2, timeout=TIMEOUT), Event()
    monkeypatch.setattr("fewparse.evaluate.run.Event", lambda: stopping)

    def behave(utterance: str) -> None:
        both.wait()
        if utterance == "0":
            raise BudgetExceeded("all is spent")
        assert stopping.wait(TIMEOUT), "set when the other item fails"

    first, second = RemoteSystem(2, behave, name="first"), RemoteSystem(2, name="second")
    with pytest.raises(BudgetExceeded, match="all is spent; 0 of 100 items are done"):
        run(lamps, first, second, items=100, path=path)
    assert (sorted(first.utterances), second.utterances) == (["0", "1"], [])
    assert [json.loads(line)["utterance"] for line in path.read_text().splitlines()] == ["1"]


def table_of(lamps: Domain, *systems: RemoteSystem | FixedSystem) -> list[dict[str, str]]:
    """The cells of the Markdown table, by column; the plain table has the same columns."""
    found = rows(run_evaluation(lamps, systems, numbered(4), "test"), systems[0].name)
    heads, _, *lines = ([cell.strip() for cell in line.split("|")[1:-1]] for line in markdown(found).splitlines())
    assert set(" ".join(heads).split()) <= set(plain(found).split())
    return [dict(zip(heads, line, strict=True)) for line in lines]


def test_empty_columns_for_failures_and_cost_are_omitted(lamps: Domain) -> None:
    assert not {"failed", "cost"} & set(table_of(lamps, RemoteSystem(), FixedSystem("no model"))[0])


def test_a_table_has_columns_for_failures_and_cost_if_there_are_any(lamps: Domain) -> None:
    systems = [
        RemoteSystem(1, failing(1, 3), Usage(requests=2, cost=0.0125), name="paid"),
        RemoteSystem(1, failing(), Usage(requests=2, cost=None), name="unknown price"),
        RemoteSystem(name="free"),
    ]
    paid, unknown, free = table_of(lamps, *systems)
    assert (paid["failed"], paid["cost"]) == ("2", "$0.012500")
    assert (unknown["failed"], unknown["cost"]) == ("", "unknown")
    assert (free["failed"], free["cost"]) == ("", "")


def test_counters_are_means_over_the_items_that_did_not_fail(lamps: Domain) -> None:
    usage = Usage(3, 2, 1, 1, 100, 20, 60, 40, 8, 4, 0.25, 0.0001)
    (row,) = rows(run(lamps, RemoteSystem(1, failing(2), usage)), "remote")
    assert {name: row[name] for name in usage.as_dict()} == usage.as_dict()
    assert (row["decoding_seconds"], row["items_per_second"]) == (0.5, 2)


def test_an_unknown_cost_is_not_reported_as_0(lamps: Domain) -> None:
    usage = Usage(requests=1, cost=0.5)

    def behave(utterance: str) -> None:
        usage.cost = None if utterance == "1" else 0.5

    (row,) = rows(run(lamps, RemoteSystem(1, behave, usage)), "remote")
    assert (row["requests"], row["cost"]) == (1, None)
    (row,) = rows(run(lamps, RemoteSystem(1, failing(*range(4)))), "remote")
    assert (row["failed"], row["cost"]) == (4, None)


def test_error_messages_are_counted_over_all_systems_and_failed_items_once(lamps: Domain) -> None:
    odd = ServerRejected("it is\n  odd")
    results = run(lamps, RemoteSystem(1, failing(1, 2)), RemoteSystem(1, failing(1, 3, error=odd), name="other"))
    assert failures(results) == {"the server is down": 2, "it is odd": 2}
    assert failed_items(results) == 3


def test_records_without_failure_and_cost_are_read(lamps: Domain, tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    run(lamps, RemoteSystem(), path=path)
    old = []
    for line in path.read_text().splitlines():
        fields = json.loads(line)
        del fields["failure"]
        fields["usage"] = {"requests": 1, "prompt_tokens": 7}
        old.append(json.dumps(fields) + "\n")
    path.write_text("".join(old))
    system = RemoteSystem()
    (row,) = rows(run(lamps, system, path=path), "remote")
    assert system.utterances == []
    assert (row["prompt_tokens"], row["cached_requests"], row["cost"], row["failed"]) == (7, 0, 0, 0)
