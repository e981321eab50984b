"""GGUF models in this process, by llama.cpp: the model kinds `embedded` and `gguf`."""

import threading
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from fewparse.errors import CorruptModel, ModelError, ModelUnavailable, UsageError
from fewparse.files import user_path
from fewparse.lm import weights
from fewparse.lm.adapter import Adapter
from fewparse.lm.evaluator import Logits, Span, TokenIds
from fewparse.lm.gguf import MAGIC, file_sha256
from fewparse.lm.llama import Llama
from fewparse.lm.load import EMBEDDED, ModelSettings, model_kind
from fewparse.lm.local import MAX_CONTEXT, LocalModel, usable_cores
from fewparse.lm.prefix_cache import PrefixCache
from fewparse.lm.usage import Usage
from fewparse.vocabulary import Vocabulary

MAX_SEQUENCES = 256
MAX_PATH_TOKENS = 4096


@model_kind(adapters=True)
def open_embedded(_: str, settings: ModelSettings) -> "EmbeddedModel":
    """Open the default model, downloading it on first use."""
    path = weights.pull(progress=settings.progress)
    return EmbeddedModel(path, name=f"{EMBEDDED}:{weights.SMOLLM2.name}")


@model_kind(argument="PATH", adapters=True)
def open_gguf(path: str, _: ModelSettings) -> "EmbeddedModel":
    """Open a GGUF file."""
    if not path:
        raise UsageError("gguf: needs a path", "For example --model gguf:/models/some-model.gguf")
    return EmbeddedModel(user_path(path))


class AdapterEvaluator:
    """Evaluates with one adapter, or with none, on a cache that all adapters of a model share."""

    def __init__(self, cache: PrefixCache, adapter: int | None) -> None:
        self.context_length = cache.context_length
        self._cache = cache
        self._adapter = adapter

    def next_logits(self, prompt: TokenIds, paths: Sequence[TokenIds], usage: Usage) -> list[Logits]:
        """Return the logits after prompt + path for each path."""
        self._cache.use_adapter(self._adapter)
        return self._cache.next_logits(prompt, paths, usage)

    def logits_along(
        self, prompt: TokenIds, spans: Sequence[Span], usage: Usage
    ) -> Iterator[tuple[Span, list[Logits]]]:
        """Yield each distinct span with the logits before each of its following tokens."""
        self._cache.use_adapter(self._adapter)
        yield from self._cache.logits_along(prompt, spans, usage)


class EmbeddedModel(LocalModel):
    """A GGUF model with one KV cache for all queries."""

    def __init__(self, path: Path, name: str | None = None, threads: int | None = None) -> None:
        check_gguf(path)
        self.path = path
        self._llama = Llama(path, MAX_CONTEXT, MAX_PATH_TOKENS, MAX_SEQUENCES, threads or usable_cores())
        self._cache = PrefixCache(self._llama)
        self._adapters: dict[str, int] = {}
        self._adapters_lock = threading.Lock()
        super().__init__(
            name or f"gguf:{path}", read_vocabulary(self._llama), self._llama, AdapterEvaluator(self._cache, None)
        )

    @cached_property
    def sha256(self) -> str:
        """The hash of the model file."""
        return file_sha256(self.path)

    def with_adapter(self, adapter: Adapter) -> LocalModel:
        """Return the model with an adapter applied; weights, memory, cache and lock are shared.

        Raises `ModelError` if the adapter was tuned for other weights, `CorruptModel` if it does not fit.
        """
        provenance = adapter.provenance
        if provenance is not None and provenance.base_sha256 != self.sha256:
            raise ModelError(
                f"the adapter {adapter.path} was tuned for {provenance.base}, and {self.name} has other weights",
                "Use the model it was tuned for, tune another adapter, or use none: --adapter none",
            )
        with self._adapters_lock:
            if adapter.sha256 not in self._adapters:
                self._adapters[adapter.sha256] = self._llama.load_adapter(adapter.path)
        evaluator = AdapterEvaluator(self._cache, self._adapters[adapter.sha256])
        name = f"{self.name} + {adapter.path.name}"
        return LocalModel(name, self.vocabulary, self._llama, evaluator, self._lock)

    def close(self) -> None:
        """Free the native memory."""
        self._llama.close()


def read_vocabulary(llama: Llama) -> Vocabulary:
    """Return the bytes of every token; empty for control tokens."""
    ids = range(llama.n_vocab)
    return Vocabulary(
        [b"" if llama.is_control(i) else llama.piece(i) for i in ids], [i for i in ids if llama.is_end(i)]
    )


def check_gguf(file: Path) -> None:
    """Raise `CorruptModel` if a file does not start as a GGUF file, before the native library reads it."""
    try:
        with file.open("rb") as opened:
            magic = opened.read(len(MAGIC))
    except OSError as error:
        raise ModelUnavailable(f"the model file {file} cannot be read: {error.strerror}") from None
    if magic != MAGIC:
        raise CorruptModel(f"{file} is not a GGUF file", "For the bundled model: fewparse models pull --force")
