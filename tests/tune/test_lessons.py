"""What a model learns from: the prompt of a parser, and behind it the output with its end."""

from collections import Counter

import pytest

from fewparse.domains.domain import Domain
from fewparse.example import Example, Target
from fewparse.lm.embedded import EmbeddedModel
from fewparse.parser import Parser
from fewparse.tune.dataset import Lesson, Lessons, lesson
from fewparse.tune.variation import variation
from support.switch_domain import EXAMPLES

ASKED = Example("lamp off in the hall", "(off lamp hall)", canonical="darkness", context="it is late")


def spelled(model: EmbeddedModel, tokens: tuple[int, ...]) -> str:
    return b"".join(model.vocabulary.tokens[token] for token in tokens).decode()


def test_a_lesson_is_the_prompt_of_a_parser_then_the_output_and_its_end(
    tiny: EmbeddedModel, switches: Domain
) -> None:
    made = lesson(tiny, switches.template("tuned"), ASKED, "program")
    text = "user\nit is late\nlamp off in the hall\nassistant\n(off lamp hall)\n"  # what marks turns has no text
    assert spelled(tiny, made.tokens) == text
    parser = Parser.from_domain(switches, tiny, prompt="tuned", examples=0)
    assert made.tokens[: made.start] == tiny.prompt_ids(parser.parse(ASKED.utterance, ASKED.context).prompt)


@pytest.mark.parametrize(("target", "said"), [("program", "(off lamp hall)\n"), ("canonical", "darkness\n")])
def test_only_the_output_and_its_end_are_to_be_learned(
    tiny: EmbeddedModel, switches: Domain, target: Target, said: str
) -> None:
    made = lesson(tiny, switches.template("tuned"), ASKED, target)
    assert spelled(tiny, made.tokens[made.start :]) == said


def test_the_output_is_cut_into_tokens_as_a_parser_would_write_it(tiny: EmbeddedModel, switches: Domain) -> None:
    made = lesson(tiny, switches.template("tuned"), ASKED, "program")
    assert made.tokens[made.start : -1] == tuple(token.id for token in tiny.tokenize("(off lamp hall)"))


def order(taught: Lessons, seed: int, epoch: int) -> list[Lesson]:
    return [one for batch in taught.batches(5, seed, epoch) for one in batch]


@pytest.mark.parametrize("epoch", range(3))
def test_every_lesson_comes_once_an_epoch_in_batches_that_are_full_but_for_the_last(
    taught: Lessons, epoch: int
) -> None:
    batches = list(taught.batches(5, 7, epoch))
    assert [len(batch) for batch in batches] == [5, 5, 2]
    assert Counter(one for batch in batches for one in batch) == Counter(taught.plain)


def test_every_epoch_and_every_seed_has_an_order_of_its_own(taught: Lessons) -> None:
    orders = [order(taught, seed, epoch) for seed in range(3) for epoch in range(3)]
    assert all(one != other for i, one in enumerate(orders) for other in [list(taught.plain), *orders[:i]])


@pytest.fixture
def varied(tiny: EmbeddedModel, switches: Domain) -> Lessons:
    return Lessons(tiny, switches.template("tuned"), EXAMPLES, "program", variation(switches))


def test_the_lessons_of_an_epoch_are_the_same_for_a_seed(varied: Lessons) -> None:
    assert order(varied, 7, 2) == order(varied, 7, 2)


def test_the_first_epoch_has_the_examples_as_they_are_and_later_ones_other_names_as_well(
    tiny: EmbeddedModel, varied: Lessons
) -> None:
    assert sorted(order(varied, 7, 0)) == sorted(varied.plain)
    later = [one for epoch in range(1, 4) for one in order(varied, 7, epoch)]
    assert 0 < sum(one in varied.plain for one in later) < len(later) == 3 * len(EXAMPLES)
    texts = [spelled(tiny, one.tokens) for one in later]
    assert any("attic" in text for text in texts), "a name that no example has"
    assert all(text.count(room) in (0, 2) for text in texts for room in ("hall", "office", "kitchen", "attic"))
