"""Write LoRA layers as a GGUF adapter for llama.cpp."""

import errno
import os
from pathlib import Path

import gguf
import numpy as np
from numpy.typing import NDArray

from fewparse.errors import TuningError
from fewparse.lm.adapter import PROVENANCE, Provenance
from fewparse.tune.checkpoint import replacing
from fewparse.tune.lora import LoraModel

Weights = NDArray[np.float32]


def write_adapter(path: Path, model: LoraModel, provenance: Provenance) -> None:
    """Write the LoRA weights in half precision with their provenance, replacing `path` atomically.

    Raises `TuningError` if the file cannot be written or a weight is not finite.
    """
    with replacing(path) as temporary:
        writer = gguf.GGUFWriter(str(temporary), "llama")
        writer.add_type("adapter")
        writer.add_name(f"{provenance.domain} ({provenance.target})")
        writer.add_string("adapter.type", "lora")
        first = next(iter(model.layers.values()))
        writer.add_float32("adapter.lora.alpha", first.scale * len(first.lora_a))
        writer.add_string(PROVENANCE, provenance.model_dump_json())
        for name, layer in model.layers.items():
            a, b = (weights.detach().cpu().numpy() for weights in (layer.lora_a, layer.lora_b))
            if not (np.isfinite(a).all() and np.isfinite(b).all()):
                raise TuningError(
                    f"the weights of {name} are not finite", "Use a lower learning rate: halve --learning-rate."
                )
            if ".attn_q." in name or ".attn_k." in name:
                b = permute_for_rope(b, model.heads[".attn_k." in name])
            writer.add_tensor(f"{name}.lora_a", a.astype(np.float16))
            writer.add_tensor(f"{name}.lora_b", np.ascontiguousarray(b).astype(np.float16))
        try:
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.write_tensors_to_file()
        finally:
            writer.close()
        check_complete(temporary)


def check_complete(path: Path) -> None:
    """Raise `OSError` if a GGUF file is truncated: numpy, which writes tensors, may not notice a full disk."""
    try:
        gguf.GGUFReader(path)
    except ValueError:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from None


def permute_for_rope(rows: Weights, heads: int) -> Weights:
    """Reorder the rows of a query or key matrix from transformers to llama.cpp.

    Rotary position embeddings rotate adjacent rows in llama.cpp, and rows of the two halves in transformers.
    """
    half = len(rows) // heads // 2
    return rows.reshape(heads, 2, half, -1).swapaxes(1, 2).reshape(len(rows), -1)
