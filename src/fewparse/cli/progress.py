"""Progress of long work on standard error: a bar on a terminal, elsewhere a line now and then."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from fewparse.cli.console import err

SECONDS_BETWEEN_LINES = 30.0
"""Without a terminal, a line is printed at such intervals."""


class ProgressLines:
    """Prints what it is given at most once in an interval, and nothing on a terminal, which shows a bar."""

    def __init__(self, seconds: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = SECONDS_BETWEEN_LINES if seconds is None else seconds
        self._clock = clock
        self._last = clock()

    def show(self, text: str) -> None:
        """Print a line, if none was printed lately."""
        now = self._clock()
        if err.is_terminal or now - self._last < self._seconds:
            return
        self._last = now
        err.print(text, markup=False)


def duration(seconds: float) -> str:
    """Return a time in hours, minutes or seconds."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{seconds / 3600:.1f} h"


@contextmanager
def counted(total: int, what: str) -> Iterator[Callable[[int, str], None]]:
    """Show how many of `total` things are done; yield what is called with this number and a description."""
    lines, start = ProgressLines(), time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task(what, total=total)

        def report(done: int, text: str) -> None:
            bar.update(task, completed=done, description=text or what)
            left = (time.monotonic() - start) * (total - done) / max(done, 1)
            lines.show(", ".join(filter(None, (f"{done} of {total} {what}", text, f"{duration(left)} left"))))

        yield report
