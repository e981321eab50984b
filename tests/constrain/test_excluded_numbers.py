"""Numbers of an utterance that the constraint does not allow where an output has another number."""

import re

import pytest

from fewparse.constrain.excluded_numbers import excluded_numbers

LEVEL = re.compile(r"\((level|days) ([1-9][0-9]?|100)\)|\(at [0-9]+:00\)|\(note .+\)")


def notes(utterance: str, *outputs: str) -> list[str]:
    return list(excluded_numbers(utterance, outputs, lambda text: LEVEL.fullmatch(text) is not None))


@pytest.mark.parametrize(
    ("utterance", "outputs", "number", "instead"),
    [
        ("set it to 900 percent", ["(level 90)"], "900", "90"),
        ("set it to 900", ["(level 90)", "(level 100)"], "900", "90 or 100"),
        ("set it to 900%", ["(note set it)", "(level 90)"], "900", "90"),
        ("set it to 2.5", ["(level 2)"], "2.5", "2"),
        ("not 10 but 900", ["(level 90)"], "900", "90"),
    ],
)
def test_a_number_that_cannot_be_written_is_pointed_out(
    utterance: str, outputs: list[str], number: str, instead: str
) -> None:
    (note,) = notes(utterance, *outputs)
    assert note == f"the utterance says {number}, which the grammar does not allow in the place of {instead}"


@pytest.mark.parametrize(
    ("utterance", "outputs"),
    [
        ("set it to 90", ["(level 90)"]),
        ("in 2 weeks", ["(days 14)"]),  # the grammar could say 2
        ("at 3pm", ["(at 15:00)"]),
        ("at 3 pm", ["(at 15:00)"]),
        ("note 900 eggs", ["(note 900 eggs)"]),
        ("set it to 900", ["(note set it)"]),  # whether the grammar could say it is not known
        ("set it to 900", []),
        ("the 2026-03-12", ["(level 12)"]),
    ],
)
def test_other_numbers_are_not(utterance: str, outputs: list[str]) -> None:
    assert notes(utterance, *outputs) == []
