"""The learning curve of a tuning run, as text and as a picture."""

from xml.etree import ElementTree

import pytest

from fewparse.tune.curve import MAX_COLUMNS, LearningCurve, sparkline

CURVE = LearningCurve((2.1, 1.2, 0.6, 0.3), (2.0, 1.1, 0.5), (0, 1, 5, 4), held_out=5, epochs=3)
ONLY_REFIT = LearningCurve((), (2.0,), (), held_out=0, epochs=1)


def test_the_text_has_a_block_for_each_epoch_and_the_ends() -> None:
    assert CURVE.text() == [
        "loss             █▅▃▂  2.10 to 0.30",
        "held-out right   ▁▂█▇  0 to 4 of 5; epoch 3 of 4 is chosen",
    ]
    assert ONLY_REFIT.text() == ["loss             █  2.00 to 2.00"]


def test_many_epochs_fit_on_a_line() -> None:
    line = sparkline([float(i) for i in range(1000)], 0.0)
    assert len(line) == MAX_COLUMNS
    assert (line[0], line[-1]) == ("▁", "█")
    assert sorted(line) == list(line)


@pytest.mark.parametrize(("curve", "lines"), [(CURVE, 2), (ONLY_REFIT, 1)])
def test_the_picture_is_valid_and_names_what_it_shows(curve: LearningCurve, lines: int) -> None:
    picture = ElementTree.fromstring(curve.svg("Tuning <home> & more"))
    space = {"svg": "http://www.w3.org/2000/svg"}
    assert picture.findtext("svg:title", None, space) == "Tuning <home> & more"
    assert picture.findtext("svg:desc", None, space) == "; ".join(curve.text())
    drawn = [
        path.get("d", "") for path in picture.iterfind("svg:path", space) if path.get("class") in ("loss", "right")
    ]
    assert len(drawn) == lines
    counts = {path.count("L") + 1 for path in drawn}
    assert counts == {4 if curve is CURVE else 2}
