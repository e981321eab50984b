"""The Hugging Face route: any causal language model that transformers can load, on the CPU or a GPU."""

import warnings
from typing import TYPE_CHECKING

import numpy as np

from fewparse.errors import ModelError, ModelUnavailable
from fewparse.lm.local import LocalModel
from fewparse.lm.paths import Path
from fewparse.lm.token_tree import TokenTree
from fewparse.lm.usage import Usage
from fewparse.lm.whole_sequences import WholeSequences

if TYPE_CHECKING:
    from fewparse.lm.hf_backend import Checkpoint

STEM: Path = (5, 6, 7, 8)
FORKS: tuple[Path, ...] = ((9, 11, 12), (10, 11, 12))
"""A small tree whose paths end in the same tokens: what differs behind them, they must have seen."""

NOISE, HALF_PRECISION_NOISE = 1e-3, 0.1
"""What two ways to the same logits may differ by, as a part of how much logits vary."""


class TransformersModel(LocalModel):
    """A model of a folder, a GGUF file or the hub, with one KV cache that every question shares."""

    def __init__(self, source: str, name: str | None = None) -> None:
        try:
            from fewparse.lm.hf_backend import Checkpoint
        except ImportError as error:
            raise ModelUnavailable(
                f"hf: models need torch and transformers ({error})", "pip install 'fewparse[transformers]'"
            ) from None
        self.checkpoint = Checkpoint(source)
        name = name or f"hf:{source}"
        tokenizer = self.checkpoint.tokenizer
        if takes_trees(self.checkpoint):
            super().__init__(name, tokenizer.vocabulary, tokenizer, TokenTree(self.checkpoint))
            return
        super().__init__(name, tokenizer.vocabulary, tokenizer, WholeSequences(self.checkpoint))
        warnings.warn(
            f"{name} cannot share its cache between hypotheses (a sliding window or a recurrent state): every "
            "sequence is evaluated whole, which is right but slow.",
            stacklevel=2,
        )

    def close(self) -> None:
        """Give back the memory."""
        self.checkpoint.close()


def takes_trees(checkpoint: "Checkpoint") -> bool:
    """Whether a tree of tokens gets the same logits as its paths one by one; tried, as nothing declares it."""
    try:
        if not checkpoint.sees_everything:
            return False
        together = TokenTree(checkpoint).after(STEM, FORKS, Usage())
    except (AttributeError, IndexError, KeyError, ModelError, TypeError, ValueError):
        return False
    finally:
        checkpoint.crop(0)
    alone = WholeSequences(checkpoint).after(STEM, FORKS, Usage())
    noise = NOISE if checkpoint.precise else HALF_PRECISION_NOISE
    return all(
        float(np.abs(one - other).max()) <= noise * float(other.std())
        for one, other in zip(together, alone, strict=True)
    )
