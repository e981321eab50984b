"""A query is correct if it has the rows of the gold query."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewparse.domains.sql.execution import DatabaseExecutor
from fewparse.domains.sql.judge import RowJudge, orders_rows, same_rows
from fewparse.domains.sql.urls import parse_url
from fewparse.errors import DatabaseError
from support.shop import make_sqlite

THIRD = 0.1 + 0.2


@pytest.mark.parametrize(
    ("rows", "gold", "same"),
    [
        ([], [], True),
        ([(1, "a"), (2, "b")], [(2, "b"), (1, "a")], True),
        ([(1,), (1,), (2,)], [(1,), (2,), (2,)], False),
        ([(1,)], [(1,), (1,)], False),
        ([(1, 2)], [(2, 1)], False),
        ([(1,)], [(1, None)], False),
        ([(THIRD,)], [(0.3,)], True),
        ([(0.3, "a"), (THIRD, "b")], [(THIRD, "a"), (0.3, "b")], True),
        ([(0.31,)], [(0.3,)], False),
        ([(1,)], [(1.0,)], True),
        ([(1,)], [(True,)], True),
        ([(1,)], [("1",)], False),
        ([(None,)], [(0,)], False),
        ([(None, 1)], [(1, None)], False),
        ([([1, 2],)], [([1, 2],)], True),
        ([(10**400,)], [(1.5,)], False),
        ([("a",)], [("A",)], False),
    ],
)
def test_rows_are_compared_as_multisets(
    rows: list[tuple[object, ...]], gold: list[tuple[object, ...]], same: bool
) -> None:
    assert same_rows(rows, gold, ordered=False) is same
    assert same_rows(gold, rows, ordered=False) is same


def test_order_counts_on_request() -> None:
    assert same_rows([(1,), (THIRD,)], [(1,), (0.3,)], ordered=True)
    assert not same_rows([(1,), (2,)], [(2,), (1,)], ordered=True)


VALUES = st.one_of(st.none(), st.text(max_size=2), st.integers(-3, 3), st.sampled_from([0.3, THIRD, 0.5]))


@given(st.lists(st.tuples(VALUES, VALUES), max_size=6), st.randoms(use_true_random=False))
def test_any_order_of_the_same_rows_is_the_same(rows: list[tuple[object, object]], random: object) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    nearly = [tuple(0.3 if value == THIRD else value for value in row) for row in shuffled]
    assert same_rows(nearly, rows, ordered=False)
    assert not same_rows([*nearly, ("extra", "row")], rows, ordered=False)


@pytest.mark.parametrize(
    ("sql", "ordered"),
    [
        ("SELECT a FROM t ORDER BY a", True),
        ("(SELECT a FROM t ORDER BY a)", True),
        ("SELECT a FROM t UNION SELECT b FROM t ORDER BY 1", True),
        ("WITH x AS (SELECT a FROM t ORDER BY a) SELECT a FROM x", False),
        ("SELECT a FROM (SELECT a FROM t ORDER BY a) AS x", False),
        ("SELECT a FROM t WHERE a = (SELECT b FROM t ORDER BY b LIMIT 1)", False),
        ("SELECT ROW_NUMBER() OVER (ORDER BY a) FROM t", False),
        ("not sql (", False),
    ],
)
def test_only_an_order_by_of_its_own_orders_a_query(sql: str, ordered: bool) -> None:
    assert orders_rows(sql, "sqlite") is ordered


@pytest.fixture
def judge(tmp_path: Path) -> RowJudge:
    return RowJudge(DatabaseExecutor(parse_url(make_sqlite(tmp_path / "a.db")), max_rows=3))


@pytest.mark.parametrize(
    ("query", "gold", "correct"),
    [
        ("SELECT name FROM customer WHERE id < 3", "SELECT name AS n FROM customer WHERE id IN (2, 1)", True),
        ("SELECT name FROM customer WHERE id < 3 ORDER BY 1 DESC", "SELECT name FROM customer WHERE id < 3", True),
        (
            "SELECT name FROM customer WHERE id < 3 ORDER BY name DESC",
            "SELECT name FROM customer WHERE id < 3 ORDER BY name",
            False,
        ),
        ("SELECT name, id FROM customer", "SELECT id, name FROM customer", False),
        ("SELECT nope FROM customer", "SELECT name FROM customer", False),
        ("SELECT nope FROM customer", "SELECT nope FROM customer", False),
        ("SELECT name FROM customer", "SELECT c.name FROM customer c", True),  # four rows, beyond the limit
        ("SELECT name FROM customer", "SELECT city FROM customer", False),
        ("SELECT name FROM customer", "SELECT name FROM customer WHERE id < 4", False),
    ],
)
def test_a_query_is_judged_by_all_of_its_rows(query: str, gold: str, correct: bool, judge: RowJudge) -> None:
    assert judge.is_correct(query, gold) is correct


def test_answers_beyond_any_limit_are_only_the_same_if_the_queries_are(
    judge: RowJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fewparse.domains.sql.judge.ALL_ROWS", 3)
    assert judge.is_correct("SELECT name FROM customer", "SELECT name FROM customer")
    assert not judge.is_correct("SELECT name FROM customer", "SELECT c.name FROM customer c")


def test_a_database_that_is_gone_is_an_error_and_no_wrong_answer(tmp_path: Path) -> None:
    judge = RowJudge(DatabaseExecutor(parse_url(f"sqlite:///{tmp_path}/gone.db")))
    with pytest.raises(DatabaseError):
        judge.is_correct("SELECT 1", "SELECT 1")
