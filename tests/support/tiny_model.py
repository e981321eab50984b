"""A small random language model as a GGUF file, for llama.cpp and transformers.

Its vocabulary is the first part of that of the embedded model.
"""

from collections.abc import Iterator
from pathlib import Path

import gguf
import numpy as np

from fewparse.lm.gguf import read_metadata
from fewparse.lm.weights import pull

TOKENS = 1024
CONTEXT = 512
BLOCKS, WIDTH, INNER = 2, 64, 96
HEADS, KEY_HEADS = 4, 2
SPREAD = 0.15


def write_tiny_model(
    path: Path, seed: int = 1, spread: float = SPREAD, architecture: str = "llama", pre: str | None = None
) -> Path:
    """Write a model with normally distributed weights; `spread` is their standard deviation.

    `pre` is the name of another pre-tokenizer than that of the embedded model.
    """
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(BLOCKS)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10_000.0)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(TOKENS)
    add_tokenizer(writer, pre)
    random = np.random.default_rng(seed)
    for name, shape in shapes():
        mean = 1.0 if "norm" in name else 0.0
        writer.add_tensor(f"{name}.weight", random.normal(mean, spread, shape).astype(np.float32))
        if architecture == "qwen2" and name[-7:] in (".attn_q", ".attn_k", ".attn_v"):
            writer.add_tensor(f"{name}.bias", np.zeros(shape[0], np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def add_tokenizer(writer: gguf.GGUFWriter, pre: str | None) -> None:
    """Add the first tokens of the embedded model's tokenizer."""
    source = {name.removeprefix("tokenizer.ggml."): value for name, value in read_metadata(pull()).items()}
    tokens = source["tokens"][:TOKENS]
    known = set(tokens)
    writer.add_tokenizer_model(source["model"])
    writer.add_tokenizer_pre(pre or source["pre"])
    writer.add_token_list(tokens)
    writer.add_token_types(source["token_type"][:TOKENS])
    writer.add_token_merges([merge for merge in source["merges"] if merge.replace(" ", "") in known])
    writer.add_bos_token_id(source["bos_token_id"])
    writer.add_eos_token_id(source["eos_token_id"])
    writer.add_add_bos_token(source["add_bos_token"])
    writer.add_add_space_prefix(source["add_space_prefix"])


def shapes() -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the names and shapes of all weights."""
    keys = WIDTH // HEADS * KEY_HEADS
    yield "token_embd", (TOKENS, WIDTH)
    yield "output_norm", (WIDTH,)
    for block in range(BLOCKS):
        yield f"blk.{block}.attn_norm", (WIDTH,)
        yield f"blk.{block}.attn_q", (WIDTH, WIDTH)
        yield f"blk.{block}.attn_k", (keys, WIDTH)
        yield f"blk.{block}.attn_v", (keys, WIDTH)
        yield f"blk.{block}.attn_output", (WIDTH, WIDTH)
        yield f"blk.{block}.ffn_norm", (WIDTH,)
        yield f"blk.{block}.ffn_gate", (INNER, WIDTH)
        yield f"blk.{block}.ffn_up", (INNER, WIDTH)
        yield f"blk.{block}.ffn_down", (WIDTH, INNER)
