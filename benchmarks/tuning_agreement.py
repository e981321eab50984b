"""Compare the outputs of an adapter in llama.cpp and in torch, with greedy decoding of the same items.

Run: python benchmarks/tuning_agreement.py [DOMAIN [TARGET]], for a domain with an adapter.
"""

import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch

from fewparse import LanguageModel, Parser, load_domain, open_model
from fewparse.domains.domain import Domain
from fewparse.example import Target
from fewparse.lm.transformers import TransformersModel
from fewparse.lm.weights import pull
from fewparse.tune.lora import LoraLayer, add_lora
from measure import write

ITEMS = 100
RANK_AXIS = 0


def main(name: str, target: Target) -> None:
    """Write how many outputs are equal, and those that differ."""
    domain = load_domain(name)
    adapter = domain.adapter_path(target)
    in_torch = TransformersModel(str(pull()), name="torch")
    load_adapter(in_torch.backend.network, adapter)
    outputs = {
        "llama.cpp": predictions(domain, open_model(), target, {"adapter": adapter}),
        "torch": predictions(domain, in_torch, target, {"prompt": "tuned", "examples": 0}),
    }
    pairs = list(zip(*outputs.values(), strict=True))
    different = [f"{one} / {other}" for one, other in pairs if one != other]
    found: dict[str, object] = {"domain": name, "target": target, "items": len(pairs)}
    write("tuning-agreement", [found | {"equal": len(pairs) - len(different), "different": "; ".join(different)}])


def predictions(domain: Domain, model: LanguageModel, target: Target, chosen: dict[str, Any]) -> list[str | None]:
    """Return the outputs of a model for the first test items."""
    parser = Parser.from_domain(domain, model, target=target, decoder="greedy", rerank=0.0, **chosen)
    return [parser.parse(item.utterance, item.context).output for item in domain.test_examples[:ITEMS]]


def load_adapter(network: Any, adapter: Path) -> None:
    """Add the LoRA layers of an adapter file to a network in torch."""
    reader = gguf.GGUFReader(adapter)
    tensors = {tensor.name: np.array(tensor.data, dtype=np.float32) for tensor in reader.tensors}
    rank = next(data.shape[RANK_AXIS] for name, data in tensors.items() if name.endswith("lora_a"))
    alpha = float(reader.fields["adapter.lora.alpha"].contents())
    config = network.config
    for name, layer in add_lora(network, rank, alpha / rank).items():
        lora_b = tensors[f"{name}.lora_b"]
        if ".attn_q." in name or ".attn_k." in name:
            heads = config.num_key_value_heads if ".attn_k." in name else config.num_attention_heads
            lora_b = undo_permutation(lora_b, heads)
        set_weights(layer, tensors[f"{name}.lora_a"], lora_b)


def set_weights(layer: LoraLayer, lora_a: Any, lora_b: Any) -> None:
    """Set the weights of a layer."""
    with torch.no_grad():
        layer.lora_a.copy_(torch.from_numpy(lora_a))
        layer.lora_b.copy_(torch.from_numpy(np.ascontiguousarray(lora_b)))


def undo_permutation(rows: Any, heads: int) -> Any:
    """Reorder the rows of a query or key matrix from llama.cpp to transformers."""
    half = len(rows) // heads // 2
    return rows.reshape(heads, half, 2, -1).swapaxes(1, 2).reshape(len(rows), -1)


if __name__ == "__main__":
    chosen_target: Target = "program" if sys.argv[2:] == ["program"] else "canonical"
    main(sys.argv[1] if len(sys.argv) > 1 else "overnight/calendar", chosen_target)
