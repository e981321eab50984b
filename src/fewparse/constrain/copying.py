"""Grammars with rules that are copied from the utterance: compiled once, used with the spans of any utterance.

The engine compiles the grammar with a placeholder for each copied rule. A state is a set of configurations, each
a parser state of that grammar and, within a copied rule, positions in the utterance. Setting up an utterance takes
time linear in its length and compiles nothing.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from fewparse.constrain.cfg import CfgConstraint
from fewparse.constrain.configuration import Configuration, CopyContext
from fewparse.constrain.copy_spans import copied_characters, copy_spans
from fewparse.constrain.engine import Limits
from fewparse.constrain.placeholders import PlaceholderGrammar
from fewparse.constrain.span_table import SpanTable
from fewparse.constrain.state import Constraint, State
from fewparse.grammar.rules import Grammar
from fewparse.memory import COLLECTION
from fewparse.vocabulary import Mask, Vocabulary

MAX_CONFIGURATIONS = 32
"""Beyond this number of configurations, the grammar is compiled with the spans of the utterance instead."""
MAX_PIECE = 8
"""Longer pieces are divided, so that configurations are merged before their number grows."""
INVALID_BYTE = b"\xff"
"""Occurs in no UTF-8 text; the engine uses it in the names of special tokens."""


class CopyGrammar:
    """A grammar and its copied rules, compiled for a vocabulary, for the constraints of many utterances."""

    def __init__(
        self, grammar: Grammar, names: Sequence[str], vocabulary: Vocabulary, limits: Limits | None = None
    ) -> None:
        self.names = tuple(dict.fromkeys(names))
        self.vocabulary = vocabulary
        self._grammar = grammar
        self._limits = limits or Limits()
        self._characters = copied_characters(grammar, self.names)
        self._compiled: dict[tuple[str, ...], PlaceholderGrammar] = {}

    def constraint(self, utterance: str) -> "CfgConstraint | CopyConstraint":
        """Return the constraint for an utterance."""
        tables = {name: SpanTable(characters, utterance) for name, characters in self._characters.items()}
        used = tuple(name for name, table in tables.items() if table.first_bytes)
        if used not in self._compiled:
            with COLLECTION.paused():
                self._compiled[used] = PlaceholderGrammar(
                    self._grammar, self.names, used, self.vocabulary, self._limits
                )
        compiled = self._compiled[used]
        if compiled.entries is None:
            return self.with_spans(utterance)
        return CopyConstraint(self, CopyContext(compiled, [tables[name] for name in used]), utterance)

    def with_spans(self, utterance: str) -> CfgConstraint:
        """Return the same constraint with all spans of the utterance compiled into the grammar."""
        return CfgConstraint(copy_spans(self._grammar, self.names, utterance), self.vocabulary, self._limits)


class CopyState(State):
    """The state after a text: all configurations that it leads to."""

    def __init__(self, constraint: "CopyConstraint", text: bytes, configurations: Sequence[Configuration]) -> None:
        self.vocabulary = constraint.vocabulary
        self.configurations = configurations
        self._constraint = constraint
        self._text = text

    @cached_property
    def may_end(self) -> bool:
        """Whether the text is a sentence."""
        return any(configuration.may_end for configuration in self.configurations)

    def advance(self, piece: bytes) -> State | None:
        """Follow the piece in all configurations; equal ones are merged."""
        if not piece or INVALID_BYTE in piece:
            return None
        state: State | None = self
        for at in range(0, len(piece), MAX_PIECE):
            if not isinstance(state, CopyState):
                return None if state is None else state.advance(piece[at:])
            state = state._advance(piece[at : at + MAX_PIECE])
        return state

    def _advance(self, piece: bytes) -> State | None:
        """Follow a short piece."""
        merged: dict[tuple[bytes, int | None], Configuration] = {}
        for configuration in self.configurations:
            for found in configuration.follow(piece):
                key = found.base, found.rule
                merged[key] = merged[key].merged_with(found) if key in merged else found
                if len(merged) > MAX_CONFIGURATIONS:
                    return self._constraint.with_spans.start().advance(self._text + piece)
        return CopyState(self._constraint, self._text + piece, tuple(merged.values())) if merged else None

    def mask(self) -> Mask:
        """Return the tokens that may follow in one of the configurations."""
        return self._mask

    @cached_property
    def _mask(self) -> Mask:
        masks = [configuration.mask for configuration in self.configurations]
        return masks[0] if len(masks) == 1 else np.logical_or.reduce(masks)


class CopyConstraint(Constraint):
    """The sentences of a grammar whose copied rules derive spans of one utterance."""

    def __init__(self, source: CopyGrammar, context: CopyContext, utterance: str) -> None:
        self.vocabulary = source.vocabulary
        self.useless = context.grammar.useless
        self._source = source
        self._context = context
        self._utterance = utterance

    def start(self) -> State:
        """Return the initial state, with a new copy of the matcher: one must not be shared between threads."""
        initial = self._context.grammar.initial.deep_copy()
        return CopyState(self, b"", [Configuration(self._context, b"", initial)])

    def ending(self, text: bytes) -> bytes | None:
        """Return the shortest of the suffixes that complete the text in one of its configurations."""
        state = self.start().advance(text) if text else self.start()
        if not isinstance(state, CopyState):
            return None if state is None else self.with_spans.ending(text)
        try:
            found = [ending for c in state.configurations if (ending := c.ending()) is not None]
        except UnicodeDecodeError:  # the text ends within a character
            return super().ending(text)
        return min(found, key=lambda ending: (len(ending), ending), default=None)

    @cached_property
    def with_spans(self) -> CfgConstraint:
        """The same constraint, with all spans compiled into the grammar."""
        return self._source.with_spans(self._utterance)
