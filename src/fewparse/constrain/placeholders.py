"""A grammar in which each copied rule is a placeholder: one special token of the engine."""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from fewparse.constrain.engine import MAX_PLACEHOLDERS, Limits, compile_grammar, placeholder_id, spell
from fewparse.constrain.preceding import preceding_bytes
from fewparse.grammar.parsing.shortest_suffix import Completer
from fewparse.grammar.rules import Chars, Grammar, Production, Text, trim
from fewparse.vocabulary import Mask, Vocabulary

MAX_ENTRIES = 2_000
FIRST_MARK = 0xFDD0
"""The first of the noncharacters that stand for copied rules where the shortest suffix is searched."""


class Entry(NamedTuple):
    """The start of a token after which a copied rule may begin.

    `ids` spell it; `id` is the longest token with which it starts, None if there is none: where the grammar does
    not allow that token, the copied rule does not begin here.
    """

    rule: int
    text: bytes
    id: int | None
    ids: list[int]


class PlaceholderGrammar:
    """A grammar, compiled with placeholders for the rules `used`; the other rules in `names` derive nothing.

    `entries` is None if there are too many of them, or too many rules: then the grammar is not compiled, and
    cannot be used.
    """

    def __init__(
        self, grammar: Grammar, names: Sequence[str], used: Sequence[str], vocabulary: Vocabulary, limits: Limits
    ) -> None:
        self.vocabulary = vocabulary
        self.ids = [placeholder_id(vocabulary, k) for k in range(len(used))]
        placeholders = {name: ((Text(mark(k)),),) for k, name in enumerate(used)}
        trimmed = trim(grammar.with_rules({**dict.fromkeys(names, ()), **placeholders}))
        self.useless = trimmed.unproductive + trimmed.unreachable
        self.grammar = trimmed.grammar
        self.before = list(preceding_bytes(self.grammar, used).values())
        """The bytes that may precede each copied rule."""
        self.entries = self._entries() if len(used) <= MAX_PLACEHOLDERS else None
        self.masks: dict[bytes, Mask] = {}
        """Masks of the engine after texts with which many outputs start; they may be slow in a large grammar."""
        if self.entries is not None:
            self.initial = compile_grammar(self.grammar, vocabulary, limits, used)

    @cached_property
    def completer(self) -> Completer:
        """Completes prefixes in which marks stand for copied spans."""
        return Completer(without_marks(self.grammar))

    def _entries(self) -> list[Entry] | None:
        """Return the starts of tokens after which a copied rule may begin; None if they are too many."""
        entries: list[Entry] = []
        for rule, before in enumerate(self.before):
            for text in self.vocabulary.proper_prefixes(before):
                ids = spell(text, self.vocabulary)
                if ids is None or len(entries) == MAX_ENTRIES:
                    return None
                prefixes = (self.vocabulary.ids.get(text[:length]) for length in range(len(text), 0, -1))
                first = next((token for token in prefixes if token is not None), None)
                entries.append(Entry(rule, text, first, ids))
        return entries


def mark(rule: int) -> str:
    """Return the character that stands for a span of a copied rule."""
    return chr(FIRST_MARK + rule)


def without_marks(grammar: Grammar) -> Grammar:
    """Return the grammar with the marks removed from all character classes, so that they only stand for spans."""
    marks = Chars(((FIRST_MARK, FIRST_MARK + MAX_PLACEHOLDERS - 1),))

    def outside(production: Production) -> Production:
        return tuple(s.without(marks) if isinstance(s, Chars) else s for s in production)

    return Grammar({name: tuple(map(outside, rules)) for name, rules in grammar.rules.items()}, grammar.start)
