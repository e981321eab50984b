"""Training is deterministic for a seed, can be resumed after any epoch, and follows the configuration."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from fewparse.tune.config import TuneConfig
from fewparse.tune.dataset import TrainingSequence, TrainingSet
from fewparse.tune.lora import LoraModel
from fewparse.tune.trainer import Trainer

CONFIG = TuneConfig(rank=4, learning_rate=0.01, batch_size=5, epochs=4)


def ignore(step: int, loss: float) -> None:
    pass


def train(model: LoraModel, training_set: TrainingSet, config: TuneConfig = CONFIG) -> list[Any]:
    """Train for all epochs and return the weights."""
    trainer = Trainer(model, training_set, config.epochs, config)
    while trainer.epochs_done < trainer.epochs:
        trainer.run_epoch(ignore)
    return model.state()


def learning_rates(model: LoraModel, training_set: TrainingSet, config: TuneConfig, epochs: int) -> list[float]:
    """The learning rate of each step."""
    trainer, rates = Trainer(model, training_set, epochs, config), list[float]()

    def note(step: int, loss: float) -> None:
        rates.append(trainer.state()["optimizer"]["param_groups"][0]["lr"])

    for _ in range(epochs):
        trainer.run_epoch(note)
    return rates


def test_the_loss_falls(lora_model: LoraModel, training_set: TrainingSet) -> None:
    trainer, losses = Trainer(lora_model, training_set, 10, CONFIG), list[float]()
    for _ in range(trainer.epochs):
        trainer.run_epoch(lambda step, loss: losses.append(loss))
    assert max(losses[-3:]) < 0.7 * min(losses[:3])


def test_every_step_is_reported_with_its_number(lora_model: LoraModel, training_set: TrainingSet) -> None:
    trainer, steps = Trainer(lora_model, training_set, 2, CONFIG), list[int]()
    assert (trainer.steps_per_epoch, trainer.steps) == (3, 6)
    for _ in range(2):
        trainer.run_epoch(lambda step, loss: steps.append(step))
    assert steps == [1, 2, 3, 4, 5, 6]
    assert trainer.epochs_done == 2


def test_the_weights_depend_on_the_seed_and_not_on_earlier_training(
    lora_model: LoraModel, training_set: TrainingSet
) -> None:
    once = train(lora_model, training_set)
    assert all(map(torch.equal, once, train(lora_model, training_set)))
    other = train(lora_model, training_set, replace(CONFIG, seed=1))
    assert not any(map(torch.equal, once, other))


@pytest.mark.parametrize("stopped_after", range(CONFIG.epochs + 1))
def test_resumed_training_ends_with_the_same_weights(
    lora_model: LoraModel, training_set: TrainingSet, stopped_after: int
) -> None:
    uninterrupted = train(lora_model, training_set)
    first = Trainer(lora_model, training_set, CONFIG.epochs, CONFIG)
    for _ in range(stopped_after):
        first.run_epoch(ignore)
    state = first.state()
    lora_model.reset(99)
    resumed = Trainer(lora_model, training_set, CONFIG.epochs, CONFIG, state)
    assert resumed.epochs_done == stopped_after
    while resumed.epochs_done < resumed.epochs:
        resumed.run_epoch(ignore)
    assert all(map(torch.equal, lora_model.state(), uninterrupted))


def test_the_learning_rate_rises_at_first_then_falls_to_the_end(
    lora_model: LoraModel, training_set: TrainingSet
) -> None:
    rates = learning_rates(lora_model, training_set, CONFIG, 10)
    assert len(rates) == 30
    highest = rates.index(max(rates))
    assert 0 < highest < 5
    assert max(rates) == pytest.approx(CONFIG.learning_rate)
    assert rates[:highest] == sorted(set(rates[:highest]))
    assert rates[highest + 1 :] == sorted(set(rates[highest + 1 :]), reverse=True)
    assert CONFIG.final_learning_rate * CONFIG.learning_rate <= rates[-1] < 0.1 * CONFIG.learning_rate


def test_warmup_and_final_learning_rate_are_those_of_the_configuration(
    lora_model: LoraModel, training_set: TrainingSet
) -> None:
    config = replace(CONFIG, warmup=0.5, final_learning_rate=0.4)
    rates = learning_rates(lora_model, training_set, config, 2)
    assert rates == pytest.approx([rate * CONFIG.learning_rate for rate in (1 / 3, 2 / 3, 1, 1, 2 / 3, 0.4)])
    without_warmup = learning_rates(lora_model, training_set, replace(CONFIG, warmup=0.0), 1)
    assert without_warmup == pytest.approx([rate * CONFIG.learning_rate for rate in (1, 1, 0.5)])


def test_the_optimizer_has_the_betas_and_the_weight_decay_of_the_configuration(
    lora_model: LoraModel, training_set: TrainingSet
) -> None:
    config = replace(CONFIG, beta1=0.7, beta2=0.8, weight_decay=0.3)
    (group,) = Trainer(lora_model, training_set, 1, config).state()["optimizer"]["param_groups"]
    assert (group["betas"], group["weight_decay"]) == ((0.7, 0.8), 0.3)


@pytest.mark.parametrize("max_grad_norm", [0.001, 0.5])
def test_gradients_are_clipped_to_the_norm_of_the_configuration(
    lora_model: LoraModel, training_set: TrainingSet, max_grad_norm: float
) -> None:
    norms: list[float] = []

    def note(step: int, loss: float) -> None:
        gradients = torch.cat([parameter.grad.flatten() for parameter in lora_model.parameters()])
        norms.append(float(gradients.norm()))

    Trainer(lora_model, training_set, 1, replace(CONFIG, max_grad_norm=max_grad_norm)).run_epoch(note)
    assert norms == pytest.approx([max_grad_norm] * 3, rel=1e-3)


CHANGED = {
    "learning_rate": 0.02,
    "batch_size": 4,
    "seed": 1,
    "warmup": 0.5,
    "final_learning_rate": 0.9,
    "beta1": 0.5,
    "beta2": 0.5,
    "weight_decay": 0.5,
    "max_grad_norm": 0.001,
}


@pytest.mark.parametrize(("name", "value"), CHANGED.items())
def test_another_value_gives_other_weights(
    lora_model: LoraModel, training_set: TrainingSet, name: str, value: Any
) -> None:
    before = train(lora_model, training_set)
    after = train(lora_model, training_set, replace(CONFIG, **{name: value}))
    assert not all(map(torch.equal, before, after))


def test_the_training_set_gets_the_configuration_and_the_epoch(lora_model: LoraModel) -> None:
    received: list[tuple[TuneConfig, int]] = []

    class Recorder(TrainingSet):
        def __init__(self) -> None:
            self.sequences = (TrainingSequence((1, 2, 3), 1),)

        def batches(self, config: TuneConfig, epoch: int) -> Iterator[list[TrainingSequence]]:
            received.append((config, epoch))
            yield list(self.sequences)

    config = replace(CONFIG, augmented=0.25, epochs=2)
    train(lora_model, Recorder(), config)
    assert received == [(config, 0), (config, 1)]
