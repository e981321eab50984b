"""One KV cache for a prompt and all that is tried behind it: prefixes are shared, forked and batched.

Sequences of the cache hold known token paths behind the prompt. A question about some paths finds for each the
longest known prefix, forks it, and evaluates everything that is missing in as few batches as possible. The
layout of the cache depends on the present prompt alone: a new prompt keeps only what it shares with the last
one, and a question about the bare prompt begins a new search, so that a search gives the same scores whatever
was asked before it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from fewparse.errors import ContextOverflow
from fewparse.lm.llama import BATCH, Llama, NoRoom
from fewparse.lm.paths import ROWS_A_BATCH, Logits, Path, batches, common
from fewparse.lm.usage import Usage

PROMPT = 0


@dataclass
class Known:
    """A path behind the prompt that lies in the cache, with the logits after its last token."""

    sequence: int
    logits: Logits
    used: int


class PrefixCache:
    """Logits after any token path, evaluating each shared part once."""

    def __init__(self, llama: Llama) -> None:
        self._llama = llama
        self.context_length = llama.context_length
        self._prompt: Path = ()
        self._known: dict[Path, Known] = {}
        self._free = list(range(llama.n_seq_max - 1, PROMPT, -1))
        self._clock = 0
        self._adapter: int | None = None

    def use_adapter(self, handle: int | None) -> None:
        """Go on with an adapter, or with none; what another one has computed is forgotten."""
        if handle == self._adapter:
            return
        self._forget_tails()
        self._known.clear()
        self._llama.drop(PROMPT)
        self._prompt = ()
        self._llama.use_adapter(handle)
        self._adapter = handle

    def after(self, prompt: Path, tails: Sequence[Path], usage: Usage) -> list[Logits]:
        """The logits after prompt + tail for each tail; all that is new is evaluated together."""
        self._set_prompt(prompt, tails, usage)
        self._clock += 1
        found: dict[Path, Logits] = {}
        for tail in tails:
            if tail in self._known:
                # Before anything is evaluated, so that what makes room for it is none of these.
                self._known[tail].used = self._clock
                found[tail] = self._known[tail].logits
        for group in batches([t for t in dict.fromkeys(tails) if t not in found], self._missing, BATCH):
            for tail, rows in self._evaluate(group, [self._base(t) for t in group], False, usage):
                found[tail] = rows[-1]
        return [found[tail] for tail in tails]

    def along(
        self, prompt: Path, pairs: Sequence[tuple[Path, Path]], usage: Usage
    ) -> Iterator[tuple[tuple[Path, Path], list[Logits]]]:
        """For each distinct pair of a path and what follows it, the logits before each following token."""
        begins = dict(zip(pairs, self.after(prompt, [before for before, _ in pairs], usage), strict=True))
        self._set_prompt(prompt, [before + following for before, following in begins], usage)
        for group in batches([pair for pair in begins if pair[1]], lambda pair: len(pair[1]), ROWS_A_BATCH):
            bases = [before for before, _ in group]
            self.after(prompt, bases, usage)
            evaluated = self._evaluate([before + following for before, following in group], bases, True, usage)
            for pair, (_, rows) in zip(group, evaluated, strict=True):
                yield pair, [begins[pair], *rows[:-1]]

    def _set_prompt(self, prompt: Path, tails: Sequence[Path], usage: Usage) -> None:
        longest = len(prompt) + max(map(len, tails), default=0)
        if longest > self.context_length:
            raise ContextOverflow(longest, self.context_length)
        if prompt != self._prompt:
            self._begin_prompt(prompt, usage)
        elif () in tails:
            self._forget_tails()

    def _begin_prompt(self, prompt: Path, usage: Usage) -> None:
        """Evaluate a new prompt, keeping only what it shares with the present one."""
        self._forget_tails()
        shared = min(common(self._prompt, prompt), len(prompt) - 1)
        self._llama.drop(PROMPT, shared)
        self._prompt = ()
        new = len(prompt) - shared
        usage.prefill_tokens += new
        usage.forward_passes += 1
        rows = self._llama.decode(
            prompt[shared:], range(shared, len(prompt)), [PROMPT] * new, [False] * (new - 1) + [True]
        )
        self._prompt = prompt
        self._known[()] = Known(PROMPT, rows[0], self._clock)

    def _forget_tails(self) -> None:
        for tail in [t for t in self._known if t]:
            self._release(tail)

    def _release(self, tail: Path) -> None:
        sequence = self._known.pop(tail).sequence
        self._llama.drop(sequence)
        self._free.append(sequence)

    def _base(self, tail: Path) -> Path:
        """The longest known prefix of a tail."""
        return next(tail[:n] for n in range(len(tail) - 1, -1, -1) if tail[:n] in self._known)

    def _missing(self, tail: Path) -> int:
        return len(tail) - len(self._base(tail))

    def _evaluate(
        self, tails: Sequence[Path], bases: Sequence[Path], every: bool, usage: Usage
    ) -> Iterator[tuple[Path, list[Logits]]]:
        """Evaluate tails behind known bases as one batch; the logits after every new token, or the last."""
        tokens: list[int] = []
        positions: list[int] = []
        sequences: list[int] = []
        wanted: list[bool] = []
        for tail, base in zip(tails, bases, strict=True):
            new = tail[len(base) :]
            start = len(self._prompt) + len(base)
            tokens += new
            positions += range(start, start + len(new))
            sequences += [self._fork(base, keep=bases)] * len(new)
            wanted += [every] * (len(new) - 1) + [True]
        usage.forward_tokens += len(tokens)
        usage.forward_passes += 1
        rows = iter(self._decode(tokens, positions, sequences, wanted, keep=bases))
        end = 0
        for tail, base in zip(tails, bases, strict=True):
            new_tokens = len(tail) - len(base)
            end += new_tokens
            after = list(islice(rows, new_tokens if every else 1))
            if tail in self._known:
                self._release(tail)
            self._known[tail] = Known(sequences[end - 1], after[-1], self._clock)
            yield tail, after

    def _decode(
        self,
        tokens: Sequence[int],
        positions: Sequence[int],
        sequences: Sequence[int],
        wanted: Sequence[bool],
        keep: Sequence[Path],
    ) -> list[Logits]:
        """Evaluate a batch; where the cache has no cells left, older paths make room."""
        while True:
            try:
                return self._llama.decode(tokens, positions, sequences, wanted)
            except NoRoom:
                if not self._release_oldest(keep):
                    raise

    def _fork(self, base: Path, keep: Sequence[Path]) -> int:
        """A sequence that shares a known path; the least recently used one makes room."""
        if not self._free:
            self._release_oldest(keep)
        target = self._free.pop()
        self._llama.fork(self._known[base].sequence, target, len(self._prompt) + len(base))
        return target

    def _release_oldest(self, keep: Sequence[Path]) -> bool:
        spared = {(), *keep}
        oldest = min(
            (tail for tail in self._known if tail not in spared),
            key=lambda tail: self._known[tail].used,
            default=None,
        )
        if oldest is not None:
            self._release(oldest)
        return oldest is not None
