"""Low-rank layers: what is learned beside frozen weights, as `up · down` added to each linear layer."""

from typing import Any

import torch
from torch import nn

PLACES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
"""The linear layers of a block that learn, and what GGUF files call them."""


class LowRank(nn.Module):  # type: ignore[misc]
    """A frozen linear layer with a low-rank correction, which is nothing before it has learned."""

    def __init__(self, base: Any, rank: int, scale: float) -> None:
        super().__init__()
        self.base = base
        self.scale = scale
        outputs, inputs = base.weight.shape
        where = {"device": base.weight.device, "dtype": torch.float32}
        self.down = nn.Parameter(torch.zeros(rank, inputs, **where))
        self.up = nn.Parameter(torch.zeros(outputs, rank, **where))

    def begin(self, random: torch.Generator) -> None:
        """Forget what was learned."""
        spread = self.down.shape[1] ** -0.5
        fresh = torch.empty(self.down.shape).uniform_(-spread, spread, generator=random)
        with torch.no_grad():
            self.down.copy_(fresh)
            self.up.zero_()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The layer's own answer, corrected."""
        corrected: torch.Tensor = self.base(x) + ((x @ self.down.T) @ self.up.T) * self.scale
        return corrected


def attach(network: Any, rank: int, scale: float) -> dict[str, LowRank]:
    """Put low-rank layers into every block of a network; each by the name of its weights in GGUF files."""
    network.requires_grad_(False)
    layers = {}
    for number, block in enumerate(network.model.layers):
        for place, name in PLACES.items():
            owner, _, attribute = place.rpartition(".")
            module = block.get_submodule(owner)
            layer = LowRank(getattr(module, attribute), rank, scale)
            setattr(module, attribute, layer)
            layers[f"blk.{number}.{name}.weight"] = layer
    return layers
