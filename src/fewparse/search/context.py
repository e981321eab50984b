"""State shared by one search: model, prompt, settings, usage, listener, cancellation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from threading import Event as Flag

import numpy as np

from fewparse.constrain.state import State
from fewparse.errors import ParseCancelled
from fewparse.events import BackedOff, Listener, Spelled
from fewparse.lm.model import Completion, Guide, LanguageModel, NextTokens, Sampling, ScoredToken, Token
from fewparse.lm.usage import Usage
from fewparse.prompt import Prompt
from fewparse.search.hypothesis import Hypothesis
from fewparse.search.settings import SearchSettings
from fewparse.vocabulary import is_text

REPORTED_TOKENS = 100
"""How many next tokens are requested if the vocabulary, and so the set of allowed tokens, is unknown."""
MAX_CHARACTERS, MAX_CHARACTER_BYTES = 256, 4


@dataclass(frozen=True)
class SearchContext:
    """The model calls of one search. A set `cancel` flag ends the search before its next call."""

    model: LanguageModel
    prompt: Prompt
    settings: SearchSettings
    usage: Usage
    emit: Listener
    cancel: Flag | None = None

    def sample(self, live: Sequence[Hypothesis], number: int) -> list[list[Completion]]:
        """Sample `width` completions of each hypothesis; a sample may stop at its first invalid token.

        `number` is the number of the round: each round has its own random numbers.
        """
        self._check_cancelled()
        settings = self.settings
        sampling = Sampling(
            n=settings.width,
            temperature=settings.temperature,
            max_tokens=settings.max_tokens,
            stop=settings.stop,
            seed=settings.seed * 1_000 + number,
            alternatives=settings.alternatives,
            grammar=settings.grammar,
        )
        guides: list[Guide | None] = [h.state for h in live]
        if self.cancel is not None:
            guides = [CancellableGuide(h.state, self.cancel) for h in live]
        completions = self.model.sample(self.prompt, [h.tokens for h in live], sampling, self.usage, guides)
        self._check_cancelled()
        return completions

    def best_allowed(self, live: Sequence[Hypothesis], width: int) -> list[NextTokens]:
        """Return the best allowed next tokens of each hypothesis, exact if the vocabulary is known.

        If it is unknown, and the model reports no allowed token, continuations come from the constraint; in paper
        mode there is none.
        """
        self._check_cancelled()
        for hypothesis in live:
            hypothesis.state.must_end  # noqa: B018 -- raises at a dead end, before a request is spent on it
        known = self.model.vocabulary is not None
        masks = [h.state.mask() for h in live] if known else None
        k = width if known else max(width, self.settings.alternatives, REPORTED_TOKENS)
        tokens = [h.tokens for h in live]
        found = self.model.next_tokens(self.prompt, tokens, k, self.settings.stop, self.usage, masks)
        if self.settings.paper:
            return found
        return [
            following if known and following.best else self._with_continuation(hypothesis, following)
            for hypothesis, following in zip(live, found, strict=True)
        ]

    def back_off(self, hypothesis: Hypothesis, found: NextTokens, free: bool) -> list[Hypothesis]:
        """Return the successors by one step of constrained decoding; `free`: the tokens came with a sample."""
        successors = hypothesis.successors(found, self.settings.width)
        if successors:
            choices = tuple(h.tokens[-1].bytes for h in successors if not h.finished)
            self.emit(BackedOff(hypothesis.text, free, choices))
        return successors

    def _with_continuation(self, hypothesis: Hypothesis, found: NextTokens) -> NextTokens:
        """Return the next tokens; if none of them may follow, replace them by continuations from the constraint.

        These are the forced span, or else every character that may follow. Their log-probabilities are unknown;
        they get the upper bound.
        """
        state = hypothesis.state
        if found.complete or state.may_end or any(state.advance(choice.token.bytes) for choice in found.best):
            return found
        forced = state.forced()
        spans = [forced] if forced else list(islice(characters(state), MAX_CHARACTERS))
        self.emit(Spelled(hypothesis.text, tuple(spans)))
        return found._replace(best=tuple(ScoredToken(Token(span), found.bound) for span in spans))

    def _check_cancelled(self) -> None:
        if self.cancel is not None and self.cancel.is_set():
            raise ParseCancelled


@dataclass(frozen=True)
class CancellableGuide:
    """A guide that ends samples once the flag is set."""

    guide: Guide
    cancel: Flag

    def advance(self, piece: bytes) -> Guide | None:
        """Return the guide after these bytes, or None if the sample should end here."""
        following = None if self.cancel.is_set() else self.guide.advance(piece)
        return None if following is None else CancellableGuide(following, self.cancel)


def characters(state: State, prefix: bytes = b"") -> Iterator[bytes]:
    """Yield the characters that may follow, each as its UTF-8 bytes."""
    for byte in np.unique(state.vocabulary.first_bytes[state.mask()]):
        text = prefix + bytes([int(byte)])
        following = state.advance(text[-1:])
        if following is None:
            continue
        if is_text(text):
            yield text
        elif len(text) < MAX_CHARACTER_BYTES:
            yield from characters(following, text)
