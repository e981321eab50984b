"""GGUF models in this process, by llama.cpp: the model kinds `embedded` and `gguf`."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from fewparse.errors import ModelError, UsageError
from fewparse.files import user_path
from fewparse.lm import weights
from fewparse.lm.adapter import Adapter
from fewparse.lm.evaluator import Logits, Span, TokenIds
from fewparse.lm.lifetime import Lifetime
from fewparse.lm.llama_model import Llama
from fewparse.lm.load import EMBEDDED, ModelSettings, model_kind
from fewparse.lm.local import LocalModel, usable_cores
from fewparse.lm.model_file import check_fit, check_model
from fewparse.lm.prefix_cache import PrefixCache
from fewparse.lm.usage import Usage
from fewparse.vocabulary import Vocabulary


@model_kind(adapters=True)
def open_embedded(_: str, settings: ModelSettings) -> "EmbeddedModel":
    """Open the default model, downloading it on first use."""
    path = weights.pull(progress=settings.progress)
    return EmbeddedModel(path, name=f"{EMBEDDED}:{weights.SMOLLM2.name}", threads=settings.threads)


@model_kind(argument="PATH", adapters=True)
def open_gguf(path: str, settings: ModelSettings) -> "EmbeddedModel":
    """Open a GGUF file."""
    if not path:
        raise UsageError("gguf: needs a path", "For example --model gguf:/models/some-model.gguf")
    return EmbeddedModel(user_path(path), threads=settings.threads)


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
    """A GGUF model with one KV cache for all queries; `sha256` is the hash of its file."""

    def __init__(self, path: Path, name: str | None = None, threads: int | None = None) -> None:
        self.sha256 = check_model(path)
        self.path = path
        name = name or f"gguf:{path}"
        lifetime = Lifetime(name)
        self._llama = Llama(path, threads or usable_cores(), lifetime)
        self._cache = PrefixCache(self._llama)
        self._adapters: dict[str, int] = {}
        vocabulary = Vocabulary(self._llama.tokens, self._llama.end_tokens)
        super().__init__(name, vocabulary, self._llama, AdapterEvaluator(self._cache, None), lifetime)

    def with_adapter(self, adapter: Adapter) -> LocalModel:
        """Return the model with an adapter applied; weights, memory, cache and lifetime are shared.

        Raises `ModelError` if the adapter was tuned for other weights, `CorruptModel` if it does not fit.
        """
        provenance = adapter.provenance
        if provenance is not None and provenance.base_sha256 != self.sha256:
            raise ModelError(
                f"the adapter {adapter.path} was tuned for {provenance.base}, and {self.name} has other weights",
                "Use the model it was tuned for, tune another adapter, or use none: --adapter none",
            )
        with self._lifetime.query():
            if adapter.sha256 not in self._adapters:
                check_fit(adapter, self.path, self.sha256)
                self._adapters[adapter.sha256] = self._llama.load_adapter(adapter.path)
        evaluator = AdapterEvaluator(self._cache, self._adapters[adapter.sha256])
        name = f"{self.name} + {adapter.path.name}"
        return LocalModel(name, self.vocabulary, self._llama, evaluator, self._lifetime)

    def close(self) -> None:
        """Free the native memory after the query under way; later queries raise `ModelError`."""
        self._llama.close()
