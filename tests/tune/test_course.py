"""A course of training: what is learned depends on the seed alone, not on how often the course was left."""

from typing import Any

import pytest
import torch

from fewparse.tune.config import TuneConfig
from fewparse.tune.dataset import Lessons
from fewparse.tune.lora import Pupil
from fewparse.tune.trainer import LAST_RATE, Course

CONFIG = TuneConfig(rank=4, rate=0.01, batch=5, epochs=4)


def ignore(step: int, loss: float) -> None:
    pass


def learned(pupil: Pupil, taught: Lessons, config: TuneConfig = CONFIG) -> list[Any]:
    """What a pupil knows after a whole course."""
    course = Course(pupil, taught, config.epochs, config)
    while course.done < course.epochs:
        course.epoch(ignore)
    return pupil.state()


def test_the_loss_falls(pupil: Pupil, taught: Lessons) -> None:
    course, losses = Course(pupil, taught, 10, CONFIG), list[float]()
    for _ in range(course.epochs):
        course.epoch(lambda step, loss: losses.append(loss))
    assert max(losses[-3:]) < 0.7 * min(losses[:3])


def test_every_step_is_told_with_its_number(pupil: Pupil, taught: Lessons) -> None:
    course, steps = Course(pupil, taught, 2, CONFIG), list[int]()
    assert (course.steps_an_epoch, course.steps) == (3, 6)
    for _ in range(2):
        course.epoch(lambda step, loss: steps.append(step))
    assert steps == [1, 2, 3, 4, 5, 6]
    assert course.done == 2


def test_a_course_is_the_same_for_a_seed_whatever_was_known_before(pupil: Pupil, taught: Lessons) -> None:
    once = learned(pupil, taught)
    assert all(map(torch.equal, once, learned(pupil, taught)))
    other = learned(pupil, taught, TuneConfig(rank=4, rate=0.01, batch=5, epochs=4, seed=1))
    assert not any(map(torch.equal, once, other))


@pytest.mark.parametrize("left", range(CONFIG.epochs + 1))
def test_a_course_that_was_left_and_taken_up_ends_where_it_would_have(
    pupil: Pupil, taught: Lessons, left: int
) -> None:
    undisturbed = learned(pupil, taught)
    begun = Course(pupil, taught, CONFIG.epochs, CONFIG)
    for _ in range(left):
        begun.epoch(ignore)
    state = begun.state()
    pupil.begin(99)
    resumed = Course(pupil, taught, CONFIG.epochs, CONFIG, state)
    assert resumed.done == left
    while resumed.done < resumed.epochs:
        resumed.epoch(ignore)
    assert all(map(torch.equal, pupil.state(), undisturbed))


def test_the_rate_rises_at_first_then_falls_to_the_end(pupil: Pupil, taught: Lessons) -> None:
    course, rates = Course(pupil, taught, 10, CONFIG), list[float]()

    def note(step: int, loss: float) -> None:
        rates.append(course.state()["optimizer"]["param_groups"][0]["lr"])

    for _ in range(course.epochs):
        course.epoch(note)
    assert len(rates) == 30
    highest = rates.index(max(rates))
    assert 0 < highest < 5
    assert max(rates) == pytest.approx(CONFIG.rate)
    assert rates[:highest] == sorted(set(rates[:highest]))
    assert rates[highest + 1 :] == sorted(set(rates[highest + 1 :]), reverse=True)
    assert LAST_RATE * CONFIG.rate <= rates[-1] < 0.1 * CONFIG.rate
