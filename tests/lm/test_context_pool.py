"""Several parses at a time with one embedded model: the same results as one by one."""

import threading
from collections.abc import Iterator

import pytest

from fewparse.domains.load import load_domain
from fewparse.errors import ModelError
from fewparse.example import Parse
from fewparse.lm.embedded import EmbeddedModel
from fewparse.lm.model import Sampling
from fewparse.lm.usage import Usage
from fewparse.parser import Parser
from support.prompts import plain_prompt

CALENDAR = load_domain("calendar")
UTTERANCES = [example.utterance for example in CALENDAR.test_examples[:6]]
TIMEOUT = 60


@pytest.fixture(scope="module")
def pair(model: EmbeddedModel) -> Iterator[EmbeddedModel]:
    """The embedded model for two parses at a time."""
    opened = EmbeddedModel(model.path, threads=2, max_concurrency=2)
    yield opened
    opened.close()


def outputs(parse: Parse) -> list[tuple[str, float]]:
    return [(candidate.text, candidate.score) for candidate in parse.candidates]


def test_parses_at_a_time_have_exactly_the_results_of_parses_one_by_one(
    model: EmbeddedModel, pair: EmbeddedModel
) -> None:
    adapter = CALENDAR.adapter_path("canonical")
    one, two = (Parser.from_domain(CALENDAR, each, adapter=adapter) for each in (model, pair))
    assert (one.max_concurrency, two.max_concurrency) == (1, 2)
    assert [outputs(p) for p in two.parse_many(UTTERANCES)] == [outputs(p) for p in one.parse_many(UTTERANCES)]


def test_a_query_in_another_thread_does_not_displace_a_prompt(pair: EmbeddedModel) -> None:
    """A query runs while another one is under way, and each finds its own prompt in the cache afterwards."""
    prompts = [plain_prompt("The capital of Peru is"), plain_prompt("Rivers of Spain:")]
    inside, leave, usage = threading.Event(), threading.Event(), Usage()

    class Waiting:
        def advance(self, piece: bytes) -> None:
            inside.set()
            assert leave.wait(TIMEOUT)

    def slow() -> None:
        pair.sample(prompts[0], [()], Sampling(n=1, temperature=0, max_tokens=3, stop=b"\0"), Usage(), [Waiting()])
        pair.next_tokens(prompts[0], [()], 1, b"\n", usage)

    thread = threading.Thread(target=slow)
    thread.start()
    try:
        assert inside.wait(TIMEOUT)
        pair.next_tokens(prompts[1], [()], 1, b"\n", Usage())
    finally:
        leave.set()
        thread.join(TIMEOUT)
    pair.next_tokens(prompts[1], [()], 1, b"\n", usage)
    assert usage.prefill_tokens == 0


def test_closing_waits_for_all_queries(model: EmbeddedModel) -> None:
    opened = EmbeddedModel(model.path, threads=2, max_concurrency=9)
    assert opened.max_concurrency == 2  # no more than threads
    inside, errors = threading.Barrier(3), list[ModelError]()

    class Guided:
        def advance(self, piece: bytes) -> "Guided":
            return self

    class Closing:
        def advance(self, piece: bytes) -> Guided:
            inside.wait(TIMEOUT)
            opened.close()
            return Guided()

    def work() -> None:
        sampling = Sampling(n=1, temperature=0, max_tokens=9, stop=b"\0")
        try:
            opened.sample(plain_prompt("Fruits:"), [()], sampling, Usage(), [Closing()])
        except ModelError as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    inside.wait(TIMEOUT)
    opened.close()
    for thread in threads:
        thread.join(TIMEOUT)
        assert not thread.is_alive()
    assert all("is closed" in error.message for error in errors)
    with pytest.raises(ModelError, match="is closed"):
        opened.next_tokens(plain_prompt("Fruits:"), [()], 1, b"\n", Usage())
