"""A causal language model of transformers with one KV cache: tokens in, logits out.

This is the only module that knows torch and transformers; it can be imported only where they are installed.
"""

import inspect
import io
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers.pre_tokenizers import ByteLevel, Digits
from tokenizers.pre_tokenizers import Sequence as Splitters
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, DynamicCache
from transformers.cache_utils import DynamicLayer

from fewparse.errors import CorruptModel, FewparseError, ModelError, ModelUnavailable
from fewparse.lm.byte_tokenizer import ByteTokenizer
from fewparse.lm.embedded import check_gguf
from fewparse.lm.gguf import read_metadata
from fewparse.lm.local import LONGEST_CONTEXT, usable_cores
from fewparse.lm.paths import Logits

SUFFIX = ".gguf"
SPLITTER = "tokenizer.ggml.pre"
DIGIT_SPLITTERS = {"codeshell", "command-r", "exaone", "minerva-7b", "refact", "smollm", "starcoder"}
"""What GGUF files call the tokenizers that take digits one by one, which transformers does not know."""


class Checkpoint:
    """One loaded model with its tokenizer: a folder, a GGUF file, or a name on the hub."""

    def __init__(self, source: str) -> None:
        torch.set_num_threads(usable_cores())
        with quiet(), refusals(source):
            self.network, tokenizer = load(source)
            self._picks_rows = "logits_to_keep" in inspect.signature(self.network.forward).parameters
            size = self.evaluate_whole([(0,)], [0]).shape[-1]
        self._cache = DynamicCache()
        most = getattr(self.network.config.get_text_config(), "max_position_embeddings", None)
        self.context_length: int = min(LONGEST_CONTEXT, most or LONGEST_CONTEXT)
        self.tokenizer = ByteTokenizer(
            tokenizer.backend_tokenizer, size, tokenizer.bos_token_id, end_tokens(self.network, tokenizer)
        )

    @property
    def sees_everything(self) -> bool:
        """Whether every layer attends to all tokens before: no sliding window, no recurrent state."""
        return all(type(layer) is DynamicLayer for layer in DynamicCache(config=self.network.config).layers)

    @property
    def precise(self) -> bool:
        """Whether it computes in single precision."""
        return bool(self.network.dtype == torch.float32)

    def close(self) -> None:
        """Give back the memory."""
        self.network = self._cache = None

    def evaluate(
        self,
        tokens: Sequence[int],
        positions: Sequence[int],
        seen: NDArray[np.bool_] | None,
        wanted: Sequence[int],
    ) -> list[Logits]:
        """Append tokens, each seeing these cells (None: all before it); the logits after those wanted."""
        mask = None
        if seen is not None:
            closed = torch.from_numpy(~seen).to(self.network.device)
            mask = torch.zeros(closed.shape, dtype=self.network.dtype, device=self.network.device)
            mask = mask.masked_fill(closed, torch.finfo(self.network.dtype).min)[None, None]
        logits = self._forward(
            wanted,
            input_ids=self._tensor([tokens]),
            position_ids=self._tensor([positions]),
            attention_mask=mask,
            past_key_values=self._cache,
            use_cache=True,
        )
        return list(logits[0])

    def evaluate_whole(self, sequences: Sequence[tuple[int, ...]], wanted: Sequence[int]) -> NDArray[np.float32]:
        """The logits after the wanted positions of each sequence, without the cache."""
        longest = max(map(len, sequences))
        padded = [[*sequence, *[0] * (longest - len(sequence))] for sequence in sequences]
        real = [[1] * len(sequence) + [0] * (longest - len(sequence)) for sequence in sequences]
        return self._forward(
            wanted, input_ids=self._tensor(padded), attention_mask=self._tensor(real), use_cache=False
        )

    def crop(self, length: int) -> None:
        """Forget all cells but the first."""
        if length == 0:
            self._cache = DynamicCache()
        elif (surplus := self._cache.get_seq_length() - length) > 0:
            self._cache.crop(-surplus)

    def _forward(self, wanted: Sequence[int], **inputs: Any) -> NDArray[np.float32]:
        rows = self._tensor(wanted)
        try:
            with torch.inference_mode():
                if self._picks_rows:
                    logits = self.network(**inputs, logits_to_keep=rows).logits
                else:
                    logits = self.network(**inputs).logits[:, rows]
                found: NDArray[np.float32] = logits.float().cpu().numpy()
        except RuntimeError as error:
            tokens = inputs["input_ids"].numel()
            raise ModelError(
                f"torch could not evaluate {tokens} tokens: {first_line(error)}", "Is there enough memory?"
            ) from None
        return found

    def _tensor(self, values: Any) -> Any:
        return torch.tensor(values, dtype=torch.long, device=self.network.device)


def load(source: str, single_precision: bool = False) -> tuple[Any, Any]:
    """The model, in single precision where that is asked for or there is no GPU, and its tokenizer."""
    where: dict[str, Any] = {"pretrained_model_name_or_path": source, "trust_remote_code": False}
    path = Path(source).expanduser()
    if source.endswith(SUFFIX):
        check_gguf(path)
        where |= {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    elif path.is_dir():
        where |= {"pretrained_model_name_or_path": str(path)}
    elif path.exists() or path.is_absolute() or source.startswith("."):
        raise ModelUnavailable(f"{path} is no folder", "A model is a folder with a config.json, or a GGUF file.")
    config = AutoConfig.from_pretrained(**where)
    gpu = torch.cuda.is_available()
    model, report = AutoModelForCausalLM.from_pretrained(
        **where,
        config=config,
        dtype="auto" if gpu and not single_precision else torch.float32,
        output_loading_info=True,
    )
    if missing := sorted(report["missing_keys"]):
        raise CorruptModel(
            f"{source} lacks {len(missing)} of the weights of a causal language model, such as {missing[0]}",
            "Is it another kind of model, or not whole?",
        )
    tokenizer = AutoTokenizer.from_pretrained(**where, config=config)
    if not tokenizer.is_fast:
        raise ModelError(
            f"the tokenizer of {source} is not one of the tokenizers library",
            "A folder with a tokenizer.json has one.",
        )
    if source.endswith(SUFFIX) and read_metadata(path).get(SPLITTER) in DIGIT_SPLITTERS:
        splitters = [Digits(individual_digits=True), ByteLevel(add_prefix_space=False)]
        tokenizer.backend_tokenizer.pre_tokenizer = Splitters(splitters)
    return (model.to("cuda") if gpu else model).eval(), tokenizer


def end_tokens(model: Any, tokenizer: Any) -> set[int]:
    """The tokens that the checkpoint itself names as ends."""
    told: Any = model.generation_config.eos_token_id
    named = told if isinstance(told, list) else [told]
    return {i for i in (*named, tokenizer.eos_token_id) if i is not None}


def first_line(error: Exception) -> str:
    """What an error says, as far as a user wants to read it."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


@contextmanager
def quiet() -> Iterator[None]:
    """Keep progress bars, log lines and warnings about the library's own affairs from the user."""
    level = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


@contextmanager
def refusals(source: str) -> Iterator[None]:
    """Say in one line why a model cannot be loaded, whatever it is that goes wrong in there."""
    try:
        yield
    except FewparseError:
        raise
    except Exception as error:
        reason = first_line(error)
        if isinstance(error, ImportError):
            raise ModelUnavailable(
                f"{source} needs more: {reason}", "pip install 'fewparse[transformers]'"
            ) from None
        if isinstance(error, OSError):
            raise ModelUnavailable(
                f"the model {source} cannot be had: {reason}",
                "Name a folder, a GGUF file or a model on the Hugging Face hub. Without a network, only what was "
                "fetched before can be used: HF_HUB_OFFLINE=1 then saves the waiting.",
            ) from None
        if isinstance(error, ValueError) and "for this kind of AutoModel" in reason:
            raise ModelError(
                f"{source} is no causal language model",
                "One that continues text is needed, such as SmolLM2 or Llama.",
            ) from None
        if "custom code" in reason:
            raise ModelError(
                f"{source} brings its own code, which is not run", "Use a model that transformers itself knows."
            ) from None
        raise CorruptModel(
            f"{source} cannot be loaded: {reason}",
            "The files may be damaged or of a kind that transformers does not know.",
        ) from None
