"""LoRA (Hu et al. 2021): a frozen network in torch with trainable low-rank layers, and the loss of a batch."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from fewparse.errors import ModelError
from fewparse.lm.gguf import read_metadata
from fewparse.lm.hf_backend import load, loading_errors, quiet
from fewparse.lm.local import usable_cores
from fewparse.tune.config import LAYERS, TuneConfig
from fewparse.tune.dataset import TrainingSequence

ARCHITECTURE = "llama"
"""The only architecture whose layers have known names."""
MODULES = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""The module of a block in transformers for each layer in GGUF files."""


class LoraLayer(nn.Module):  # type: ignore[misc]
    """A frozen linear layer plus `scale · B · A`; B is 0 at first, so that nothing changes before training."""

    def __init__(self, base: Any, rank: int, scale: float) -> None:
        super().__init__()
        self.base = base
        self.scale = scale
        outputs, inputs = base.weight.shape
        options = {"device": base.weight.device, "dtype": torch.float32}
        self.lora_a = nn.Parameter(torch.zeros(rank, inputs, **options))
        self.lora_b = nn.Parameter(torch.zeros(outputs, rank, **options))

    def reset(self, generator: torch.Generator) -> None:
        """Initialise A randomly and set B to 0."""
        bound = self.lora_a.shape[1] ** -0.5
        initial = torch.empty(self.lora_a.shape).uniform_(-bound, bound, generator=generator)
        with torch.no_grad():
            self.lora_a.copy_(initial)
            self.lora_b.zero_()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the output of the frozen layer plus the low-rank correction."""
        corrected: torch.Tensor = self.base(x) + ((x @ self.lora_a.T) @ self.lora_b.T) * self.scale
        return corrected


def add_lora(network: Any, rank: int, scale: float, layers: Collection[str] = LAYERS) -> dict[str, LoraLayer]:
    """Freeze a network and add LoRA layers to every block; return them by the GGUF names of their weights."""
    network.requires_grad_(False)
    added = {}
    for number, block in enumerate(network.model.layers):
        for name, module_path in MODULES.items():
            if name not in layers:
                continue
            parent_path, _, attribute = module_path.rpartition(".")
            parent = block.get_submodule(parent_path)
            layer = LoraLayer(getattr(parent, attribute), rank, scale)
            setattr(parent, attribute, layer)
            added[f"blk.{number}.{name}.weight"] = layer
    return added


class LoraModel:
    """A network whose LoRA layers are trainable; all other weights are frozen."""

    def __init__(self, path: Path, config: TuneConfig) -> None:
        if (kind := read_metadata(path)["general.architecture"]) != ARCHITECTURE:
            raise ModelError(
                f"{path} is a model of the architecture `{kind}`, and only `{ARCHITECTURE}` can be tuned",
                "Tune the default model, or a GGUF file of that architecture.",
            )
        torch.set_num_threads(usable_cores())
        with quiet(), loading_errors(str(path)):
            self.network, _ = load(str(path), single_precision=True)
        self.layers = add_lora(self.network, config.rank, config.scale, config.layers)

    @property
    def heads(self) -> tuple[int, int]:
        """The numbers of query heads and of key heads."""
        return self.network.config.num_attention_heads, self.network.config.num_key_value_heads

    def reset(self, seed: int) -> None:
        """Initialise the LoRA weights."""
        generator = torch.Generator().manual_seed(seed)
        for layer in self.layers.values():
            layer.reset(generator)

    def parameters(self) -> list[Any]:
        """Return the trainable parameters."""
        return [parameter for layer in self.layers.values() for parameter in (layer.lora_a, layer.lora_b)]

    def state(self) -> list[Any]:
        """Return a copy of the LoRA weights."""
        return [parameter.detach().cpu().clone() for parameter in self.parameters()]

    def restore(self, state: Sequence[Any]) -> None:
        """Load saved LoRA weights."""
        with torch.no_grad():
            for parameter, saved in zip(self.parameters(), state, strict=True):
                parameter.copy_(saved)

    def loss(self, batch: Sequence[TrainingSequence]) -> torch.Tensor:
        """Return the negative log-likelihood of every output token of a batch.

        The sequences are packed into one, without padding; the attention mask separates them.
        """
        device = self.network.device
        ids = torch.tensor([token for sequence in batch for token in sequence.tokens], device=device)
        owner = torch.tensor([i for i, sequence in enumerate(batch) for _ in sequence.tokens], device=device)
        position = torch.tensor([i for sequence in batch for i in range(len(sequence.tokens))], device=device)
        output_start = torch.tensor([sequence.output_start for sequence in batch], device=device)[owner]
        order = torch.arange(len(ids), device=device)
        hidden = (owner[:, None] != owner) | (order[:, None] < order)
        mask = torch.zeros(hidden.shape, device=device).masked_fill(hidden, torch.finfo(torch.float32).min)
        states = self.network.model(
            input_ids=ids[None], position_ids=position[None], attention_mask=mask[None, None], use_cache=False
        ).last_hidden_state[0]
        outputs = torch.nonzero(position >= output_start)[:, 0]
        logits = self.network.lm_head(states[outputs - 1])
        return functional.cross_entropy(logits, ids[outputs], reduction="none")
