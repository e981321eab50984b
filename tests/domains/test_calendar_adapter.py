"""The adapter that comes with the calendar: small, of these examples and this model, and worth its place."""

import pytest

from fewparse.domains.load import load_domain
from fewparse.evaluate.metrics import Judge
from fewparse.lm.adapter import read_adapter
from fewparse.lm.embedded import EmbeddedModel
from fewparse.lm.weights import SMOLLM2
from fewparse.parser import Parser

CALENDAR = load_domain("calendar")
ADAPTER = read_adapter(CALENDAR.adapter_path("canonical"))
LARGEST = 5_000_000


def test_it_is_small() -> None:
    assert ADAPTER.path.stat().st_size <= LARGEST


def test_it_was_tuned_on_the_training_examples_as_they_are_and_for_the_embedded_model() -> None:
    told = ADAPTER.provenance
    assert told is not None
    assert (told.domain, told.target, told.examples) == ("calendar", "canonical", len(CALENDAR.examples))
    assert told.data_sha256 == CALENDAR.data_sha256("canonical")
    assert told.base_sha256 == SMOLLM2.sha256


@pytest.mark.slow
def test_it_answers_85_of_100_held_out_questions_right(model: EmbeddedModel) -> None:
    parser = Parser.from_domain(CALENDAR, model, adapter=ADAPTER.path)
    judge = Judge(CALENDAR)
    items = CALENDAR.test_examples
    right = sum(judge.is_correct(parser.parse(item.utterance).program, item.program) for item in items)
    assert right >= 0.85 * len(items)


def test_its_prompt_has_no_instruction_and_no_examples(model: EmbeddedModel) -> None:
    parse = Parser.from_domain(CALENDAR, model, adapter=ADAPTER.path).parse("when is my next meeting with Elena?")
    assert [message.content for message in parse.prompt.messages] == ["when is my next meeting with Elena?"]
    assert parse.examples == ()
    assert parse.program == "(when (next (meetings (with me Elena))))"
