"""A context-free grammar as a constraint, by llguidance, compiled character by character.

llguidance lexes greedily, so the natural translation of a grammar is not that grammar. Two measures make it
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

from fewparse.constrain.copy_spans import copy_spans
from fewparse.constrain.state import Constraint, State, dead_end
from fewparse.errors import ConstraintError, LimitExceeded
from fewparse.grammar.parsing.shortest_suffix import Completer
from fewparse.grammar.rules import Chars, Grammar, Ref, trim
from fewparse.vocabulary import Mask, Vocabulary

LIMIT_WORDS = ("limit", "max is", "too complex", "fuel", "too many", "too large")


@dataclass(frozen=True)
class Limits:
    """How much a grammar may cost."""

    grammar_size: int = 50_000
    compile_seconds: float = 20.0
    state_items: int = 50_000


class InGrammar(State):
    """A parser state. The engine's matcher is never changed once it is here: advancing copies it."""

    def __init__(self, matcher: llguidance.LLMatcher, vocabulary: Vocabulary) -> None:
        self._matcher = matcher
        self.vocabulary = vocabulary

    @cached_property
    def may_end(self) -> bool:
        """Whether the text so far is a sentence."""
        accepting = bool(self._matcher.is_accepting())
        check(self._matcher)
        return accepting

    def advance(self, piece: bytes) -> State | None:
        """Feed the bytes, as one token where they are one."""
        if not piece:
            return None
        whole = self.vocabulary.ids.get(piece)
        ids = [whole] if whole is not None else spell(piece, self.vocabulary)
        if ids is None:
            return None
        matcher = self._matcher.deep_copy()
        taken = matcher.try_consume_tokens(ids)
        check(matcher)
        return InGrammar(matcher, self.vocabulary) if taken == len(ids) else None

    def mask(self) -> Mask:
        """The engine's mask, without its notion of ending."""
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
    """An engine in error answers as if the output must end: refuse that."""
    if matcher.is_error():
        reason = matcher.get_error().split("\n<state>")[0]
        if reason == "NoExtensionBias":  # its mask came out empty
            raise dead_end()
        if any(word in reason.lower() for word in LIMIT_WORDS):
            raise LimitExceeded(f"the grammar engine reached a limit: {reason}", "Is the grammar very ambiguous?")
        raise ConstraintError(f"the grammar engine failed: {reason}")


def spell(piece: bytes, vocabulary: Vocabulary) -> list[int] | None:
    """A piece as tokens, byte by byte where there are such tokens; None if the vocabulary cannot spell it."""
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


class ContextFree(Constraint):
    """The sentences of a grammar, behind the lead; with `copy`, free text only out of an utterance."""

    def __init__(
        self,
        grammar: Grammar,
        vocabulary: Vocabulary,
        lead: str = "",
        copy: tuple[str, ...] = (),
        utterance: str = "",
        limits: Limits | None = None,
    ) -> None:
        self.vocabulary = vocabulary
        self._limits = limits or Limits()
        if copy:
            grammar = copy_spans(grammar, copy, utterance)
        trimmed = trim(grammar.with_prefix(lead))
        self.dropped = trimmed.unproductive + trimmed.unreachable
        self.grammar = trimmed.grammar
        if not self.grammar.rules:
            raise ConstraintError(
                "the grammar derives no string at all", "Is a rule missing its end of recursion?"
            )
        if self.grammar.size > self._limits.grammar_size:
            raise LimitExceeded(
                f"the grammar has {self.grammar.size} symbols; the limit is {self._limits.grammar_size}",
                "Split it, or use a trie for large sets of names.",
            )
        self._begin = self._compile(to_llguidance(self.grammar))

    def start(self) -> State:
        """The state before the first character, new for each search: no two threads may use one matcher."""
        return InGrammar(self._begin.deep_copy(), self.vocabulary)

    def ending(self, text: bytes) -> bytes | None:
        """The shortest ending that the grammar has, unless the text stops within a character."""
        try:
            said = text.decode()
        except UnicodeDecodeError:
            return super().ending(text)
        rest = self._completer.shortest_suffix(said)
        return None if rest is None else rest.encode()

    @cached_property
    def _completer(self) -> Completer:
        return Completer(self.grammar)

    def _compile(self, text: str) -> llguidance.LLMatcher:
        """Compile in a thread of its own, so that a hanging compilation is an error and not a hang."""
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
            except BaseException as error:  # a panic of the engine is no Exception
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
    """The grammar in the engine's own dialect, one character a terminal."""
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
                    symbols.append(spelt_out(symbol.text))
                    characters.update(symbol.text)
            alternatives.append(" ".join(symbols) or '""')
        lines.append(f"{names[name]}: " + "\n  | ".join(alternatives))
    lines += [f"{name}: /{character_class(chars)}/" for chars, name in classes.items()]
    lines += [f"{spelt_out(c)}: /{character_class(Chars(((ord(c), ord(c)),)))}/" for c in sorted(characters)]
    return '%llguidance {"no_forcing": true}\n' + "\n".join(lines) + "\n"


@lru_cache(maxsize=10_000)
def spelt_out(text: str) -> str:
    """The terminals of a text; a grammar is compiled anew for each utterance that is copied from."""
    return " ".join(f"T{ord(char)}" for char in text)


def character_class(chars: Chars) -> str:
    """A class as the engine's regular expressions write it."""

    def point(code: int) -> str:
        return f"\\x{{{code:X}}}"

    return "[" + "".join(point(a) if a == b else f"{point(a)}-{point(b)}" for a, b in chars.ranges) + "]"


class TokenTable:
    """A vocabulary as the engine's tokenizer wrapper wants to see it."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._ids: Mapping[bytes, int] = vocabulary.ids
        # The engine needs an end token; ours is a further id that is never fed and never masked in.
        self.tokens = [token or b"\xff<special>" for token in vocabulary.tokens] + [b"\xff<end>"]
        self.eos_token_id = len(vocabulary)
        self.bos_token_id = None
        self.special_token_ids = [i for i, token in enumerate(vocabulary.tokens) if not token]
        self.special_token_ids.append(self.eos_token_id)

    def __call__(self, text: str) -> list[int]:
        """Byte tokens; the engine asks only for its own messages."""
        return [self._ids[bytes([byte])] for byte in text.encode() if bytes([byte]) in self._ids]


_tokenizers: WeakKeyDictionary[Vocabulary, llguidance.LLTokenizer] = WeakKeyDictionary()


def engine_tokenizer(vocabulary: Vocabulary) -> llguidance.LLTokenizer:
    """The engine's form of a vocabulary, made once a vocabulary."""
    if vocabulary not in _tokenizers:
        wrapper = llguidance.TokenizerWrapper(TokenTable(vocabulary))
        _tokenizers[vocabulary] = llguidance.LLTokenizer(wrapper)
    return _tokenizers[vocabulary]
