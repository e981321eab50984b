"""A model that learns: the network in torch, its low-rank layers, and the loss of a batch."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from fewparse.errors import ModelError
from fewparse.lm.hf_backend import load, loading_errors, quiet
from fewparse.lm.local import usable_cores
from fewparse.tune.dataset import Lesson
from fewparse.tune.low_rank import attach

TEACHABLE = "llama"
"""The one architecture whose layers are known here by name."""


class Pupil:
    """A network whose low-rank layers learn; everything else is frozen."""

    def __init__(self, path: Path, rank: int, scale: float) -> None:
        torch.set_num_threads(usable_cores())
        with quiet(), loading_errors(str(path)):
            self.network, _ = load(str(path), single_precision=True)
        if (kind := self.network.config.model_type) != TEACHABLE:
            raise ModelError(
                f"{path} is a model of the kind `{kind}`, and only `{TEACHABLE}` can be tuned",
                "Tune the embedded model, or a GGUF file of that kind.",
            )
        self.layers = attach(self.network, rank, scale)

    @property
    def heads(self) -> tuple[int, int]:
        """How many heads there are of queries, and of keys."""
        return self.network.config.num_attention_heads, self.network.config.num_key_value_heads

    def begin(self, seed: int) -> None:
        """Forget what was learned."""
        random = torch.Generator().manual_seed(seed)
        for layer in self.layers.values():
            layer.begin(random)

    def parameters(self) -> list[Any]:
        """Everything that learns."""
        return [parameter for layer in self.layers.values() for parameter in (layer.down, layer.up)]

    def state(self) -> list[Any]:
        """A copy of what has been learned."""
        return [parameter.detach().cpu().clone() for parameter in self.parameters()]

    def restore(self, state: Sequence[Any]) -> None:
        """Know again what was known."""
        with torch.no_grad():
            for parameter, known in zip(self.parameters(), state, strict=True):
                parameter.copy_(known)

    def loss(self, batch: Sequence[Lesson]) -> torch.Tensor:
        """The negative log-likelihood of every token to be learned.

        The lessons stand behind one another as one sequence, so that nothing is padded; the mask keeps each from
        seeing the others.
        """
        device = self.network.device
        ids = torch.tensor([token for taught in batch for token in taught.tokens], device=device)
        owner = torch.tensor([which for which, taught in enumerate(batch) for _ in taught.tokens], device=device)
        place = torch.tensor([at for taught in batch for at in range(len(taught.tokens))], device=device)
        start = torch.tensor([taught.start for taught in batch], device=device)[owner]
        order = torch.arange(len(ids), device=device)
        hidden = (owner[:, None] != owner) | (order[:, None] < order)
        mask = torch.zeros(hidden.shape, device=device).masked_fill(hidden, torch.finfo(torch.float32).min)
        states = self.network.model(
            input_ids=ids[None], position_ids=place[None], attention_mask=mask[None, None], use_cache=False
        ).last_hidden_state[0]
        learned = torch.nonzero(place >= start)[:, 0]
        logits = self.network.lm_head(states[learned - 1])
        return functional.cross_entropy(logits, ids[learned], reduction="none")
