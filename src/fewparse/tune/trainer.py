"""A course of training: epochs over lessons under one schedule, to be left and taken up between any two."""

import math
from collections.abc import Callable
from typing import Any

import torch

from fewparse.tune.config import TuneConfig
from fewparse.tune.dataset import Lessons
from fewparse.tune.lora import Pupil

MOMENTA = (0.9, 0.99)
WARM_UP = 0.1
LAST_RATE = 0.02
LONGEST_GRADIENT = 1.0


class Course:
    """A pupil that begins anew and learns for so many epochs; the rate rises at first, then falls to the end."""

    def __init__(
        self,
        pupil: Pupil,
        taught: Lessons,
        epochs: int,
        config: TuneConfig,
        state: dict[str, Any] | None = None,
    ) -> None:
        pupil.begin(config.seed)
        self.epochs = epochs
        self.done = 0
        self.steps_an_epoch = math.ceil(len(taught) / config.batch)
        self._pupil = pupil
        self._taught = taught
        self._config = config
        self._optimizer = torch.optim.AdamW(pupil.parameters(), lr=config.rate, betas=MOMENTA, weight_decay=0.0)
        if state is not None:
            self.done = state["done"]
            pupil.restore(state["pupil"])
            self._optimizer.load_state_dict(state["optimizer"])

    @property
    def steps(self) -> int:
        """How many batches all epochs have."""
        return self.epochs * self.steps_an_epoch

    def epoch(self, after_step: Callable[[int, float], None]) -> None:
        """Go through all lessons once; `after_step` is told how many steps were made so far, and the loss."""
        batches = self._taught.batches(self._config.batch, self._config.seed, self.done)
        for step, batch in enumerate(batches, self.done * self.steps_an_epoch):
            for group in self._optimizer.param_groups:
                group["lr"] = self._config.rate * self._share_of_rate(step)
            loss = self._pupil.loss(batch)
            self._optimizer.zero_grad()
            loss.mean().backward()
            torch.nn.utils.clip_grad_norm_(self._pupil.parameters(), LONGEST_GRADIENT)
            self._optimizer.step()
            after_step(step + 1, float(loss.detach().sum()) / len(batch))
        self.done += 1

    def _share_of_rate(self, step: int) -> float:
        warm = max(1, round(WARM_UP * self.steps))
        if step < warm:
            return (step + 1) / warm
        return max(LAST_RATE, 1 - (step - warm) / max(1, self.steps - warm))

    def state(self) -> dict[str, Any]:
        """All that is needed to take it up again."""
        return {"done": self.done, "pupil": self._pupil.state(), "optimizer": self._optimizer.state_dict()}
