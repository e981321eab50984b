"""Does the adapter in llama.cpp say what the tuned network says in torch? Both parse the same items greedily.

Run: python benchmarks/tuning_agreement.py [DOMAIN [TARGET]], for a domain that has its adapter.
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
from fewparse.tune.low_rank import LowRank, attach
from measure import write

ITEMS = 100
RANK_AXIS = 0


def main(name: str, target: Target) -> None:
    """How many predictions are equal, and the items on which they are not."""
    domain = load_domain(name)
    adapter = domain.adapter_path(target)
    in_torch = TransformersModel(str(pull()), name="torch")
    give(in_torch.backend.network, adapter)
    said = {
        "llama.cpp": predictions(domain, open_model(), target, {"adapter": adapter}),
        "torch": predictions(domain, in_torch, target, {"prompt": "tuned", "examples": 0}),
    }
    pairs = list(zip(*said.values(), strict=True))
    different = [f"{one} / {other}" for one, other in pairs if one != other]
    found: dict[str, object] = {"domain": name, "target": target, "items": len(pairs)}
    write("tuning-agreement", [found | {"equal": len(pairs) - len(different), "different": "; ".join(different)}])


def predictions(domain: Domain, model: LanguageModel, target: Target, chosen: dict[str, Any]) -> list[str | None]:
    """What a model says for the first test items."""
    parser = Parser.from_domain(domain, model, target=target, decoder="greedy", rerank=0.0, **chosen)
    return [parser.parse(item.utterance, item.context).output for item in domain.test_examples[:ITEMS]]


def give(network: Any, adapter: Path) -> None:
    """Let a network in torch know what an adapter file knows."""
    reader = gguf.GGUFReader(adapter)
    tensors = {tensor.name: np.array(tensor.data, dtype=np.float32) for tensor in reader.tensors}
    rank = next(data.shape[RANK_AXIS] for name, data in tensors.items() if name.endswith("lora_a"))
    alpha = float(reader.fields["adapter.lora.alpha"].contents())
    config = network.config
    for name, layer in attach(network, rank, alpha / rank).items():
        up = tensors[f"{name}.lora_b"]
        if ".attn_q." in name or ".attn_k." in name:
            up = turned_back(up, config.num_key_value_heads if ".attn_k." in name else config.num_attention_heads)
        know(layer, tensors[f"{name}.lora_a"], up)


def know(layer: LowRank, down: Any, up: Any) -> None:
    """Set the weights of a layer."""
    with torch.no_grad():
        layer.down.copy_(torch.from_numpy(down))
        layer.up.copy_(torch.from_numpy(np.ascontiguousarray(up)))


def turned_back(rows: Any, heads: int) -> Any:
    """Rows of queries or keys in the order of transformers."""
    half = len(rows) // heads // 2
    return rows.reshape(heads, half, 2, -1).swapaxes(1, 2).reshape(len(rows), -1)


if __name__ == "__main__":
    chosen_target: Target = "program" if sys.argv[2:] == ["program"] else "canonical"
    main(sys.argv[1] if len(sys.argv) > 1 else "overnight/calendar", chosen_target)
