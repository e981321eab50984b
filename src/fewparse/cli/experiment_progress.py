"""The progress display of `fewparse experiment`: rate, accuracy so far, time and cost left."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar

from fewparse.cli.console import err
from fewparse.cli.progress import ProgressLines, duration
from fewparse.evaluate.run import Listener, Progress

PAIRS_BETWEEN_LINES = 10_000


class ProgressState:
    """Counts records, and describes what is done and left in words."""

    def __init__(self, total: int, done: int, labels: dict[str, str]) -> None:
        self.total, self.done = total, done
        self._labels = labels
        self._new, self._cost = 0, 0.0
        self._start = time.monotonic()
        self.text = ""

    def add(self, progress: Progress) -> None:
        """Count a record; one that was in the records is counted in `done` already."""
        if not progress.new:
            return
        self.done += 1
        self._new += 1
        self._cost += progress.record.usage.cost or 0.0
        seconds = time.monotonic() - self._start
        left = self.total - self.done
        records = progress.result.records
        correct = sum(record.correct_within(1) for record in records)
        parts = [
            f"{self._labels[progress.result.name]}: {correct / len(records):.2f} of {len(records)}",
            f"{self._new / seconds:.2f}/s",
            f"{duration(left * seconds / self._new)} left",
        ]
        if self._cost:
            parts.append(f"${self._cost:.2f} spent, ${left * self._cost / self._new:.2f} left")
        self.text = ", ".join(parts)


@contextmanager
def experiment_progress(total: int, done: int, labels: dict[str, str]) -> Iterator[Listener]:
    """Show a bar on a terminal, or a line now and then elsewhere, on standard error; yields the listener."""
    state = ProgressState(total, done, labels)
    columns = (BarColumn(20), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
    with Bar(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task("", total=total, completed=done)
        lines = ProgressLines()

        def listen(progress: Progress) -> None:
            state.add(progress)
            bar.update(task, completed=state.done, description=state.text)
            lines.show(f"{state.done} of {total}: {state.text}")

        yield listen


def similarity_progress(done: int, total: int) -> None:
    """Print on standard error, now and then, how many pairs of utterances the retriever `lm` has compared."""
    if done == total or done % PAIRS_BETWEEN_LINES < 512:
        err.print(f"similarity: {done:,} of {total:,} pairs of utterances", style="dim")
