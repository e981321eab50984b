"""A context-free grammar as a constraint, by llguidance, compiled to single-character terminals.

llguidance lexes greedily, so a direct translation of a grammar accepts another language. Two measures make it
exact: every literal becomes single-character terminals, and forced bytes are switched off in the engine.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import llguidance
import numpy as np

from fewparse.constrain.state import Constraint, State, dead_end
from fewparse.errors import ConstraintError, LimitExceeded
from fewparse.grammar.parsing.shortest_suffix import Completer
from fewparse.grammar.rules import Chars, Grammar, Ref, trim
from fewparse.vocabulary import Mask, Vocabulary

LIMIT_WORDS = ("limit", "max is", "too complex", "fuel", "too many", "too large")


@dataclass(frozen=True)
class Limits:
    """Limits on the size of a grammar, its compile time and its parser states."""

    grammar_size: int = 50_000
    compile_seconds: float = 20.0
    state_items: int = 50_000


class CfgState(State):
    """A parser state. The engine's matcher is never modified: advancing copies it."""

    def __init__(self, matcher: llguidance.LLMatcher, vocabulary: Vocabulary) -> None:
        self._matcher = matcher
        self.vocabulary = vocabulary

    @cached_property
    def may_end(self) -> bool:
        """Whether the prefix is a sentence of the grammar."""
        accepting = bool(self._matcher.is_accepting())
        check(self._matcher)
        return accepting

    def advance(self, piece: bytes) -> State | None:
        """Consume the bytes, as one token if the vocabulary has it."""
        if not piece:
            return None
        whole = self.vocabulary.ids.get(piece)
        ids = [whole] if whole is not None else spell(piece, self.vocabulary)
        if ids is None:
            return None
        matcher = self._matcher.deep_copy()
        consumed = matcher.try_consume_tokens(ids)
        check(matcher)
        return CfgState(matcher, self.vocabulary) if consumed == len(ids) else None

    def mask(self) -> Mask:
        """Return the engine's mask without its end token."""
        return self._mask

    @cached_property
    def _mask(self) -> Mask:
        if self._matcher.is_stopped():
            check(self._matcher)
            return np.zeros(len(self.vocabulary), dtype=np.bool_)
        packed = np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8)
        check(self._matcher)
        bits = np.unpackbits(packed, count=len(self.vocabulary), bitorder="little").view(np.bool_)
        return bits & self.vocabulary.is_text


def check(matcher: llguidance.LLMatcher) -> None:
    """Raise the error of an engine that failed; its results would otherwise mean that the output must end."""
    if matcher.is_error():
        reason = matcher.get_error().split("\n<state>")[0]
        if reason == "NoExtensionBias":  # the mask is empty
            raise dead_end()
        if any(word in reason.lower() for word in LIMIT_WORDS):
            raise LimitExceeded(
                f"the grammar engine reached a limit: {reason}",
                "The grammar may be very ambiguous.",
            )
        raise ConstraintError(f"the grammar engine failed: {reason}")


def spell(piece: bytes, vocabulary: Vocabulary) -> list[int] | None:
    """Return token ids that spell a piece, single bytes where possible; None if the vocabulary cannot spell it."""
    last: dict[int, tuple[int, int]] = {0: (0, 0)}
    for end in range(1, len(piece) + 1):
        for start in range(end - 1, -1, -1):
            token = vocabulary.ids.get(piece[start:end]) if start in last else None
            if token is not None:
                last[end] = (start, token)
                break
    ids, end = [], len(piece)
    while end in last and end > 0:
        end, token = last[end]
        ids.append(token)
    return ids[::-1] if end == 0 else None


class CfgConstraint(Constraint):
    """The sentences of a grammar."""

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary, limits: Limits | None = None) -> None:
        self.vocabulary = vocabulary
        self._limits = limits or Limits()
        trimmed = trim(grammar)
        self.useless = trimmed.unproductive + trimmed.unreachable
        self.grammar = trimmed.grammar
        if not self.grammar.rules:
            raise ConstraintError(
                "the grammar derives no string at all",
                "Check that every recursion can end.",
            )
        if self.grammar.size > self._limits.grammar_size:
            raise LimitExceeded(
                f"the grammar has {self.grammar.size} symbols; the limit is {self._limits.grammar_size}",
                "Split it, or use a trie for large sets of names.",
            )
        self._initial = self._compile(to_llguidance(self.grammar))

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

    def _compile(self, text: str) -> llguidance.LLMatcher:
        """Compile in a separate thread, so that a compilation that takes too long becomes an error."""
        outcome: list[Any] = []

        def work() -> None:
            try:
                limits = llguidance.LLParserLimits(
                    max_items_in_row=self._limits.state_items,
                    step_max_items=self._limits.state_items * 4,
                    initial_lexer_fuel=10_000_000,
                    step_lexer_fuel=2_000_000,
                )
                outcome.append(
                    llguidance.LLMatcher(engine_tokenizer(self.vocabulary), text, limits=limits, log_level=0)
                )
            except BaseException as error:  # a panic of the engine is not an Exception
                outcome.append(error)

        worker = threading.Thread(target=work, daemon=True)
        worker.start()
        worker.join(self._limits.compile_seconds)
        if not outcome:
            raise LimitExceeded(f"the grammar did not compile within {self._limits.compile_seconds} seconds")
        if isinstance(outcome[0], BaseException):
            raise ConstraintError(f"the grammar engine could not compile the grammar: {outcome[0]}")
        matcher: llguidance.LLMatcher = outcome[0]
        check(matcher)
        return matcher


def to_llguidance(grammar: Grammar) -> str:
    """Write the grammar in llguidance's notation, one character per terminal."""
    names = {name: f"r{i}" for i, name in enumerate(grammar.rules)}
    names[grammar.start] = "start"
    classes: dict[Chars, str] = {}
    characters: set[str] = set()
    lines = []
    for name, productions in grammar.rules.items():
        alternatives = []
        for production in productions:
            symbols = []
            for symbol in production:
                if isinstance(symbol, Ref):
                    symbols.append(names[symbol.name])
                elif isinstance(symbol, Chars):
                    symbols.append(classes.setdefault(symbol, f"C{len(classes)}"))
                else:
                    symbols.append(terminals(symbol.text))
                    characters.update(symbol.text)
            alternatives.append(" ".join(symbols) or '""')
        lines.append(f"{names[name]}: " + "\n  | ".join(alternatives))
    lines += [f"{name}: /{character_class(chars)}/" for chars, name in classes.items()]
    lines += [f"{terminals(c)}: /{character_class(Chars(((ord(c), ord(c)),)))}/" for c in sorted(characters)]
    return '%llguidance {"no_forcing": true}\n' + "\n".join(lines) + "\n"


@lru_cache(maxsize=10_000)
def terminals(text: str) -> str:
    """Return the terminals of a text; cached, because copy spans recompile the grammar for every utterance."""
    return " ".join(f"T{ord(char)}" for char in text)


def character_class(chars: Chars) -> str:
    """Write a character class as a regular expression of the engine."""

    def point(code: int) -> str:
        return f"\\x{{{code:X}}}"

    return "[" + "".join(point(a) if a == b else f"{point(a)}-{point(b)}" for a, b in chars.ranges) + "]"


class TokenTable:
    """A vocabulary in the form that llguidance's tokenizer wrapper expects."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._ids: Mapping[bytes, int] = vocabulary.ids
        # The engine needs an end token: an extra id that is never consumed and never in a mask.
        self.tokens = [token or b"\xff<special>" for token in vocabulary.tokens] + [b"\xff<end>"]
        self.eos_token_id = len(vocabulary)
        self.bos_token_id = None
        self.special_token_ids = [i for i, token in enumerate(vocabulary.tokens) if not token]
        self.special_token_ids.append(self.eos_token_id)

    def __call__(self, text: str) -> list[int]:
        """Tokenise into bytes; the engine only uses this for its messages."""
        return [self._ids[bytes([byte])] for byte in text.encode() if bytes([byte]) in self._ids]


_tokenizers: WeakKeyDictionary[Vocabulary, llguidance.LLTokenizer] = WeakKeyDictionary()


def engine_tokenizer(vocabulary: Vocabulary) -> llguidance.LLTokenizer:
    """Return the engine's tokenizer for a vocabulary, built once per vocabulary."""
    if vocabulary not in _tokenizers:
        wrapper = llguidance.TokenizerWrapper(TokenTable(vocabulary))
        _tokenizers[vocabulary] = llguidance.LLTokenizer(wrapper)
    return _tokenizers[vocabulary]
