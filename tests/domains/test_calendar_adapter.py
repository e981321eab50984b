"""The bundled adapter of the calendar domain: its size, provenance and accuracy."""

from fewparse.domains.load import load_domain
from fewparse.evaluate.metrics import Judge
from fewparse.lm.adapter import read_adapter
from fewparse.lm.catalogue import SMOLLM2
from fewparse.lm.embedded import EmbeddedModel
from fewparse.parser import Parser
from support.campaign import sizes

CALENDAR = load_domain("calendar")
ADAPTER = read_adapter(CALENDAR.adapter_path("canonical"))
MAX_SIZE = 5_000_000


def test_it_is_small() -> None:
    assert ADAPTER.path.stat().st_size <= MAX_SIZE


def test_it_was_tuned_on_the_current_training_examples_for_the_embedded_model() -> None:
    provenance = ADAPTER.provenance
    assert provenance is not None
    assert (provenance.domain, provenance.target, provenance.examples) == (
        "calendar",
        "canonical",
        len(CALENDAR.examples),
    )
    assert provenance.data_sha256 == CALENDAR.data_sha256("canonical")
    assert provenance.base_sha256 == SMOLLM2.sha256


@sizes("step", default=8, campaign=1)
def test_it_parses_85_percent_of_the_test_examples_correctly(model: EmbeddedModel, step: int) -> None:
    parser = Parser.from_domain(CALENDAR, model, adapter=ADAPTER.path)
    judge = Judge(CALENDAR)
    items = CALENDAR.test_examples[::step]
    correct = sum(judge.is_correct(parser.parse(item.utterance).program, item.program) for item in items)
    assert correct >= 0.85 * len(items)


def test_its_prompt_has_no_instruction_and_no_examples(model: EmbeddedModel) -> None:
    parse = Parser.from_domain(CALENDAR, model, adapter=ADAPTER.path).parse("when is my next meeting with Elena?")
    assert [message.content for message in parse.prompt.messages] == ["when is my next meeting with Elena?"]
    assert parse.examples == ()
    assert parse.program == "(when (next (meetings (with me Elena))))"
