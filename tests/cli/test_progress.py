"""Long work without a terminal prints a line now and then."""

import pytest

from fewparse.cli import progress
from fewparse.cli.progress import ProgressLines, counted, duration


def test_a_line_is_printed_at_most_once_in_an_interval(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    lines = ProgressLines(30.0, clock=lambda: now)
    for now in (1.0, 29.0, 30.0, 31.0, 59.0, 61.0):
        lines.show(f"after {now}")
    assert capsys.readouterr().err == "after 30.0\nafter 61.0\n"


def test_the_line_says_how_much_is_done_and_how_long_the_rest_takes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    with counted(4, "items") as report:
        report(4, "accuracy 0.50")
    assert capsys.readouterr().err == "4 of 4 items, accuracy 0.50, 0 s left\n"


def test_times_are_in_the_unit_that_people_would_use() -> None:
    assert [duration(seconds) for seconds in (0.4, 89, 90, 3600, 9000)] == [
        "0 s",
        "89 s",
        "2 min",
        "60 min",
        "2.5 h",
    ]
