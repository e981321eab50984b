"""LoRA layers: trained beside frozen weights, with the same log-probabilities in torch and in llama.cpp."""

from collections.abc import Sequence
from dataclasses import replace
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
from fewparse.tune.config import LAYERS, TuneConfig
from fewparse.tune.dataset import TrainingSet
from fewparse.tune.gguf_writer import write_adapter
from fewparse.tune.lora import LoraModel
from fewparse.tune.trainer import Trainer
from support.tiny_model import BLOCKS

NOISE = 0.05  # nats between torch and llama.cpp, which keeps keys, values and the adapter in half precision
CONFIG = TuneConfig(rank=4, learning_rate=0.02, batch_size=4, epochs=10)


def torch_logprobs(model: LoraModel, training_set: TrainingSet) -> list[float]:
    """The log-probabilities of all output tokens."""
    with torch.no_grad():
        return [-float(loss) for sequence in training_set.sequences for loss in model.loss([sequence])]


def llama_logprobs(model: LocalModel, domain: Domain, examples: Sequence[Example]) -> list[float]:
    template = domain.template("tuned")
    logprobs: list[float] = []
    for example in examples:
        prompt = template.render([], example.utterance, example.context)
        output = (*model.tokenize(template.lead + example.program), *model.tokenize(template.stop))
        logprobs += model.score(prompt, [()], [output], Usage())[0]
    return logprobs


def difference(some: Sequence[float], others: Sequence[float]) -> float:
    """The largest difference between two lists of log-probabilities."""
    return float(np.abs(np.subtract(some, others)).max())


def train(model: LoraModel, training_set: TrainingSet, config: TuneConfig = CONFIG) -> None:
    trainer = Trainer(model, training_set, config.epochs, config)
    for _ in range(trainer.epochs):
        trainer.run_epoch(lambda step, loss: None)


@pytest.fixture
def trained(lora_model: LoraModel, training_set: TrainingSet) -> LoraModel:
    """The small model after training."""
    train(lora_model, training_set)
    return lora_model


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


def layer_names(layers: Sequence[str]) -> set[str]:
    return {f"blk.{block}.{layer}.weight" for block in range(BLOCKS) for layer in layers}


def test_the_loss_of_a_batch_is_that_of_its_sequences_one_by_one(
    trained: LoraModel, training_set: TrainingSet
) -> None:
    batch = training_set.sequences[:5]
    with torch.no_grad():
        together = trained.loss(batch)
        alone = torch.cat([trained.loss([sequence]) for sequence in batch])
    assert together.shape == (sum(len(sequence.tokens) - sequence.output_start for sequence in batch),)
    assert float((together - alone).abs().max()) < 1e-4
    assert float(alone.std()) > 0.1, "the losses differ between tokens"


def test_every_linear_layer_of_every_block_is_trainable_and_nothing_else(
    lora_model: LoraModel, training_set: TrainingSet
) -> None:
    assert set(lora_model.layers) == layer_names(LAYERS)
    with torch.no_grad():
        for layer in lora_model.layers.values():
            layer.lora_b.fill_(0.01)
    lora_model.loss(training_set.sequences[:2]).sum().backward()
    trainable = {id(parameter) for parameter in lora_model.parameters()}
    assert len(trainable) == 2 * len(lora_model.layers)
    for parameter in lora_model.network.parameters():
        if id(parameter) in trainable:
            assert float(parameter.grad.abs().max()) > 0
        else:
            assert parameter.grad is None
    lora_model.network.zero_grad()


def test_training_does_not_change_the_frozen_weights(lora_model: LoraModel, training_set: TrainingSet) -> None:
    trainable = {id(parameter) for parameter in lora_model.parameters()}
    frozen = [parameter for parameter in lora_model.network.parameters() if id(parameter) not in trainable]
    before = [parameter.clone() for parameter in frozen]
    Trainer(lora_model, training_set, 1, CONFIG).run_epoch(lambda step, loss: None)
    assert all(map(torch.equal, frozen, before))


def test_initial_lora_weights_do_not_change_the_log_probabilities(
    lora_model: LoraModel, training_set: TrainingSet, tiny: EmbeddedModel, switches: Domain
) -> None:
    initial = torch_logprobs(lora_model, training_set)
    with torch.no_grad():
        for layer in lora_model.layers.values():
            layer.lora_a.zero_()
    assert initial == torch_logprobs(lora_model, training_set)
    assert difference(initial, llama_logprobs(tiny, switches, switches.examples)) < NOISE


def test_weights_can_be_reset_and_restored(trained: LoraModel, training_set: TrainingSet) -> None:
    state, logprobs = trained.state(), torch_logprobs(trained, training_set)
    trained.reset(0)
    assert difference(torch_logprobs(trained, training_set), logprobs) > 1
    trained.restore(state)
    assert torch_logprobs(trained, training_set) == logprobs


def exported(lora_model: LoraModel, model: EmbeddedModel, path: Path) -> LocalModel:
    write_adapter(path, lora_model, provenance(model))
    return model.with_adapter(read_adapter(path))


def test_the_adapter_gives_the_same_log_probabilities_in_llama_cpp_as_in_torch(
    trained: LoraModel, training_set: TrainingSet, tiny: EmbeddedModel, switches: Domain, tmp_path: Path
) -> None:
    logprobs = torch_logprobs(trained, training_set)
    adapted = exported(trained, tiny, tmp_path / "adapter.gguf")
    assert difference(logprobs, llama_logprobs(adapted, switches, switches.examples)) < NOISE
    base = llama_logprobs(tiny, switches, switches.examples)
    assert difference(logprobs, base) > 20 * NOISE, "training has an effect"


def test_rows_of_queries_and_keys_in_the_order_of_transformers_give_other_log_probabilities(
    trained: LoraModel,
    training_set: TrainingSet,
    tiny: EmbeddedModel,
    switches: Domain,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gguf_writer, "permute_for_rope", lambda rows, heads: rows)
    unpermuted = exported(trained, tiny, tmp_path / "unpermuted.gguf")
    logprobs = llama_logprobs(unpermuted, switches, switches.examples)
    assert difference(torch_logprobs(trained, training_set), logprobs) > 5 * NOISE


@pytest.mark.parametrize("layers", [("attn_v", "attn_q"), ("ffn_down",)])
def test_a_subset_of_the_layers_can_be_trained_and_exported(
    layers: tuple[str, ...],
    training_set: TrainingSet,
    tiny: EmbeddedModel,
    tiny_path: Path,
    switches: Domain,
    tmp_path: Path,
) -> None:
    config = replace(CONFIG, layers=layers)
    model = LoraModel(tiny_path, config)
    assert set(model.layers) == layer_names(layers)
    train(model, training_set, config)
    logprobs = torch_logprobs(model, training_set)
    adapted = exported(model, tiny, tmp_path / "adapter.gguf")
    assert difference(logprobs, llama_logprobs(adapted, switches, switches.examples)) < NOISE
    base = llama_logprobs(tiny, switches, switches.examples)
    assert difference(logprobs, base) > 20 * NOISE, "training has an effect"


def test_the_adapter_contains_its_provenance(lora_model: LoraModel, tiny: EmbeddedModel, tmp_path: Path) -> None:
    write_adapter(tmp_path / "adapter.gguf", lora_model, provenance(tiny))
    assert read_adapter(tmp_path / "adapter.gguf").provenance == provenance(tiny)
