"""A network that learns beside its frozen weights, and says in llama.cpp what it says in torch."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from fewparse.domains.domain import Domain
from fewparse.example import Example
from fewparse.lm.adapter import Provenance, read_adapter
from fewparse.lm.embedded import EmbeddedModel
from fewparse.lm.local import LocalModel
from fewparse.lm.usage import Usage
from fewparse.tune import gguf_writer
from fewparse.tune.config import TuneConfig
from fewparse.tune.dataset import Lessons
from fewparse.tune.gguf_writer import write_adapter
from fewparse.tune.lora import Pupil
from fewparse.tune.low_rank import PLACES
from fewparse.tune.trainer import Course
from support.tiny_model import BLOCKS

NOISE = 0.05  # nats between torch and llama.cpp, which keeps keys, values and the adapter in half precision
CONFIG = TuneConfig(rank=4, rate=0.02, batch=4, epochs=10)


def said_by(pupil: Pupil, taught: Lessons) -> list[float]:
    """The log-probabilities of all tokens to be learned."""
    with torch.no_grad():
        return [-float(loss) for one in taught.plain for loss in pupil.loss([one])]


def said_in_llama(model: LocalModel, domain: Domain, examples: Sequence[Example]) -> list[float]:
    template = domain.template("tuned")
    scores: list[float] = []
    for example in examples:
        prompt = template.render([], example.utterance, example.context)
        said = (*model.tokenize(template.lead + example.program), *model.tokenize(template.stop))
        scores += model.score(prompt, [()], [said], Usage())[0]
    return scores


def apart(some: Sequence[float], others: Sequence[float]) -> float:
    return float(np.abs(np.subtract(some, others)).max())


@pytest.fixture
def learned(pupil: Pupil, taught: Lessons) -> Pupil:
    """A pupil that has changed its mind."""
    course = Course(pupil, taught, CONFIG.epochs, CONFIG)
    for _ in range(course.epochs):
        course.epoch(lambda step, loss: None)
    return pupil


def provenance(model: EmbeddedModel) -> Provenance:
    return Provenance(
        domain="switches",
        target="program",
        prompt="tuned",
        base=model.name,
        base_sha256=model.sha256,
        data_sha256="",
        examples=12,
        epochs=10,
        held_out=0,
        held_out_correct=0,
        config={"rank": 4},
        fewparse="1.2.3",
    )


def test_the_loss_of_a_batch_is_that_of_its_lessons_one_by_one(learned: Pupil, taught: Lessons) -> None:
    with torch.no_grad():
        together = learned.loss(taught.plain[:5])
        alone = torch.cat([learned.loss([one]) for one in taught.plain[:5]])
    assert together.shape == (sum(len(one.tokens) - one.start for one in taught.plain[:5]),)
    assert float((together - alone).abs().max()) < 1e-4
    assert float(alone.std()) > 0.1, "the tokens are not all alike"


def test_every_linear_layer_of_every_block_learns_and_nothing_else(pupil: Pupil, taught: Lessons) -> None:
    assert set(pupil.layers) == {f"blk.{n}.{name}.weight" for n in range(BLOCKS) for name in PLACES.values()}
    with torch.no_grad():
        for layer in pupil.layers.values():
            layer.up.fill_(0.01)
    pupil.loss(taught.plain[:2]).sum().backward()
    known = {id(parameter) for parameter in pupil.parameters()}
    assert len(known) == 2 * len(pupil.layers)
    for parameter in pupil.network.parameters():
        if id(parameter) in known:
            assert float(parameter.grad.abs().max()) > 0
        else:
            assert parameter.grad is None
    pupil.network.zero_grad()


def test_learning_leaves_the_frozen_weights_as_they_were(pupil: Pupil, taught: Lessons) -> None:
    learning = {id(parameter) for parameter in pupil.parameters()}
    frozen = [parameter for parameter in pupil.network.parameters() if id(parameter) not in learning]
    before = [parameter.clone() for parameter in frozen]
    Course(pupil, taught, 1, CONFIG).epoch(lambda step, loss: None)
    assert all(map(torch.equal, frozen, before))


def test_before_it_has_learned_it_answers_as_the_model_without_layers(
    pupil: Pupil, taught: Lessons, tiny: EmbeddedModel, switches: Domain
) -> None:
    corrected = said_by(pupil, taught)
    with torch.no_grad():
        for layer in pupil.layers.values():
            layer.down.zero_()
    assert corrected == said_by(pupil, taught)
    assert apart(corrected, said_in_llama(tiny, switches, switches.examples)) < NOISE


def test_what_was_learned_can_be_forgotten_and_known_again(learned: Pupil, taught: Lessons) -> None:
    state, said = learned.state(), said_by(learned, taught)
    learned.begin(0)
    assert apart(said_by(learned, taught), said) > 1
    learned.restore(state)
    assert said_by(learned, taught) == said


def exported(pupil: Pupil, model: EmbeddedModel, path: Path) -> LocalModel:
    write_adapter(path, pupil, provenance(model))
    return model.with_adapter(read_adapter(path))


def test_the_adapter_says_in_llama_cpp_what_the_network_says_in_torch(
    learned: Pupil, taught: Lessons, tiny: EmbeddedModel, switches: Domain, tmp_path: Path
) -> None:
    said = said_by(learned, taught)
    adapted = exported(learned, tiny, tmp_path / "adapter.gguf")
    assert apart(said, said_in_llama(adapted, switches, switches.examples)) < NOISE
    assert apart(said, said_in_llama(tiny, switches, switches.examples)) > 20 * NOISE, "it has learned something"


def test_rows_of_queries_and_keys_in_the_order_of_transformers_would_say_something_else(
    learned: Pupil,
    taught: Lessons,
    tiny: EmbeddedModel,
    switches: Domain,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gguf_writer, "turned", lambda rows, heads: rows)
    unturned = exported(learned, tiny, tmp_path / "unturned.gguf")
    assert apart(said_by(learned, taught), said_in_llama(unturned, switches, switches.examples)) > 5 * NOISE


def test_the_adapter_tells_where_it_comes_from(pupil: Pupil, tiny: EmbeddedModel, tmp_path: Path) -> None:
    write_adapter(tmp_path / "adapter.gguf", pupil, provenance(tiny))
    assert read_adapter(tmp_path / "adapter.gguf").provenance == provenance(tiny)
