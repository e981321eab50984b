"""Judge a query by its rows: they must be those of the gold query."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from fewparse.domains.sql.execution import ALL_ROWS, DatabaseExecutor
from fewparse.domains.sql.rows import Rows
from fewparse.errors import ExecutionError

RELATIVE_TOLERANCE = 1e-9
ABSOLUTE_TOLERANCE = 1e-9
NUMBER = object()
"""What stands for a number in the key of a row."""

Row = Sequence[Any]
CACHED_ANSWERS = 2000


class RowJudge:
    """Decides whether a query has the same rows as the gold query, in the same order if the gold query has one.

    Answers that are cut at the limit of rows are compared once more without it.
    """

    def __init__(self, executor: DatabaseExecutor) -> None:
        self._executor = executor
        self._answer = lru_cache(maxsize=CACHED_ANSWERS)(self._execute)

    def is_correct(self, query: str, gold: str) -> bool:
        """Return whether a query is correct; one that fails is wrong, as is any if the gold query fails."""
        answer, expected = self._answer(query), self._answer(gold)
        if answer is None or expected is None or answer.truncated != expected.truncated:
            return False
        if answer.truncated:
            answer, expected = self._execute(query, ALL_ROWS), self._execute(gold, ALL_ROWS)
            if answer is None or expected is None or answer.truncated or expected.truncated:
                return query == gold
        return same_rows(answer.rows, expected.rows, orders_rows(gold, self._executor.url.dialect))

    def _execute(self, query: str, max_rows: int | None = None) -> Rows | None:
        """Return the rows of a query, none of them if they are cut; None if it fails."""
        try:
            rows = self._executor.rows(query, max_rows)
        except ExecutionError:
            return None
        return Rows(rows.columns, (), truncated=True) if rows.truncated else rows


def same_rows(rows: Sequence[Row], gold: Sequence[Row], ordered: bool) -> bool:
    """Return whether two answers have the same rows, in the same order if `ordered`.

    The order of columns counts, their names do not. Numbers are compared with a small tolerance; 1 and true are
    the same, as in SQLite.
    """
    if len(rows) != len(gold) or (rows and len(rows[0]) != len(gold[0])):
        return False
    if ordered:
        return all(same_row(row, other) for row, other in zip(rows, gold, strict=True))
    left, right = Counter(map(frozen, rows)), Counter(map(frozen, gold))
    remaining, missing = by_key((left - right).elements()), by_key((right - left).elements())
    return remaining.keys() == missing.keys() and all(match(remaining[key], missing[key]) for key in remaining)


def same_row(row: Row, other: Row) -> bool:
    """Return whether two rows have the same values."""
    return all(same_value(value, gold) for value, gold in zip(row, other, strict=True))


def same_value(value: Any, other: Any) -> bool:
    """Return whether two values are the same; numbers with a tolerance."""
    if isinstance(value, int) and isinstance(other, int):
        return value == other
    if isinstance(value, int | float) and isinstance(other, int | float):
        try:
            return math.isclose(value, other, rel_tol=RELATIVE_TOLERANCE, abs_tol=ABSOLUTE_TOLERANCE)
        except OverflowError:  # a whole number beyond all doubles
            return False
    return type(value) is type(other) and bool(value == other)


def frozen(row: Row) -> tuple[Any, ...]:
    """Return a row whose values can be counted."""
    return tuple(repr(value) if isinstance(value, list | dict) else value for value in row)


def by_key(rows: Iterable[Row]) -> dict[tuple[Any, ...], list[Row]]:
    """Group rows by their values other than numbers."""
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(NUMBER if isinstance(value, int | float) else value for value in row)].append(row)
    return groups


def match(rows: list[Row], gold: list[Row]) -> bool:
    """Return whether rows that differ in numbers only can be paired."""
    if len(rows) != len(gold):
        return False
    numbers = [i for i, value in enumerate(rows[0]) if isinstance(value, int | float)]
    if not numbers:  # the same values in another order of the counters
        return True
    in_order = (sorted(group, key=lambda row: [row[i] for i in numbers]) for group in (rows, gold))
    pairs = zip(*in_order, strict=True)
    return all(same_row(row, other) for row, other in pairs)


def orders_rows(sql: str, dialect: str) -> bool:
    """Return whether a query has an ORDER BY of its own, not of a sub-query; False if it is no SQL."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        tree: exp.Expr | None = sqlglot.parse_one(sql, dialect=dialect)
    except (SqlglotError, RecursionError):
        return False
    while isinstance(tree, exp.Subquery) and not tree.args.get("order"):
        tree = tree.this
    return tree is not None and tree.args.get("order") is not None
