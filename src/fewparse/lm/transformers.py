"""Hugging Face models in this process, by transformers and torch, on CPU or GPU: the model kind `hf`."""

import warnings
from typing import TYPE_CHECKING

import numpy as np

from fewparse.errors import ModelError, ModelUnavailable, UsageError
from fewparse.lm import weights
from fewparse.lm.evaluator import TokenIds, WholeSequences
from fewparse.lm.lifetime import Lifetime
from fewparse.lm.load import EMBEDDED, ModelSettings, model_kind
from fewparse.lm.local import LocalModel
from fewparse.lm.token_tree import TokenTree
from fewparse.lm.usage import Usage

if TYPE_CHECKING:
    from fewparse.lm.hf_backend import HFBackend

TEST_PROMPT: TokenIds = (5, 6, 7, 8)
TEST_PATHS: tuple[TokenIds, ...] = ((9, 11, 12), (10, 11, 12))
"""Two paths that differ in their first token only: their logits differ only by attention to it."""

TOLERANCE, HALF_PRECISION_TOLERANCE = 1e-3, 0.1
"""The maximum difference between equal logits computed in two ways, in standard deviations of the logits."""


@model_kind(argument="PATH_OR_NAME")
def open_transformers(source: str, settings: ModelSettings) -> "TransformersModel":
    """Open a model folder, a GGUF file or a model of the Hugging Face hub."""
    if not source:
        raise UsageError("hf: needs a folder, a GGUF file or a name", "For example --model hf:/models/some-model")
    path = str(weights.pull(progress=settings.progress)) if source == EMBEDDED else source
    return TransformersModel(path, name=f"hf:{source}", threads=settings.threads)


class TransformersModel(LocalModel):
    """A causal language model of a folder, a GGUF file or the hub, with one KV cache for all queries."""

    def __init__(self, source: str, name: str | None = None, threads: int | None = None) -> None:
        try:
            from fewparse.lm.hf_backend import HFBackend
        except ImportError as error:
            raise ModelUnavailable(
                f"hf: models need torch and transformers ({error})", "pip install 'fewparse[transformers]'"
            ) from None
        name = name or f"hf:{source}"
        lifetime = Lifetime(name)
        self.backend = HFBackend(source, lifetime, threads)
        tokenizer = self.backend.tokenizer
        if supports_tree_attention(self.backend):
            super().__init__(name, tokenizer.vocabulary, tokenizer, TokenTree(self.backend), lifetime)
            return
        super().__init__(name, tokenizer.vocabulary, tokenizer, WholeSequences(self.backend), lifetime)
        warnings.warn(
            f"{name} cannot share its cache between hypotheses (a sliding window or a recurrent state): every "
            "sequence is evaluated whole, with the same results but slowly.",
            stacklevel=2,
        )

    def close(self) -> None:
        """Release the memory after the query under way; later queries raise `ModelError`."""
        self.backend.close()


def supports_tree_attention(backend: "HFBackend") -> bool:
    """Test whether paths evaluated as a tree get the same logits as alone, as models do not declare it."""
    try:
        if not backend.full_attention:
            return False
        together = TokenTree(backend).next_logits(TEST_PROMPT, TEST_PATHS, Usage())
    except (AttributeError, IndexError, KeyError, ModelError, TypeError, ValueError):
        return False
    finally:
        backend.crop(0)
    alone = WholeSequences(backend).next_logits(TEST_PROMPT, TEST_PATHS, Usage())
    tolerance = TOLERANCE if backend.single_precision else HALF_PRECISION_TOLERANCE
    return all(
        float(np.abs(one - other).max()) <= tolerance * float(other.std())
        for one, other in zip(together, alone, strict=True)
    )
