"""Train LoRA layers with AdamW for a number of epochs; training can be resumed after any epoch."""

import math
from collections.abc import Callable
from typing import Any

import torch

from fewparse.tune.config import TuneConfig
from fewparse.tune.dataset import TrainingSet
from fewparse.tune.lora import LoraModel


class Trainer:
    """Trains a model from freshly initialised LoRA weights, or from a `state` that an earlier trainer returned."""

    def __init__(
        self,
        model: LoraModel,
        training_set: TrainingSet,
        epochs: int,
        config: TuneConfig,
        state: dict[str, Any] | None = None,
    ) -> None:
        model.reset(config.seed)
        self.epochs = epochs
        self.epochs_done = 0
        self.steps_per_epoch = math.ceil(len(training_set) / config.batch_size)
        self._model = model
        self._training_set = training_set
        self._config = config
        self._optimizer = torch.optim.AdamW(
            model.parameters(),
            lr=config.learning_rate,
            betas=(config.beta1, config.beta2),
            weight_decay=config.weight_decay,
        )
        if state is not None:
            self.epochs_done = state["epochs_done"]
            model.restore(state["weights"])
            self._optimizer.load_state_dict(state["optimizer"])

    @property
    def steps(self) -> int:
        """The number of steps in all epochs."""
        return self.epochs * self.steps_per_epoch

    def run_epoch(self, after_step: Callable[[int, float], None]) -> None:
        """Train for one epoch; call `after_step` with the number of steps so far and the loss per example."""
        batches = self._training_set.batches(self._config, self.epochs_done)
        for step, batch in enumerate(batches, self.epochs_done * self.steps_per_epoch):
            for group in self._optimizer.param_groups:
                group["lr"] = self._config.learning_rate * self._learning_rate_factor(step)
            loss = self._model.loss(batch)
            self._optimizer.zero_grad()
            loss.mean().backward()
            torch.nn.utils.clip_grad_norm_(self._model.parameters(), self._config.max_grad_norm)
            self._optimizer.step()
            after_step(step + 1, float(loss.detach().sum()) / len(batch))
        self.epochs_done += 1

    def _learning_rate_factor(self, step: int) -> float:
        """Return the factor of a step: linear warm-up, then linear decay to the final learning rate."""
        warmup_steps = max(1, round(self._config.warmup * self.steps))
        if step < warmup_steps:
            return (step + 1) / warmup_steps
        decay = 1 - (step - warmup_steps) / max(1, self.steps - warmup_steps)
        return max(self._config.final_learning_rate, decay)

    def state(self) -> dict[str, Any]:
        """Return what is needed to resume after the last epoch."""
        return {
            "epochs_done": self.epochs_done,
            "weights": self._model.state(),
            "optimizer": self._optimizer.state_dict(),
        }
