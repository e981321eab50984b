"""Cosine similarity of sentence embeddings."""

import importlib.metadata
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fewparse.errors import ModelUnavailable
from fewparse.lm.usage import Usage
from fewparse.retrieve.index_cache import Arrays, stored_arrays
from fewparse.retrieve.retriever import Pool, Scores, by_score

Vectors = NDArray[np.float32]


class Encoder(Protocol):
    """A sentence encoder."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text."""


class WordVectors:
    """Static word vectors from the `wordllama` wheel: small, fast, no torch, no download.

    Only its two data files are read: importing the package takes longer than a parse, and its own loader looks
    for the tokenizer in the wrong folder and then accesses the network.
    """

    def __init__(self) -> None:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        folder = package_folder("wordllama")
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
        self._tokenizer.no_padding()
        self._table: Vectors = load_file(folder / "weights" / "l2_supercat_256.safetensors")["embedding.weight"]

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return the mean of the token vectors of each text."""
        rows = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)]
        nothing = np.zeros(self._table.shape[1], np.float32)
        return np.stack([self._table[ids].astype(np.float32).mean(axis=0) if ids else nothing for ids in rows])


def package_folder(name: str) -> Path:
    """Return the folder of an installed package without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ModelUnavailable(f"the package {name} is not installed", f"pip install {name}")
    return Path(spec.origin).parent


class EmbeddingRetriever:
    """Ranks by the cosine between the embeddings of utterances."""

    compares_words = True

    def __init__(self, pool: Pool, encoder: Encoder | None = None) -> None:
        self._encoder = encoder or WordVectors()
        texts = pool.utterances
        self._vectors = self._encoded(texts) if texts else np.zeros((0, 1), np.float32)

    def _encoded(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of the pool, of length one; those of `WordVectors` are stored if there are many."""

        def compute() -> Arrays:
            return {"vectors": unit(self._encoder.encode(texts))}

        if not isinstance(self._encoder, WordVectors):
            return compute()["vectors"]
        kind = f"embedding wordllama {importlib.metadata.version('wordllama')}"
        return stored_arrays(kind, texts, ["vectors"], compute)["vectors"]

    def rank(self, utterance: str, usage: Usage) -> list[int]:
        """Rank by cosine similarity."""
        return by_score(self.scores(utterance, usage))

    def scores(self, utterance: str, usage: Usage) -> Scores:
        """Return the cosine similarities."""
        if not len(self._vectors):
            return np.zeros(0, np.float32)
        similarity: Vectors = self._vectors @ unit(self._encoder.encode([utterance]))[0]
        return similarity


def unit(vectors: Vectors) -> Vectors:
    """Return the rows normalised to length one; a row of zeros is unchanged."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, np.where(norms > 0, norms, 1), dtype=np.float32)
