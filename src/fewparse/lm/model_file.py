"""Decide whether a GGUF file may be loaded into this process; unknown files are checked once.

The models of the catalogue are known by their hashes. Any other model is checked in Python and then tried in a
process of its own; that it passed is recorded with its hash, so that the next start costs nothing.
"""

import math
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fewparse.errors import CorruptModel, ModelUnavailable
from fewparse.files import os_reason
from fewparse.lm import weights
from fewparse.lm.adapter import Adapter
from fewparse.lm.catalogue import MODELS
from fewparse.lm.checked_files import checked_sha256, file_identity, has_passed, record_passed
from fewparse.lm.gguf import MAGIC, GGUFFile, open_regular, read_gguf
from fewparse.lm.gguf_check import ADAPTER_ALPHA, adapter_problems, fit_problems, is_split, model_problems
from fewparse.lm.llama import VERSION
from fewparse.lm.trial import try_model

MAX_LISTED = 3
SHOWN = (
    "block_count",
    "context_length",
    "embedding_length",
    "feed_forward_length",
    "attention.head_count",
    "attention.head_count_kv",
)
"""What `describe` shows of the keys of an architecture."""


@dataclass(frozen=True)
class Report:
    """What a check found: the hash, the file if its header could be read, and what is wrong."""

    sha256: str
    file: GGUFFile | None
    problems: tuple[str, ...]


def check_magic(path: Path) -> None:
    """Raise `CorruptModel` if a file does not start as a GGUF file, `ModelUnavailable` if it cannot be read."""
    try:
        with open_regular(path) as opened:
            magic = opened.read(len(MAGIC))
    except (OSError, ValueError) as error:
        raise ModelUnavailable(f"the model file {path} cannot be read: {os_reason(error)}") from None
    if magic != MAGIC:
        raise CorruptModel(f"{path} is not a GGUF file", "For the bundled model: fewparse models pull --force")


def check_model(path: Path, native: bool = True) -> str:
    """Return the hash of a model that may be loaded; raise `CorruptModel` with the reason if it may not.

    Without `native`, the file is not meant for llama.cpp, and not tried with it.
    """
    check_magic(path)
    sha256 = checked_sha256(path)
    if any(sha256 == known.sha256 for known in MODELS):
        return sha256
    if (stored := weights.find_stored(path)) is not None:
        raise weights.damaged(stored, sha256)
    size = path.stat().st_size
    if any(size == known.size for known in MODELS):
        warnings.warn(
            f"{path} has the size of an embedded model and another content: a copy of it would be damaged",
            stacklevel=2,
        )
    check = ("model", sha256, VERSION if native else "python")
    if has_passed(check):
        return sha256
    before = file_identity(path)
    split = False
    try:
        file = read_gguf(path)
        split = is_split(file)
        problems = model_problems(file)
    except CorruptModel as error:
        problems = [error.message.removeprefix(f"{path} is not a GGUF file: ")]
    if problems:
        raise CorruptModel(
            f"{path} cannot be loaded as a GGUF model: {summary(problems)}",
            "The file may be damaged: download or convert it again. For details: fewparse models check PATH",
        )
    if native:
        try_model(path)
    if file_identity(path) == before and not split:  # the hash is that of the first file only
        record_passed(check)
    return sha256


def check_fit(adapter: Adapter, base: Path, base_sha256: str) -> None:
    """Raise `CorruptModel` if an adapter does not fit a model; that it fits is recorded with both hashes."""
    if checked_sha256(adapter.path) != adapter.sha256:
        raise CorruptModel(f"the adapter {adapter.path} has changed since it was read", "Read it again.")
    check = ("adapter", adapter.sha256, base_sha256)
    if has_passed(check):
        return
    file = read_gguf(adapter.path)
    problems = adapter_problems(file) or fit_problems(file, read_gguf(base))
    if problems:
        raise CorruptModel(
            f"{adapter.path} is not an adapter for this model, or damaged",
            f"The reason: {summary(problems)}. An adapter works only with the model it was trained for: "
            "tune another one for this model.",
        )
    record_passed(check)


def summary(problems: list[str]) -> str:
    """Join what is wrong for a message; of a longer list, only the first."""
    more = f" (and {len(problems) - MAX_LISTED} more)" if len(problems) > MAX_LISTED else ""
    return "; ".join(problems[:MAX_LISTED]) + more


def report(path: Path) -> Report:
    """Check a model or an adapter completely, whatever is recorded, and return what was found.

    Raises `ModelUnavailable` if it cannot be read, and `CorruptModel` if it is not a GGUF file.
    """
    check_magic(path)
    sha256 = checked_sha256(path)
    try:
        file = read_gguf(path)
    except CorruptModel as error:
        return Report(sha256, None, (error.message.removeprefix(f"{path} is not a GGUF file: "),))
    if file.metadata.get("general.type") == "adapter":
        return Report(sha256, file, tuple(adapter_problems(file)))
    problems = list(model_problems(file))
    stored = weights.find_stored(path)
    if stored is not None and sha256 != stored.sha256:
        problems.append(weights.damaged(stored, sha256).message)
    if not problems:
        try:
            try_model(path)
        except CorruptModel as error:
            problems.append(error.message.removeprefix(f"{path} cannot be loaded as a GGUF model: "))
    return Report(sha256, file, tuple(problems))


def describe(file: GGUFFile | None) -> dict[str, Any]:
    """Return what a file says of itself, for a reader; nothing if its header could not be read."""
    if file is None:
        return {}
    metadata = file.metadata
    architecture = metadata.get("general.architecture")
    found: dict[str, Any] = {
        "kind": metadata.get("general.type", "model"),
        "name": metadata.get("general.name"),
        "architecture": architecture,
        "bytes": file.size,
        "tensors": len(file.tensors),
        "parameters": sum(math.prod(tensor.shape) for tensor in file.tensors.values()),
        "tensor_types": dict(Counter(tensor.type for tensor in file.tensors.values()).most_common()),
        "tokenizer": metadata.get("tokenizer.ggml.model"),
        "vocabulary": len(tokens) if isinstance(tokens := metadata.get("tokenizer.ggml.tokens"), list) else None,
        "alpha": metadata.get(ADAPTER_ALPHA),
    }
    for name in SHOWN:
        found[name.rpartition(".")[2]] = metadata.get(f"{architecture}.{name}")
    return {name: printable_value(value) for name, value in found.items() if value is not None}


def printable_value(value: Any) -> Any:
    """Return a value of the metadata as JSON can express it: a number that is not finite becomes a string."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
