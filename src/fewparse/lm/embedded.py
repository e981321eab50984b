"""GGUF models in this process, by llama.cpp: the model kinds `embedded` and `gguf`."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Lock

from fewparse.errors import ModelError, UsageError
from fewparse.files import user_path
from fewparse.lm import weights
from fewparse.lm.adapter import Adapter
from fewparse.lm.catalogue import find_weights
from fewparse.lm.checked_files import checked_sha256
from fewparse.lm.context_pool import ContextPool
from fewparse.lm.evaluator import Logits, Span, TokenIds
from fewparse.lm.lifetime import Lifetime
from fewparse.lm.llama_model import Llama
from fewparse.lm.load import EMBEDDED, ModelSettings, model_kind
from fewparse.lm.local import LocalModel, usable_cores
from fewparse.lm.model_file import check_fit, check_model
from fewparse.lm.usage import Usage
from fewparse.vocabulary import Vocabulary

FIRST_OF_SEVERAL = re.compile(r"-\d{5}-of-\d{5}\.gguf$")
"""The names that llama.cpp requires for the files of a model in several files."""


def file_identity(path: Path, sha256: str) -> str | None:
    """Return the identity of a model file with this hash; None if the model has further files."""
    return None if FIRST_OF_SEVERAL.search(path.name) else f"gguf:{sha256}"


def identify_embedded(name: str, _: ModelSettings) -> str:
    """Return the identity of a model of the catalogue, whether or not it has been downloaded."""
    return f"gguf:{find_weights(name).sha256}"


def identify_gguf(path: str, _: ModelSettings) -> str | None:
    """Return the identity of a GGUF file."""
    return file_identity(gguf_path(path), checked_sha256(gguf_path(path)))


@model_kind(argument="NAME", optional=True, adapters=True, concurrent=True, identify=identify_embedded)
def open_embedded(name: str, settings: ModelSettings) -> "EmbeddedModel":
    """Open a model of the catalogue, by default SmolLM2-135M; it is downloaded on first use if it has no terms."""
    found = find_weights(name)
    path = weights.pull(found, progress=settings.progress)
    return EmbeddedModel(path, f"{EMBEDDED}:{found.name}", settings.threads, settings.max_concurrency)


@model_kind(argument="PATH", adapters=True, concurrent=True, identify=identify_gguf)
def open_gguf(path: str, settings: ModelSettings) -> "EmbeddedModel":
    """Open a GGUF file."""
    return EmbeddedModel(gguf_path(path), None, settings.threads, settings.max_concurrency)


def gguf_path(path: str) -> Path:
    """Return the path of `gguf:PATH`; raise `UsageError` if it is empty."""
    if not path:
        raise UsageError("gguf: needs a path", "For example --model gguf:/models/some-model.gguf")
    return user_path(path)


class AdapterEvaluator:
    """Evaluates with one adapter, or with none, on contexts that all adapters of a model share."""

    def __init__(self, contexts: ContextPool, context_length: int, adapter: int | None) -> None:
        self.context_length = context_length
        self._contexts = contexts
        self._adapter = adapter

    def next_logits(self, prompt: TokenIds, paths: Sequence[TokenIds], usage: Usage) -> list[Logits]:
        """Return the logits after prompt + path for each path."""
        with self._contexts.borrow(prompt, self._adapter) as cache:
            return cache.next_logits(prompt, paths, usage)

    def logits_along(
        self, prompt: TokenIds, spans: Sequence[Span], usage: Usage
    ) -> Iterator[tuple[Span, list[Logits]]]:
        """Yield each distinct span with the logits before each of its following tokens."""
        with self._contexts.borrow(prompt, self._adapter) as cache:
            yield from cache.logits_along(prompt, spans, usage)

    def span_logprobs(
        self, prompt: TokenIds, spans: Sequence[Span], usage: Usage
    ) -> dict[Span, tuple[float, ...]]:
        """Return the log-probability of each following token of each span."""
        with self._contexts.borrow(prompt, self._adapter) as cache:
            return cache.span_logprobs(prompt, spans, usage)


class EmbeddedModel(LocalModel):
    """A GGUF model; `sha256` is the hash of its file.

    `max_concurrency` queries run at a time, at most one per thread, each on a context of its own with its share of
    the `threads`. Contexts are opened when they are needed; each takes the memory of a KV cache.
    """

    def __init__(
        self, path: Path, name: str | None = None, threads: int | None = None, max_concurrency: int = 1
    ) -> None:
        self.sha256 = check_model(path)
        self.path = path
        name = name or f"gguf:{path}"
        threads = threads or usable_cores()
        max_concurrency = min(max_concurrency, threads)
        share = threads // max_concurrency
        lifetime = Lifetime(name, max_concurrency)
        self._llama = Llama(path, share, lifetime)
        self._contexts = ContextPool(self._llama, max_concurrency, share)
        self._adapters: dict[str, int] = {}
        self._adapters_lock = Lock()
        vocabulary = Vocabulary(self._llama.tokens, self._llama.end_tokens)
        evaluator = AdapterEvaluator(self._contexts, self._llama.context_length, None)
        super().__init__(name, vocabulary, self._llama, evaluator, lifetime, file_identity(path, self.sha256))
        self.max_concurrency = max_concurrency

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
        with self._lifetime.query(), self._adapters_lock:
            if adapter.sha256 not in self._adapters:
                check_fit(adapter, self.path, self.sha256)
                self._adapters[adapter.sha256] = self._llama.load_adapter(adapter.path)
        evaluator = AdapterEvaluator(self._contexts, self.context_length, self._adapters[adapter.sha256])
        name = f"{self.name} + {adapter.path.name}"
        identity = self.identity and f"{self.identity}+{adapter.sha256}"
        adapted = LocalModel(name, self.vocabulary, self._llama, evaluator, self._lifetime, identity)
        adapted.max_concurrency = self.max_concurrency
        return adapted

    def close(self) -> None:
        """Free the native memory after the query under way; later queries raise `ModelError`."""
        self._llama.close()
