"""The rows of a query: fetched within limits, as JSON values."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from fewparse.errors import ExecutionError
from fewparse.limits import ANSWER_BYTES, EXECUTION_SECONDS
from fewparse.text import without_surrogates

BLOCK_ROWS = 200


@dataclass(frozen=True)
class QueryLimits:
    """Limits of one query: rows and bytes of its answer as JSON, beyond which it is cut, and seconds."""

    max_rows: int
    max_seconds: float
    max_bytes: int


class QueryTimeout(ExecutionError):
    """A query that did not end within its time."""


@dataclass(frozen=True)
class Rows:
    """The answer of a query; `truncated` if it has more rows than the limits allow."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    truncated: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the answer as a JSON object."""
        return {
            "columns": list(self.columns),
            "rows": [list(row) for row in self.rows],
            "truncated": self.truncated,
        }


def fetch_rows(
    columns: Iterable[str], fetch: Callable[[int], Sequence[Sequence[Any]]], limits: QueryLimits
) -> Rows:
    """Return the rows that `fetch` (a driver's `fetchmany`) returns, until it returns none or a limit is reached.

    Raises `ExecutionError` if a single row is larger than an answer may be.
    """
    rows: list[tuple[Any, ...]] = []
    size, truncated = 0, False
    while not truncated:
        wanted = min(BLOCK_ROWS, limits.max_rows + 1 - len(rows))
        block = fetch(wanted)
        for row in block:
            values = tuple(json_value(value) for value in row)
            size += sum(map(json_bytes, values))
            if len(rows) == limits.max_rows or size > limits.max_bytes:
                truncated = True
                break
            rows.append(values)
        if len(block) < wanted:
            break
    if truncated and not rows:
        message = f"a row of the answer has more than {limits.max_bytes:,} bytes"
        raise ExecutionError(message, ANSWER_BYTES.hint)
    return Rows(tuple(map(without_surrogates, columns)), tuple(rows), truncated)


def json_bytes(value: Any) -> int:
    """Return about how many bytes a JSON value takes."""
    if isinstance(value, str):
        return len(value.encode()) + 4
    if isinstance(value, list):
        return 4 + sum(map(json_bytes, value))
    return 4 + sum(map(json_bytes, (*value, *value.values()))) if isinstance(value, dict) else 8


def json_value(value: Any) -> Any:
    """Return a value of a database as a JSON value.

    Dates and times are ISO 8601, bytes are hexadecimal with the prefix 0x. A decimal is a number if a double has
    the same digits, else text, and so are numbers that are not finite. Other types are text.
    """
    if isinstance(value, str):
        return value if value.isascii() else without_surrogates(value)
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else number_text(value)
    if isinstance(value, Decimal):
        return decimal_value(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return duration(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return "0x" + bytes(value).hex()
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    if isinstance(value, dict):
        return {without_surrogates(str(key)): json_value(item) for key, item in value.items()}
    return without_surrogates(str(value))


def number_text(value: float) -> str:
    """Return a number that is not finite as text."""
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def decimal_value(value: Decimal) -> int | float | str:
    """Return a decimal as a number; as text if no double has the same digits."""
    if not value.is_finite():
        return number_text(float(value)) if not value.is_snan() else "NaN"
    if value == value.to_integral_value():
        return int(value)
    nearest = float(value)
    return nearest if math.isfinite(nearest) and Decimal(repr(nearest)) == value else str(value)


def duration(value: timedelta) -> str:
    """Return a time interval as an ISO 8601 duration in seconds, such as `PT90S`."""
    seconds = Decimal(value // timedelta(microseconds=1)) / 1_000_000
    return f"{'-' if seconds < 0 else ''}PT{abs(seconds):f}S"


def too_slow(limits: QueryLimits) -> QueryTimeout:
    """Return the error of a query that exceeded its time."""
    return QueryTimeout(f"the query did not end within {limits.max_seconds:g} seconds", EXECUTION_SECONDS.hint)
