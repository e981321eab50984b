"""Load a Hugging Face model and evaluate tokens with it, on one KV cache.

The only module of `fewparse.lm` that imports torch and transformers, which are optional dependencies.
"""

import inspect
import io
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers.pre_tokenizers import ByteLevel, Digits
from tokenizers.pre_tokenizers import Sequence as PreTokenizers
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, DynamicCache
from transformers.cache_utils import DynamicLayer

from fewparse.errors import CorruptModel, FewparseError, ModelError, ModelUnavailable
from fewparse.files import user_path
from fewparse.lm.byte_tokenizer import ByteTokenizer
from fewparse.lm.evaluator import Logits, TokenIds, log_softmax
from fewparse.lm.gguf import read_metadata
from fewparse.lm.lifetime import Lifetime, claim_library
from fewparse.lm.local import MAX_CONTEXT, usable_cores
from fewparse.lm.model_file import check_model

SUFFIX = ".gguf"
PRE_TOKENIZER = "tokenizer.ggml.pre"
DIGIT_PRE_TOKENIZERS = {"codeshell", "command-r", "exaone", "minerva-7b", "refact", "smollm", "starcoder"}
"""The pre-tokenizers of GGUF files that split numbers into digits, which transformers does not support."""


class HFBackend:
    """A causal language model with its tokenizer, loaded from a folder, a GGUF file or the hub."""

    def __init__(self, source: str, lifetime: Lifetime | None = None, threads: int | None = None) -> None:
        claim_library("torch")
        self._lifetime = lifetime or Lifetime(f"hf:{source}")
        torch.set_num_threads(threads or usable_cores())
        with quiet(), loading_errors(source):
            self.network, tokenizer = load(source)
            self._selects_rows = "logits_to_keep" in inspect.signature(self.network.forward).parameters
            first = self.evaluate_whole([(0,)], [0])
            log_softmax(first[0, 0])
            size = first.shape[-1]
        self._cache = DynamicCache()
        limit = getattr(self.network.config.get_text_config(), "max_position_embeddings", None)
        self.context_length: int = min(MAX_CONTEXT, limit or MAX_CONTEXT)
        self.tokenizer = ByteTokenizer(
            tokenizer.backend_tokenizer, size, tokenizer.bos_token_id, end_tokens(self.network, tokenizer)
        )

    @property
    def full_attention(self) -> bool:
        """Whether every layer attends to all earlier tokens: no sliding window, no recurrent state."""
        return all(type(layer) is DynamicLayer for layer in DynamicCache(config=self.network.config).layers)

    @property
    def single_precision(self) -> bool:
        """Whether the weights are in single precision (float32)."""
        return bool(self.network.dtype == torch.float32)

    def close(self) -> None:
        """Release the memory when no query is under way."""
        self._lifetime.close(self._free)

    def _free(self) -> None:
        self.network = self._cache = None

    def evaluate(
        self,
        tokens: Sequence[int],
        positions: Sequence[int],
        attention: NDArray[np.bool_] | None,
        wanted: Sequence[int],
    ) -> list[Logits]:
        """Append tokens to the cache and return the logits after those whose indices are `wanted`.

        `attention` is the mask of the cells, including new ones, that each new token sees; None is causal.
        """
        with self._lifetime:
            mask = None
            if attention is not None:
                hidden = torch.from_numpy(~attention).to(self.network.device)
                mask = torch.zeros(hidden.shape, dtype=self.network.dtype, device=self.network.device)
                mask = mask.masked_fill(hidden, torch.finfo(self.network.dtype).min)[None, None]
            logits = self._forward(
                wanted,
                input_ids=self._tensor([tokens]),
                position_ids=self._tensor([positions]),
                attention_mask=mask,
                past_key_values=self._cache,
                use_cache=True,
            )
            return list(logits[0])

    def evaluate_whole(self, sequences: Sequence[TokenIds], positions: Sequence[int]) -> NDArray[np.float32]:
        """Return the logits after these positions of each sequence, without using the cache."""
        longest = max(map(len, sequences))
        padded = [[*sequence, *[0] * (longest - len(sequence))] for sequence in sequences]
        mask = [[1] * len(sequence) + [0] * (longest - len(sequence)) for sequence in sequences]
        with self._lifetime:
            return self._forward(
                positions, input_ids=self._tensor(padded), attention_mask=self._tensor(mask), use_cache=False
            )

    def crop(self, length: int) -> None:
        """Drop all cells of the cache but the first `length`."""
        with self._lifetime:
            if length == 0:
                self._cache = DynamicCache()
            elif (surplus := self._cache.get_seq_length() - length) > 0:
                self._cache.crop(-surplus)

    def _forward(self, wanted: Sequence[int], **inputs: Any) -> NDArray[np.float32]:
        rows = self._tensor(wanted)
        try:
            with torch.inference_mode():
                if self._selects_rows:
                    logits = self.network(**inputs, logits_to_keep=rows).logits
                else:
                    logits = self.network(**inputs).logits[:, rows]
                result: NDArray[np.float32] = logits.float().cpu().numpy()
        except (RuntimeError, IndexError) as error:
            tokens = inputs["input_ids"].numel()
            raise ModelError(
                f"torch could not evaluate {tokens} tokens: {first_line(error)}", "Is there enough memory?"
            ) from None
        return result

    def _tensor(self, values: Any) -> Any:
        return torch.tensor(values, dtype=torch.long, device=self.network.device)


def load(source: str, single_precision: bool = False) -> tuple[Any, Any]:
    """Return the model and its tokenizer; in single precision if requested or if there is no GPU."""
    location: dict[str, Any] = {"pretrained_model_name_or_path": source, "trust_remote_code": False}
    path = user_path(source)
    if source.endswith(SUFFIX):
        check_model(path, native=False)
        location |= {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    elif path.is_dir():
        location |= {"pretrained_model_name_or_path": str(path)}
    elif path.exists() or path.is_absolute() or source.startswith("."):
        raise ModelUnavailable(
            f"{path} is not a folder", "A model is a folder with a config.json, or a GGUF file."
        )
    config = AutoConfig.from_pretrained(**location)
    gpu = torch.cuda.is_available()
    model, report = AutoModelForCausalLM.from_pretrained(
        **location,
        config=config,
        dtype="auto" if gpu and not single_precision else torch.float32,
        output_loading_info=True,
    )
    if missing := sorted(report["missing_keys"]):
        raise CorruptModel(
            f"{source} lacks {len(missing)} of the weights of a causal language model, such as {missing[0]}",
            "Is it another kind of model, or incomplete?",
        )
    tokenizer = AutoTokenizer.from_pretrained(**location, config=config)
    if not tokenizer.is_fast:
        raise ModelError(
            f"the tokenizer of {source} is not supported: it is not of the tokenizers library",
            "Use a model with a tokenizer.json file.",
        )
    if source.endswith(SUFFIX) and read_metadata(path).get(PRE_TOKENIZER) in DIGIT_PRE_TOKENIZERS:
        steps = [Digits(individual_digits=True), ByteLevel(add_prefix_space=False)]
        tokenizer.backend_tokenizer.pre_tokenizer = PreTokenizers(steps)
    return (model.to("cuda") if gpu else model).eval(), tokenizer


def end_tokens(model: Any, tokenizer: Any) -> set[int]:
    """Return the end tokens that the model's configuration and its tokenizer declare."""
    declared: Any = model.generation_config.eos_token_id
    ids = declared if isinstance(declared, list) else [declared]
    return {i for i in (*ids, tokenizer.eos_token_id) if i is not None}


def first_line(error: Exception) -> str:
    """Return the first line of an error message."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress the progress bars, log lines and warnings of the libraries."""
    level = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


@contextmanager
def loading_errors(source: str) -> Iterator[None]:
    """Convert any error while loading a model to a `ModelError` with a one-line message."""
    try:
        yield
    except FewparseError:
        raise
    except Exception as error:
        reason = first_line(error)
        if isinstance(error, ImportError):
            raise ModelUnavailable(
                f"{source} needs another package: {reason}", "pip install 'fewparse[transformers]'"
            ) from None
        if isinstance(error, OSError):
            raise ModelUnavailable(
                f"the model {source} is not available: {reason}",
                "Give a folder, a GGUF file or the name of a model on the Hugging Face hub. Without a network, "
                "only models downloaded before can be used; HF_HUB_OFFLINE=1 then avoids waiting for time-outs.",
            ) from None
        if isinstance(error, ValueError) and "for this kind of AutoModel" in reason:
            raise ModelError(
                f"{source} is not a causal language model",
                "Use a model that continues text, such as SmolLM2 or Llama.",
            ) from None
        if "custom code" in reason:
            raise ModelError(
                f"{source} needs its own code, which is not run for safety",
                "Use a model that transformers supports without custom code.",
            ) from None
        raise CorruptModel(
            f"{source} cannot be loaded: {reason}",
            "The files may be damaged or of a kind that transformers does not support.",
        ) from None
