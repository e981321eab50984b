"""Several contexts of one loaded model, each with its own KV cache, for queries that run at the same time.

The results of a query are those of a model with one context: its paths are evaluated in the same batches.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from fewparse.lm.evaluator import TokenIds
from fewparse.lm.llama_model import Llama
from fewparse.lm.prefix_cache import PrefixCache


@dataclass
class Context:
    """A context: its cache, and what it was last used for."""

    cache: PrefixCache
    adapter: int | None = None
    prompt: TokenIds = ()
    thread: int = 0
    last_used: int = 0


class ContextPool:
    """At most `size` contexts, opened when they are needed; the first one is that of the model."""

    def __init__(self, llama: Llama, size: int, threads: int) -> None:
        self._llama = llama
        self._size = size
        self._threads = threads
        self._clock = 0
        self._idle = [Context(PrefixCache(llama))]
        self._opened = 1
        self._changed = threading.Condition()

    @contextmanager
    def borrow(self, prompt: TokenIds, adapter: int | None) -> Iterator[PrefixCache]:
        """Yield a cache that no other thread uses meanwhile, with the adapter applied.

        It is the one that was used for this prompt, or else by this thread, whose search is over, or else the one
        that was not used for the longest time.
        """
        thread = threading.get_ident()
        context = self._take(prompt, adapter, thread)
        try:
            context.cache.use_adapter(adapter)
            yield context.cache
        finally:
            with self._changed:
                self._clock += 1
                context.adapter, context.prompt, context.thread = adapter, prompt, thread
                context.last_used = self._clock
                self._idle.append(context)
                self._changed.notify()

    def _take(self, prompt: TokenIds, adapter: int | None, thread: int) -> Context:
        def rank(context: Context) -> tuple[bool, bool, int]:
            return (
                (context.prompt, context.adapter) == (prompt, adapter),
                context.thread == thread,
                -context.last_used,
            )

        with self._changed:
            known = max(self._idle, key=rank, default=None)
            usable = known is not None and (any(rank(known)[:2]) or not known.last_used)
            if not usable and self._opened < self._size:
                self._idle.append(Context(PrefixCache(self._llama.with_own_context(self._threads))))
                self._opened += 1
            self._changed.wait_for(lambda: self._idle)
            chosen = max(self._idle, key=rank)
            self._idle.remove(chosen)
            return chosen
