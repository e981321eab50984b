"""The embedded model: a GGUF file in this process, through llama.cpp."""

import threading
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from fewparse.errors import CorruptModel, ModelError, ModelUnavailable
from fewparse.lm import paths
from fewparse.lm.adapter import Adapter
from fewparse.lm.gguf import MAGIC, file_sha256
from fewparse.lm.llama import Llama
from fewparse.lm.local import LONGEST_CONTEXT, LocalModel, usable_cores
from fewparse.lm.prefix_cache import PrefixCache
from fewparse.lm.usage import Usage
from fewparse.vocabulary import Vocabulary

SEQUENCES = 256
ROOM_FOR_TAILS = 4096


class Corrected:
    """The model's one cache as it is under one adapter, or under none."""

    def __init__(self, cache: PrefixCache, adapter: int | None) -> None:
        self.context_length = cache.context_length
        self._cache = cache
        self._adapter = adapter

    def after(self, prompt: paths.Path, tails: Sequence[paths.Path], usage: Usage) -> list[paths.Logits]:
        """The logits after prompt + tail for each tail."""
        self._cache.use_adapter(self._adapter)
        return self._cache.after(prompt, tails, usage)

    def along(
        self, prompt: paths.Path, pairs: Sequence[tuple[paths.Path, paths.Path]], usage: Usage
    ) -> Iterator[tuple[tuple[paths.Path, paths.Path], list[paths.Logits]]]:
        """For each distinct pair of a path and what follows it, the logits before each following token."""
        self._cache.use_adapter(self._adapter)
        yield from self._cache.along(prompt, pairs, usage)


class EmbeddedModel(LocalModel):
    """A GGUF model with one KV cache that every question shares."""

    def __init__(self, path: Path, name: str | None = None, threads: int | None = None) -> None:
        check_gguf(path)
        self.path = path
        self._llama = Llama(path, LONGEST_CONTEXT, ROOM_FOR_TAILS, SEQUENCES, threads or usable_cores())
        self._cache = PrefixCache(self._llama)
        self._adapters: dict[str, int] = {}
        self._loading = threading.Lock()
        super().__init__(
            name or f"gguf:{path}", read_vocabulary(self._llama), self._llama, Corrected(self._cache, None)
        )

    @cached_property
    def sha256(self) -> str:
        """What identifies the weights."""
        return file_sha256(self.path)

    def adapted(self, adapter: Adapter) -> LocalModel:
        """The same model under an adapter: weights, memory and cache are shared, and one search runs at a time."""
        told = adapter.provenance
        if told is not None and told.base_sha256 != self.sha256:
            raise ModelError(
                f"the adapter {adapter.path} was tuned for {told.base}, and {self.name} has other weights",
                "Use the model it was tuned for, tune another one, or go without: --adapter none",
            )
        with self._loading:
            if adapter.sha256 not in self._adapters:
                self._adapters[adapter.sha256] = self._llama.load_adapter(adapter.path)
        corrected = Corrected(self._cache, self._adapters[adapter.sha256])
        name = f"{self.name} + {adapter.path.name}"
        return LocalModel(name, self.vocabulary, self._llama, corrected, self._lock)

    def close(self) -> None:
        """Give back the native memory."""
        self._llama.close()


def read_vocabulary(llama: Llama) -> Vocabulary:
    """The bytes of every token; none for markup."""
    ids = range(llama.n_vocab)
    return Vocabulary(
        [b"" if llama.is_control(i) else llama.piece(i) for i in ids], [i for i in ids if llama.is_end(i)]
    )


def check_gguf(file: Path) -> None:
    """Refuse what is not a GGUF file before the native library sees it."""
    try:
        with file.open("rb") as opened:
            begin = opened.read(len(MAGIC))
    except OSError as error:
        raise ModelUnavailable(f"the model file {file} cannot be read: {error.strerror}") from None
    if begin != MAGIC:
        raise CorruptModel(f"{file} is not a GGUF file", "For the bundled model: fewparse models pull --force")
