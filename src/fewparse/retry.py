"""Retry policy for HTTP requests: limits, exponential backoff, and the Retry-After header."""

import math
import random
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from fewparse.errors import UsageError

FIRST_WAIT = 0.25
MAX_WAIT = 30.0
MAX_DOUBLINGS = 16
MAX_SECONDS = 1_000_000.0
"""Sockets and locks reject much longer time limits."""


@dataclass(frozen=True)
class RetryPolicy:
    """Limits on one request and its retries.

    `timeout` is the number of seconds allowed for one attempt, `deadline` for all attempts together including the
    waits between them, and `max_attempts` the number of attempts (None: no limit).
    """

    timeout: float = 120.0
    deadline: float = 600.0
    max_attempts: int | None = None

    def __post_init__(self) -> None:
        if not (0 < self.timeout <= MAX_SECONDS and self.deadline > 0):  # neither holds for NaN
            raise UsageError(
                "the timeout and the deadline must be more than 0 seconds, "
                f"and the timeout at most {MAX_SECONDS:,.0f}"
            )


class RetryableError(Exception):
    """A failed attempt that may succeed when repeated; `retry_after` is the wait that the server requests."""

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


def exponential_wait(failures: int, first_wait: float) -> float:
    """Return the seconds to wait: doubled for each earlier failure, at most `MAX_WAIT`."""
    return min(MAX_WAIT, first_wait * 2.0 ** min(failures, MAX_DOUBLINGS))


def jittered_wait(failures: int) -> float:
    """Return an exponential wait with jitter, so that many clients do not retry at the same moment."""
    longest = exponential_wait(failures, FIRST_WAIT)
    return random.uniform(longest / 2, longest)


def parse_retry_after(header: str | None) -> float | None:
    """Return the seconds in a Retry-After header, a number or an HTTP date; None if missing or malformed.

    They are at most `MAX_SECONDS`.
    """
    value = (header or "").strip()
    try:
        seconds = float(value)
        return min(max(0.0, seconds), MAX_SECONDS) if math.isfinite(seconds) else None
    except ValueError:
        pass
    try:
        date = parsedate_to_datetime(value)
        left = (date if date.tzinfo else date.replace(tzinfo=UTC)) - datetime.now(UTC)
    except (ValueError, OverflowError, TypeError, IndexError):  # the last two: mistakes of the standard library
        return None
    return min(max(0.0, left.total_seconds()), MAX_SECONDS)
