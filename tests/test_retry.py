"""Retry policy: bounded exponential waits with jitter, and Retry-After headers of any kind."""

import math
import random
import time
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewparse.errors import UsageError
from fewparse.retry import FIRST_WAIT, MAX_WAIT, RetryPolicy, jittered_wait, parse_retry_after

DATES = st.from_regex(
    r"(?a)(Mon, )?[0-9]{1,12} (Jan|Feb|May) [0-9]{1,14} [0-9:]{1,9} (GMT|[+-][0-9]{1,9}|)", fullmatch=True
)


@pytest.mark.parametrize(
    "limits", [(0, 1), (1, 0), (-1, 1), (math.nan, 1), (1, math.nan), (math.inf, 1), (1e300, 1)]
)
def test_timeout_and_deadline_must_be_positive(limits: tuple[float, float]) -> None:
    with pytest.raises(UsageError, match="more than 0"):
        RetryPolicy(*limits)


@given(st.integers(0, 10_000), st.integers(0, 2**32))
def test_waits_grow_vary_and_are_bounded(failures: int, seed: int) -> None:
    random.seed(seed)
    wait = jittered_wait(failures)
    longest = min(MAX_WAIT, FIRST_WAIT * 2 ** min(failures, 20))
    assert longest / 2 <= wait <= longest
    assert len({jittered_wait(failures) for _ in range(5)}) > 1


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7),
        ("0.5", 0.5),
        ("-3", 0),
        ("nan", None),
        ("inf", None),
        ("-inf", None),
        ("1e300", 1e6),
        ("soon", None),
        ("", None),
        (" 2 ", 2),
        (None, None),
    ],
)
def test_retry_after_may_be_a_number(header: str | None, seconds: float | None) -> None:
    assert parse_retry_after(header) == seconds


def test_retry_after_may_be_a_date() -> None:
    now = time.time()
    assert parse_retry_after(formatdate(now + 600, usegmt=True)) == pytest.approx(600, abs=30)
    assert parse_retry_after(formatdate(now + 600, usegmt=False)) == pytest.approx(600, abs=30)
    assert parse_retry_after(formatdate(now - 60, usegmt=True)) == 0


@given(st.text(st.characters(max_codepoint=126, min_codepoint=32)) | DATES)
def test_any_retry_after_text_is_a_wait_or_none(header: str) -> None:
    seconds = parse_retry_after(header)
    assert seconds is None or seconds >= 0
