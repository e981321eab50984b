"""Write low-rank layers as a GGUF adapter, as llama.cpp reads them."""

import errno
import os
from pathlib import Path

import gguf
import numpy as np
from numpy.typing import NDArray

from fewparse.errors import TuningError
from fewparse.lm.adapter import PROVENANCE, Provenance
from fewparse.tune.lora import Pupil

Weights = NDArray[np.float32]


def write_adapter(path: Path, pupil: Pupil, provenance: Provenance) -> None:
    """All that a pupil has learned, in half precision, with where it comes from."""
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_type("adapter")
    writer.add_name(f"{provenance.domain} ({provenance.target})")
    writer.add_string("adapter.type", "lora")
    first = next(iter(pupil.layers.values()))
    writer.add_float32("adapter.lora.alpha", first.scale * len(first.down))
    writer.add_string(PROVENANCE, provenance.model_dump_json())
    for name, layer in pupil.layers.items():
        down, up = (part.detach().cpu().numpy() for part in (layer.down, layer.up))
        if not (np.isfinite(down).all() and np.isfinite(up).all()):
            raise TuningError(f"the weights of {name} are no numbers any more", "Learn more slowly: halve --rate.")
        if ".attn_q." in name or ".attn_k." in name:
            up = turned(up, pupil.heads[".attn_k." in name])
        writer.add_tensor(f"{name}.lora_a", down.astype(np.float16))
        writer.add_tensor(f"{name}.lora_b", np.ascontiguousarray(up).astype(np.float16))
    try:
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
    finally:
        writer.close()
    check_whole(path)


def check_whole(path: Path) -> None:
    """Refuse a file that lacks its end: numpy, which writes tensors, may not notice that a disk is full."""
    try:
        gguf.GGUFReader(path)
    except ValueError:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from None


def turned(rows: Weights, heads: int) -> Weights:
    """Rows of queries or keys in llama.cpp's order: a position turns neighbours there, halves in transformers."""
    half = len(rows) // heads // 2
    return rows.reshape(heads, 2, half, -1).swapaxes(1, 2).reshape(len(rows), -1)
