"""An evaluator on the KV cache of llama.cpp: paths share the cells of their prefixes and are batched.

Each sequence of the cache holds one path after the prompt. A query finds the longest cached prefix of each of its
paths, forks that sequence, and evaluates all missing tokens in as few batches as possible.

The layout of the cache depends on the current prompt only: a new prompt keeps only the tokens it shares with the
previous one, and a query for the empty path starts a new search and drops all others. A search therefore gets the
same logits regardless of what was evaluated before it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from fewparse.lm.evaluator import (
    MAX_ROWS_PER_BATCH,
    Logits,
    Span,
    TokenIds,
    batches,
    check_context,
    common_prefix_length,
    token_logprobs,
)
from fewparse.lm.llama_model import BATCH, CacheFull, Llama, NotFinite
from fewparse.lm.span_tree import NextIds, TreeBatch, next_ids, tree_batches
from fewparse.lm.usage import Usage

PROMPT_SEQUENCE = 0
TREE_BATCH = 192
"""The tokens of a batch of `span_logprobs`. Attention is computed over all cells in use, even masked ones, in
units of 256 cells: a larger batch costs more per token."""

MAX_TREE_LOGITS = 1 << 24
"""The logits of a batch of `span_logprobs`: 64 MiB."""


@dataclass
class CachedPath:
    """A path in the cache: its sequence, the logits after its last token, and when it was last used."""

    sequence: int
    logits: Logits
    last_used: int


class PrefixCache:
    """Logits after token paths, evaluating each shared prefix once."""

    def __init__(self, llama: Llama) -> None:
        self._llama = llama
        self.context_length = llama.context_length
        self._prompt: TokenIds = ()
        self._cached: dict[TokenIds, CachedPath] = {}
        self._free = list(range(llama.n_seq_max - 1, PROMPT_SEQUENCE, -1))
        self._clock = 0
        self._adapter: int | None = None
        self._damaged = False

    def use_adapter(self, handle: int | None) -> None:
        """Switch to an adapter, or to none; clears the cache if that is a change."""
        if handle == self._adapter:
            return
        self._drop_paths()
        self._cached.clear()
        self._llama.drop(PROMPT_SEQUENCE)
        self._prompt = ()
        self._llama.use_adapter(handle)
        self._adapter = handle

    def next_logits(self, prompt: TokenIds, paths: Sequence[TokenIds], usage: Usage) -> list[Logits]:
        """Return the logits after prompt + path for each path."""
        self._set_prompt(prompt, paths, usage)
        self._clock += 1
        found: dict[TokenIds, Logits] = {}
        for path in paths:
            if path in self._cached:
                # Marked before anything is evaluated, so that none of these paths is evicted.
                self._cached[path].last_used = self._clock
                found[path] = self._cached[path].logits
        for batch in batches([p for p in dict.fromkeys(paths) if p not in found], self._missing_tokens, BATCH):
            for path, rows in self._evaluate(batch, [self._cached_prefix(p) for p in batch], False, usage):
                found[path] = rows[-1]
        return [found[path] for path in paths]

    def logits_along(
        self, prompt: TokenIds, spans: Sequence[Span], usage: Usage
    ) -> Iterator[tuple[Span, list[Logits]]]:
        """Yield each distinct span with the logits before each of its following tokens."""
        first = dict(zip(spans, self.next_logits(prompt, [before for before, _ in spans], usage), strict=True))
        self._set_prompt(prompt, [before + following for before, following in first], usage)
        for batch in batches([span for span in first if span[1]], lambda span: len(span[1]), MAX_ROWS_PER_BATCH):
            bases = [before for before, _ in batch]
            self.next_logits(prompt, bases, usage)
            evaluated = self._evaluate([before + following for before, following in batch], bases, True, usage)
            for span, (_, rows) in zip(batch, evaluated, strict=True):
                yield span, [first[span], *rows[:-1]]

    def span_logprobs(
        self, prompt: TokenIds, spans: Sequence[Span], usage: Usage
    ) -> dict[Span, tuple[float, ...]]:
        """Return the log-probability of each following token of each span, for spans that no search continues.

        The spans are evaluated as a tree. Their last tokens are not evaluated, and no path remains in the cache.
        """
        needed = next_ids(spans)
        self._set_prompt(prompt, [(), *needed], usage)
        logprobs: dict[TokenIds, float] = {}

        def read(path: TokenIds, row: Logits) -> None:
            ids = needed[path]
            logprobs.update(zip([(*path, token) for token in ids], token_logprobs(row, ids), strict=True))

        if () in needed:
            read((), self._cached[()].logits)
        max_rows = max(1, MAX_TREE_LOGITS // self._llama.n_vocab)
        last = PROMPT_SEQUENCE
        try:
            for batch in tree_batches(needed, TREE_BATCH, max_rows, self._llama.n_seq_max - 2):
                last = self._evaluate_tree(batch, last, needed, read, usage)
        except BaseException:
            self._damaged = True  # which sequences are in use is unknown
            raise
        self._release_path(last)
        return {
            (before, following): tuple(logprobs[before + following[: i + 1]] for i in range(len(following)))
            for before, following in spans
        }

    def _evaluate_tree(
        self, batch: TreeBatch, last: int, needed: NextIds, read: Callable[[TokenIds, Logits], None], usage: Usage
    ) -> int:
        """Evaluate a batch after the path of the sequence `last`; return the sequence of its own last path."""
        start, nodes = len(self._prompt), list(batch.owners)
        sequences = [self._free.pop() for _ in batch.paths]
        for sequence, shared in zip(sequences, batch.shared, strict=True):
            self._llama.fork(last, sequence, start + shared)
        self._release_path(last)  # the cells that are still needed belong to the new sequences too
        usage.forward_tokens += len(nodes)
        usage.forward_passes += 1
        self._llama.decode_tree(
            [node[-1] for node in nodes],
            [start + len(node) - 1 for node in nodes],
            [[sequences[i] for i in owners] for owners in batch.owners.values()],
            [node in needed for node in nodes],
            lambda i, row: read(nodes[i], row),
        )
        for sequence in sequences[:-1]:
            self._release(sequence)
        return sequences[-1]

    def _release_path(self, sequence: int) -> None:
        if sequence != PROMPT_SEQUENCE:
            self._release(sequence)

    def _set_prompt(self, prompt: TokenIds, paths: Sequence[TokenIds], usage: Usage) -> None:
        check_context(prompt, paths, self.context_length)
        if self._damaged:
            self._reset()
        if prompt != self._prompt:
            self._evaluate_prompt(prompt, usage)
        elif () in paths:
            self._drop_paths()

    def _evaluate_prompt(self, prompt: TokenIds, usage: Usage) -> None:
        """Evaluate a new prompt, except for the prefix it shares with the current one."""
        self._drop_paths()
        shared = min(common_prefix_length(self._prompt, prompt), len(prompt) - 1)
        self._llama.drop(PROMPT_SEQUENCE, shared)
        self._prompt = ()
        new = len(prompt) - shared
        usage.prefill_tokens += new
        usage.forward_passes += 1
        rows = self._evaluate_batch(
            prompt[shared:], range(shared, len(prompt)), [PROMPT_SEQUENCE] * new, [False] * (new - 1) + [True]
        )
        self._prompt = prompt
        self._cached[()] = CachedPath(PROMPT_SEQUENCE, rows[0], self._clock)

    def _drop_paths(self) -> None:
        for path in [p for p in self._cached if p]:
            self._drop(path)

    def _drop(self, path: TokenIds) -> None:
        self._release(self._cached.pop(path).sequence)

    def _release(self, sequence: int) -> None:
        self._free.append(sequence)
        self._llama.drop(sequence)

    def _cached_prefix(self, path: TokenIds) -> TokenIds:
        """Return the longest cached proper prefix of a path."""
        return next(path[:n] for n in range(len(path) - 1, -1, -1) if path[:n] in self._cached)

    def _missing_tokens(self, path: TokenIds) -> int:
        return len(path) - len(self._cached_prefix(path))

    def _evaluate(
        self, paths: Sequence[TokenIds], bases: Sequence[TokenIds], every: bool, usage: Usage
    ) -> list[tuple[TokenIds, list[Logits]]]:
        """Evaluate paths after cached bases as one batch; return the logits after every new token, or the last."""
        tokens: list[int] = []
        positions: list[int] = []
        sequences: list[int] = []
        wanted: list[bool] = []
        forks: list[int] = []
        try:
            for path, base in zip(paths, bases, strict=True):
                new = path[len(base) :]
                start = len(self._prompt) + len(base)
                forks.append(self._fork(base, keep=bases))
                tokens += new
                positions += range(start, start + len(new))
                sequences += [forks[-1]] * len(new)
                wanted += [every] * (len(new) - 1) + [True]
            usage.forward_tokens += len(tokens)
            usage.forward_passes += 1
            rows = iter(self._decode(tokens, positions, sequences, wanted, keep=bases))
        except BaseException:
            for sequence in forks:
                self._release(sequence)
            raise
        evaluated = []
        for path, base, sequence in zip(paths, bases, forks, strict=True):
            own = list(islice(rows, len(path) - len(base) if every else 1))
            if path in self._cached:
                self._drop(path)
            self._cached[path] = CachedPath(sequence, own[-1], self._clock)
            evaluated.append((path, own))
        return evaluated

    def _decode(
        self,
        tokens: Sequence[int],
        positions: Sequence[int],
        sequences: Sequence[int],
        wanted: Sequence[bool],
        keep: Sequence[TokenIds],
    ) -> list[Logits]:
        """Evaluate a batch, evicting least recently used paths while the cache has too few free cells."""
        while True:
            try:
                return self._evaluate_batch(tokens, positions, sequences, wanted)
            except CacheFull:
                if not self._evict(keep):
                    raise

    def _evaluate_batch(
        self,
        tokens: Sequence[int],
        positions: Sequence[int],
        sequences: Sequence[int],
        wanted: Sequence[bool],
    ) -> list[Logits]:
        try:
            return self._llama.decode(tokens, positions, sequences, wanted)
        except NotFinite:
            self._damaged = True
            raise

    def _reset(self) -> None:
        """Empty the cache."""
        self._llama.clear()
        self._prompt = ()
        self._cached.clear()
        self._free = list(range(self._llama.n_seq_max - 1, PROMPT_SEQUENCE, -1))
        self._damaged = False

    def _fork(self, base: TokenIds, keep: Sequence[TokenIds]) -> int:
        """Return a new sequence that shares the cells of a cached path, evicting another one if none is free."""
        if not self._free and not self._evict(keep):
            raise CacheFull(f"all {self._llama.n_seq_max} sequences of the KV cache are in use")
        target = self._free.pop()
        self._llama.fork(self._cached[base].sequence, target, len(self._prompt) + len(base))
        return target

    def _evict(self, keep: Sequence[TokenIds]) -> bool:
        """Drop the least recently used path that is not to be kept; return whether there was one."""
        kept = {(), *keep}
        oldest = min(
            (path for path in self._cached if path not in kept),
            key=lambda path: self._cached[path].last_used,
            default=None,
        )
        if oldest is not None:
            self._drop(oldest)
        return oldest is not None
