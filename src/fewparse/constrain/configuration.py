"""Configurations: a parser state and, within a copied rule, positions in the utterance.

A text leads to several configurations if it can be derived with a copied span and without it.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import llguidance
import numpy as np

from fewparse.constrain.cfg import accepting, consumed, engine_mask, token_ids
from fewparse.constrain.engine import spell
from fewparse.constrain.placeholders import Entry, PlaceholderGrammar, mark
from fewparse.constrain.span_table import Positions, SpanTable
from fewparse.vocabulary import Mask

MAX_SHARED_TEXT, MAX_SHARED_MASKS = 24, 200
"""The engine's masks after texts of at most so many bytes are shared by the outputs of all utterances."""


class CopyContext(NamedTuple):
    """A grammar with placeholders, and the spans of one utterance for each of them."""

    grammar: PlaceholderGrammar
    tables: Sequence[SpanTable]


class Configuration:
    """A parser state and, within a copied rule, positions in the utterance.

    `base` is the text so far with marks in place of copied spans; equal texts have equal parser states. `rule` is
    the number of the copied rule that the text ends in; None outside of copied rules. `positions` are the ends of
    the span so far; None at its start.
    """

    def __init__(
        self,
        context: CopyContext,
        base: bytes,
        matcher: llguidance.LLMatcher,
        rule: int | None = None,
        positions: Positions | None = None,
    ) -> None:
        self.base = base
        self.rule = rule
        self._context = context
        self._matcher = matcher
        self._positions = positions
        self._table = None if rule is None else context.tables[rule]

    def merged_with(self, other: "Configuration") -> "Configuration":
        """Return the configuration with the positions of both; their texts and rules are equal."""
        positions = tuple(sorted({*(self._positions or ()), *(other._positions or ())})) or None
        return Configuration(self._context, self.base, self._matcher, self.rule, positions)

    @property
    def outside(self) -> "Configuration | None":
        """The configuration outside of copied rules: this one, or the one after the span if it may end here."""
        if self._table is None:
            return self  # not cached: a cycle would keep the parser state until garbage collection
        return self._after_span if self._table.may_end(self._positions) else None

    @cached_property
    def _after_span(self) -> "Configuration":
        return Configuration(self._context, self.base, self._matcher)

    @property
    def may_end(self) -> bool:
        """Whether the text is a sentence."""
        return self.outside is not None and accepting(self._matcher)

    def follow(self, piece: bytes) -> Iterator["Configuration"]:
        """Yield the configurations after a piece."""
        if self.outside is not None:
            yield from self.outside._follow_outside(piece)
        if self._table is None:
            return
        positions = self._positions
        for i, byte in enumerate(piece, 1):
            positions = self._table.step(positions, byte)
            if not positions:
                return
            if i == len(piece):
                yield Configuration(self._context, self.base, self._matcher, self.rule, positions)
            elif self._table.may_end(positions):
                yield from self._after_span._follow_outside(piece[i:])

    def _follow_outside(self, piece: bytes) -> Iterator["Configuration"]:
        """Yield the configurations after a piece that follows outside: consumed whole, or up to a copied rule."""
        grammar, tables = self._context
        ids = token_ids(piece, grammar.vocabulary)
        matcher = None if ids is None else consumed(self._matcher, ids)
        if matcher is not None:
            yield Configuration(self._context, self.base + piece, matcher)
        for rule, table in enumerate(tables):
            for at, byte in enumerate(piece):
                if byte in table.first_bytes and (at == 0 or piece[at - 1] in grammar.before[rule]):
                    entered = self._enter(rule, piece[:at], spell(piece[:at], grammar.vocabulary))
                    if entered is not None:
                        yield from entered.follow(piece[at:])

    def _enter(self, rule: int, before: bytes, ids: Sequence[int] | None) -> "Configuration | None":
        """Return the configuration at the start of a copied rule after some text; None if it may not start there.

        `ids` spell the text; None if the vocabulary cannot.
        """
        if ids is None:
            return None
        all_ids = [*ids, self._context.grammar.ids[rule]]
        if self._matcher.validate_tokens(all_ids) < len(all_ids):
            return None
        matcher = consumed(self._matcher, all_ids)
        base = self.base + before + mark(rule).encode()
        return None if matcher is None else Configuration(self._context, base, matcher, rule)

    @cached_property
    def mask(self) -> Mask:
        """The tokens that may follow."""
        if self._table is None:
            return self._mask_outside()
        mask = np.zeros(len(self._context.grammar.vocabulary), dtype=np.bool_)
        if self.outside is not None:
            mask |= self.outside.mask
        self._add_span(mask, b"", self._table)
        return mask

    def _mask_outside(self) -> Mask:
        """Return the tokens of the grammar, and those that reach into a span."""
        grammar, tables = self._context
        vocabulary = grammar.vocabulary
        mask: Mask = self._engine_mask[: len(vocabulary)] & vocabulary.is_utf8_part
        for rule, placeholder in enumerate(grammar.ids):
            if self._engine_mask[placeholder] and (entered := self._enter(rule, b"", ())) is not None:
                entered._add_span(mask, b"", tables[rule])
        for entry in self._possible_entries:
            entered = self._enter(entry.rule, entry.text, entry.ids)
            if entered is not None:
                entered._add_span(mask, entry.text, tables[entry.rule])
        return mask

    @cached_property
    def _engine_mask(self) -> Mask:
        """The engine's mask of the vocabulary, the end token and the placeholders."""
        grammar = self._context.grammar
        if (known := grammar.masks.get(self.base)) is not None:
            return known
        mask = engine_mask(self._matcher, len(grammar.vocabulary) + 1 + len(grammar.ids))
        if len(self.base) <= MAX_SHARED_TEXT and len(grammar.masks) < MAX_SHARED_MASKS:
            grammar.masks[self.base] = mask
        return mask

    @property
    def _possible_entries(self) -> list[Entry]:
        """The starts of tokens that are not ruled out by the engine's mask."""
        entries = self._context.grammar.entries or ()
        return [entry for entry in entries if entry.id is None or self._engine_mask[entry.id]]

    def _add_span(self, mask: Mask, before: bytes, table: SpanTable) -> None:
        """Add the tokens that start with `before` and then continue this span."""
        vocabulary = self._context.grammar.vocabulary
        agenda = [(before, self._positions, vocabulary.with_prefix(before))]
        while agenda:
            text, positions, ranks = agenda.pop()
            for byte, after in table.following(positions).items():
                longer = text + bytes([byte])
                low, high = vocabulary.with_prefix(longer, *ranks)
                equal = vocabulary.after_equal(longer, low, high)
                mask[vocabulary.ids_at(low, equal)] = True
                if equal < high:
                    if table.may_end(after):
                        self._add_after_span(mask, longer, equal, high)
                    agenda.append((longer, after, (equal, high)))

    def _add_after_span(self, mask: Mask, text: bytes, low: int, high: int) -> None:
        """Add the tokens of a range of ranks that start with `text` and continue outside after the span."""
        vocabulary = self._context.grammar.vocabulary
        for byte in self._after_span._possible_first_bytes:
            for rank in range(*vocabulary.with_prefix(text + bytes([byte]), low, high)):
                rest = vocabulary.at(rank)[len(text) :]
                if any(True for _ in self._after_span.follow(rest)):
                    mask[vocabulary.ids_at(rank, rank + 1)] = True

    @cached_property
    def _possible_first_bytes(self) -> set[int]:
        """The bytes that may follow outside, and possibly others."""
        grammar, tables = self._context
        found = set(
            np.unique(grammar.vocabulary.first_bytes[self._engine_mask[: len(grammar.vocabulary)]]).tolist()
        )
        for rule, placeholder in enumerate(grammar.ids):
            if self._engine_mask[placeholder]:
                found |= tables[rule].first_bytes
        return found | {entry.text[0] for entry in self._possible_entries}

    def ending(self) -> bytes | None:
        """Return a short suffix that completes a sentence; None if there is none.

        Raises `UnicodeDecodeError` if the text ends within a character outside of a span.
        """
        grammar, tables = self._context
        rest = grammar.completer.shortest_suffix(self.base.decode())
        if rest is None:
            return None
        suffix = rest.encode()
        for rule, table in enumerate(tables):
            suffix = suffix.replace(mark(rule).encode(), table.shortest_rest(None))
        return suffix if self._table is None else self._table.shortest_rest(self._positions) + suffix
