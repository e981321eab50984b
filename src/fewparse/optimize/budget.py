"""The time that an optimization may take."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Clock = Callable[[], float]


class OutOfTime(Exception):
    """The time of the budget, or of the part of it that is in use, is spent."""


class Budget:
    """Seconds that are spent by the clock and by work that was done in an earlier, interrupted run."""

    def __init__(self, seconds: float, clock: Clock = time.monotonic) -> None:
        self.seconds = seconds
        self._clock = clock
        self._start = clock()
        self._earlier = 0.0
        self._share = 1.0

    @property
    def spent(self) -> float:
        """The seconds that are spent."""
        return self._clock() - self._start + self._earlier

    @property
    def allowed(self) -> float:
        """The seconds of the share in use, spent or not."""
        return self._share * self.seconds

    @property
    def left(self) -> float:
        """The seconds that are left of the share in use; 0 if it is spent."""
        return max(0.0, self.allowed - self.spent)

    def charge(self, seconds: float) -> None:
        """Add the time of work whose results are reused."""
        self._earlier += seconds

    def check(self) -> None:
        """Raise `OutOfTime` if nothing is left."""
        if self.left <= 0:
            raise OutOfTime

    @contextmanager
    def limited_to(self, share: float) -> Iterator[None]:
        """Let only this share of the whole budget be used."""
        self._share = share
        try:
            yield
        finally:
            self._share = 1.0
