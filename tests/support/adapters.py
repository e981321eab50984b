"""Small random adapters for the embedded models, written by the `gguf` library that other tools use."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from fewparse.lm.adapter import PROVENANCE, Provenance

BLOCKS = 30
SHAPES = {  # rows, columns
    "attn_q": (576, 576),
    "attn_k": (192, 576),
    "attn_v": (192, 576),
    "attn_output": (576, 576),
    "ffn_gate": (1536, 576),
    "ffn_up": (1536, 576),
    "ffn_down": (576, 1536),
}
GEMMA_SHAPES = {"attn_q": (1024, 640), "attn_v": (256, 640), "ffn_down": (640, 2048)}
RANK = 2


def close(writer: Any) -> None:
    """Write the file and close the writer."""
    try:
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
    finally:
        writer.close()


def provenance(base_sha256: str = "0" * 64, **changed: Any) -> Provenance:
    """The provenance of an adapter tuned for the domain `starter`."""
    values: dict[str, Any] = {"domain": "starter", "target": "program", "prompt": "tuned", "base": "tiny"}
    values |= {"base_sha256": base_sha256, "data_sha256": "1" * 64, "examples": 20, "epochs": 3}
    values |= {"held_out": 4, "held_out_correct": 3, "config": {"rank": RANK}, "fewparse": "0.0"}
    return Provenance.model_validate(values | changed)


def write_adapter(
    path: Path,
    seed: int = 0,
    strength: float = 0.02,
    provenance: Provenance | str | None = None,
    blocks: Iterable[int] = (3, 14, 25),
    matrices: Iterable[str] = ("attn_q", "attn_v", "ffn_down"),
    too_wide: int = 0,
    architecture: str = "llama",
    shapes: Mapping[str, tuple[int, int]] = SHAPES,
) -> Path:
    """Write an adapter with random weights; strength 0 changes nothing, `too_wide` columns make it unfit."""
    random = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(str(path), architecture)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", float(RANK))
    if provenance is not None:
        text = provenance if isinstance(provenance, str) else provenance.model_dump_json()
        writer.add_string(PROVENANCE, text)
    for block in blocks:
        for matrix in matrices:
            rows, columns = shapes[matrix]
            down = random.normal(size=(RANK, columns + too_wide))
            up = random.normal(size=(rows, RANK)) * strength
            writer.add_tensor(f"blk.{block}.{matrix}.weight.lora_a", down.astype(np.float16))
            writer.add_tensor(f"blk.{block}.{matrix}.weight.lora_b", up.astype(np.float16))
    close(writer)
    return path
