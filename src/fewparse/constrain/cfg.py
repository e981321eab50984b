"""A context-free grammar as a constraint."""

from functools import cached_property

import llguidance
import numpy as np

from fewparse.constrain.engine import Limits, check, compile_grammar, spell
from fewparse.constrain.state import Constraint, State
from fewparse.grammar.parsing.shortest_suffix import Completer
from fewparse.grammar.rules import Grammar, trim
from fewparse.vocabulary import Mask, Vocabulary


class CfgState(State):
    """A parser state. The engine's matcher is never modified: advancing copies it."""

    def __init__(self, matcher: llguidance.LLMatcher, vocabulary: Vocabulary) -> None:
        self._matcher = matcher
        self.vocabulary = vocabulary

    @cached_property
    def may_end(self) -> bool:
        """Whether the prefix is a sentence of the grammar."""
        return accepting(self._matcher)

    def advance(self, piece: bytes) -> State | None:
        """Consume the bytes, as one token if the vocabulary has it."""
        ids = token_ids(piece, self.vocabulary) if piece else None
        matcher = None if ids is None else consumed(self._matcher, ids)
        return None if matcher is None else CfgState(matcher, self.vocabulary)

    def mask(self) -> Mask:
        """Return the engine's mask without its end token; control tokens are special in the engine."""
        return self._mask

    @cached_property
    def _mask(self) -> Mask:
        return engine_mask(self._matcher, len(self.vocabulary))


def accepting(matcher: llguidance.LLMatcher) -> bool:
    """Return whether the text that a matcher has consumed is a sentence."""
    found = bool(matcher.is_accepting())
    check(matcher)
    return found


def token_ids(piece: bytes, vocabulary: Vocabulary) -> list[int] | None:
    """Return the ids of a piece, one token if there is one for it; None if the vocabulary cannot spell it."""
    whole = vocabulary.ids.get(piece)
    return [whole] if whole is not None else spell(piece, vocabulary)


def consumed(matcher: llguidance.LLMatcher, ids: list[int]) -> llguidance.LLMatcher | None:
    """Return a copy of a matcher after these tokens; None if they may not follow."""
    copy = matcher.deep_copy()
    count = copy.try_consume_tokens(ids)
    check(copy)
    return copy if count == len(ids) else None


def engine_mask(matcher: llguidance.LLMatcher, count: int) -> Mask:
    """Return the engine's mask of the first `count` token ids."""
    if matcher.is_stopped():
        check(matcher)
        return np.zeros(count, dtype=np.bool_)
    packed = np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8)
    check(matcher)
    return np.unpackbits(packed, count=count, bitorder="little").view(np.bool_)


class CfgConstraint(Constraint):
    """The sentences of a grammar."""

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary, limits: Limits | None = None) -> None:
        self.vocabulary = vocabulary
        trimmed = trim(grammar)
        self.useless = trimmed.unproductive + trimmed.unreachable
        self.grammar = trimmed.grammar
        self._initial = compile_grammar(self.grammar, vocabulary, limits or Limits())

    def start(self) -> State:
        """Return the initial state, a new copy for each search: a matcher must not be shared between threads."""
        return CfgState(self._initial.deep_copy(), self.vocabulary)

    def ending(self, text: bytes) -> bytes | None:
        """Return the shortest suffix that completes a sentence."""
        try:
            decoded = text.decode()
        except UnicodeDecodeError:  # the text ends within a character
            return super().ending(text)
        rest = self._completer.shortest_suffix(decoded)
        return None if rest is None else rest.encode()

    @cached_property
    def _completer(self) -> Completer:
        return Completer(self.grammar)
