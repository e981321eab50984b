"""The C interface of llama.cpp, by ctypes on the shared object in xllamacpp: structs, functions, and loading it.

The Python interface of xllamacpp cannot fork a cached prompt, so the C interface is used directly. Its structs are
declared here for one version of the header. That version is pinned, and the defaults returned by the library are
checked when it is loaded, so that a mismatch raises an error instead of corrupting memory.
"""

import ctypes
import importlib.metadata
import importlib.util
from collections import deque
from ctypes import POINTER, c_bool, c_char_p, c_float, c_int8, c_int32, c_size_t, c_uint32, c_void_p
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from fewparse.errors import RuntimeMismatch

RUNTIME = "xllamacpp"
VERSION = "2026.10.11549"


class ModelParams(ctypes.Structure):
    """`struct llama_model_params`."""

    _fields_: ClassVar = [
        ("devices", c_void_p),
        ("tensor_buft_overrides", c_void_p),
        ("n_gpu_layers", c_int32),
        ("split_mode", c_int32),
        ("load_mode", c_int32),
        ("lazy_mode", c_int32),
        ("main_gpu", c_int32),
        ("tensor_split", c_void_p),
        ("progress_callback", c_void_p),
        ("progress_callback_user_data", c_void_p),
        ("kv_overrides", c_void_p),
        ("vocab_only", c_bool),
        ("check_tensors", c_bool),
        ("use_extra_bufts", c_bool),
        ("no_host", c_bool),
        ("no_alloc", c_bool),
        ("load_mtp", c_bool),
    ]


class ContextParams(ctypes.Structure):
    """`struct llama_context_params`."""

    _fields_: ClassVar = [
        ("n_ctx", c_uint32),
        ("n_batch", c_uint32),
        ("n_ubatch", c_uint32),
        ("n_seq_max", c_uint32),
        ("n_rs_seq", c_uint32),
        ("n_outputs_max", c_uint32),
        ("n_outputs_max_per_seq", c_uint32),
        ("n_threads", c_int32),
        ("n_threads_batch", c_int32),
        ("ctx_type", c_int32),
        ("rope_scaling_type", c_int32),
        ("pooling_type", c_int32),
        ("attention_type", c_int32),
        ("flash_attn_type", c_int32),
        ("rope_freq_base", c_float),
        ("rope_freq_scale", c_float),
        ("yarn_ext_factor", c_float),
        ("yarn_attn_factor", c_float),
        ("yarn_beta_fast", c_float),
        ("yarn_beta_slow", c_float),
        ("yarn_orig_ctx", c_uint32),
        ("defrag_thold", c_float),
        ("cb_eval", c_void_p),
        ("cb_eval_user_data", c_void_p),
        ("type_k", c_int32),
        ("type_v", c_int32),
        ("moe_cache_size", c_size_t),
        ("abort_callback", c_void_p),
        ("abort_callback_data", c_void_p),
        ("embeddings", c_bool),
        ("offload_kqv", c_bool),
        ("no_perf", c_bool),
        ("op_offload", c_bool),
        ("swa_full", c_bool),
        ("kv_unified", c_bool),
        ("samplers", c_void_p),
        ("n_samplers", c_size_t),
        ("ctx_other", c_void_p),
    ]


class Batch(ctypes.Structure):
    """`struct llama_batch`."""

    _fields_: ClassVar = [
        ("n_tokens", c_int32),
        ("token", POINTER(c_int32)),
        ("embd", POINTER(c_float)),
        ("pos", POINTER(c_int32)),
        ("n_seq_id", POINTER(c_int32)),
        ("seq_id", POINTER(POINTER(c_int32))),
        ("logits", POINTER(c_int8)),
    ]


SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "llama_backend_init": (None, []),
    "llama_log_set": (None, [c_void_p, c_void_p]),
    "llama_model_default_params": (ModelParams, []),
    "llama_context_default_params": (ContextParams, []),
    "llama_model_load_from_file": (c_void_p, [c_char_p, ModelParams]),
    "llama_model_free": (None, [c_void_p]),
    "llama_init_from_model": (c_void_p, [c_void_p, ContextParams]),
    "llama_free": (None, [c_void_p]),
    "llama_model_n_ctx_train": (c_int32, [c_void_p]),
    "llama_model_get_vocab": (c_void_p, [c_void_p]),
    "llama_get_memory": (c_void_p, [c_void_p]),
    "llama_memory_clear": (None, [c_void_p, c_bool]),
    "llama_memory_seq_rm": (c_bool, [c_void_p, c_int32, c_int32, c_int32]),
    "llama_memory_seq_cp": (None, [c_void_p, c_int32, c_int32, c_int32, c_int32]),
    "llama_decode": (c_int32, [c_void_p, Batch]),
    "llama_get_logits_ith": (POINTER(c_float), [c_void_p, c_int32]),
    "llama_vocab_n_tokens": (c_int32, [c_void_p]),
    "llama_vocab_is_eog": (c_bool, [c_void_p, c_int32]),
    "llama_vocab_is_control": (c_bool, [c_void_p, c_int32]),
    "llama_vocab_bos": (c_int32, [c_void_p]),
    "llama_tokenize": (c_int32, [c_void_p, c_char_p, c_int32, POINTER(c_int32), c_int32, c_bool, c_bool]),
    "llama_token_to_piece": (c_int32, [c_void_p, c_int32, c_char_p, c_int32, c_int32, c_bool]),
    "llama_adapter_lora_init": (c_void_p, [c_void_p, c_char_p]),
    "llama_set_adapters_lora": (c_int32, [c_void_p, POINTER(c_void_p), c_size_t, POINTER(c_float)]),
}

LogCallback = ctypes.CFUNCTYPE(None, c_int32, c_char_p, c_void_p)
ERROR_LEVEL = 4
MAX_LOGGED = 100
_errors: deque[str] = deque(maxlen=MAX_LOGGED)


def log(level: int, text: bytes, _data: int) -> None:
    """Keep the errors that llama.cpp logs; without a callback, it logs to the terminal."""
    if level == ERROR_LEVEL:
        _errors.append(text.decode(errors="replace").strip())


_log = LogCallback(log)


def logged_error() -> str:
    """Return the first error that llama.cpp logged since the last call, or an empty string."""
    first = next(iter(_errors), "")
    _errors.clear()
    return first.partition(": ")[2]  # without the name of the function


@cache
def library() -> ctypes.CDLL:
    """Load the shared object, declare its functions and check its interface, once per process."""
    spec = importlib.util.find_spec(RUNTIME)
    if spec is None or spec.origin is None:
        raise RuntimeMismatch(f"{RUNTIME} is not installed", f"pip install {RUNTIME}=={VERSION}")
    if (found := importlib.metadata.version(RUNTIME)) != VERSION:
        raise RuntimeMismatch(
            f"{RUNTIME} {found} is installed, but this version of fewparse needs {VERSION}",
            f"pip install {RUNTIME}=={VERSION}",
        )
    candidates = sorted(Path(spec.origin).parent.glob("xllamacpp*.so")) + sorted(
        Path(spec.origin).parent.glob("xllamacpp*.pyd")
    )
    if not candidates:
        raise RuntimeMismatch(f"{RUNTIME} {VERSION} contains no shared object", "Reinstall it.")
    lib = ctypes.CDLL(str(candidates[0]))
    for name, (result, arguments) in SIGNATURES.items():
        try:
            function = getattr(lib, name)
        except AttributeError:
            raise RuntimeMismatch(f"{RUNTIME} {VERSION} does not export {name}", "Reinstall it.") from None
        function.restype, function.argtypes = result, arguments
    lib.llama_log_set(ctypes.cast(_log, c_void_p), None)
    check_defaults(lib.llama_model_default_params(), lib.llama_context_default_params())
    lib.llama_backend_init()
    return lib


def check_defaults(model: ModelParams, context: ContextParams) -> None:
    """Compare the defaults of the library with those of the header, which reveals a shifted field."""
    sizes = (context.n_ctx, context.n_batch, context.n_ubatch, context.n_seq_max)
    types = (context.flash_attn_type, context.type_k, context.type_v, context.kv_unified, context.n_samplers)
    of_model = (model.split_mode, model.main_gpu, model.vocab_only, model.check_tensors, model.no_alloc)
    expected = ((512, 2048, 512, 1), (-1, 1, 1, False, 0), (1, 0, False, False, False))
    if (sizes, types, of_model) != expected:
        raise RuntimeMismatch(
            f"the defaults of {RUNTIME} {VERSION} are not those of its header: {(sizes, types, of_model)}",
            f"Reinstall it: pip install --force-reinstall {RUNTIME}=={VERSION}",
        )
