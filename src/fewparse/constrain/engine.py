"""Compile grammars with llguidance, within limits on size, time and stack.

llguidance lexes greedily, so a direct translation of a grammar accepts another language. Two measures make it
exact: every literal becomes single-character terminals, and forced bytes are switched off in the engine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import llguidance

from fewparse.constrain.isolation import check_in_child
from fewparse.constrain.state import dead_end
from fewparse.errors import ConstraintError, LimitExceeded
from fewparse.grammar.rules import Chars, Grammar, Ref, Text, nullable_names
from fewparse.threads import start_with_stack
from fewparse.vocabulary import Vocabulary

LIMIT_WORDS = ("limit", "max is", "too complex", "fuel", "too many", "too large", "u16::max")
NO_FORCING = '%llguidance {"no_forcing": true}\n'
MAX_PLACEHOLDERS = 16
# The engine recurses along chains of rules. It was measured to need up to 4 KB of stack per rule, and a grammar
# has at most `Limits.rules` of them in a chain: 200 MB. Only the part that is used takes up memory.
STACK_BYTES = 256 << 20


@dataclass(frozen=True)
class Limits:
    """Limits on the size of a grammar, its compile time and its parser states.

    The time of a step grows with the square of the number of symbols in one production that may be empty.

    With `isolate`, a child process with limits on memory and time compiles the grammar first, so that a grammar
    that breaks the engine is an error: for grammars that are not trusted.
    """

    grammar_size: int = 1_000_000
    rules: int = 60_000
    compile_seconds: float = 20.0
    state_items: int = 50_000
    nullable_symbols: int = 2_000
    isolate: bool = False


def compile_grammar(
    grammar: Grammar, vocabulary: Vocabulary, limits: Limits, placeholders: Sequence[str] = ()
) -> llguidance.LLMatcher:
    """Compile a trimmed grammar; each rule of `placeholders` becomes one special token, see `placeholder_id`.

    Raises `LimitExceeded` for a grammar that is too large or takes too long, `ConstraintError` for other failures.
    """
    if not grammar.rules:
        raise ConstraintError("the grammar derives no string at all", "Check that every recursion can end.")
    check_size(grammar, limits)
    rules = to_llguidance(grammar, {name: placeholder_id(vocabulary, k) for k, name in enumerate(placeholders)})
    text = NO_FORCING + rules
    if limits.isolate:
        check_in_child(text, len(vocabulary), limits.compile_seconds)
    return compile_text(text, vocabulary, limits)


def check_size(grammar: Grammar, limits: Limits) -> None:
    """Raise `LimitExceeded` for a grammar that is too large."""
    if grammar.size > limits.grammar_size:
        raise LimitExceeded(
            f"the grammar has {grammar.size} symbols; the limit is {limits.grammar_size}",
            "Split it, or use a trie for large sets of names. Spans of a long utterance count too.",
        )
    if len(grammar.rules) > limits.rules:
        raise LimitExceeded(
            f"the grammar has {len(grammar.rules)} rules; the limit is {limits.rules}",
            "Write rules with more alternatives, or use a trie for large sets of names.",
        )
    nullable = nullable_names(grammar)
    for name, productions in grammar.rules.items() if nullable else ():
        count = max((sum(isinstance(s, Ref) and s.name in nullable for s in p) for p in productions), default=0)
        if count > limits.nullable_symbols:
            raise LimitExceeded(
                f"a production of `{name}` has {count} symbols that may be empty; the limit is "
                f"{limits.nullable_symbols}",
                "Write the repetition as a rule that refers to itself.",
            )


def compile_text(text: str, vocabulary: Vocabulary, limits: Limits) -> llguidance.LLMatcher:
    """Compile in a separate thread with a large stack, so that a grammar that takes too long becomes an error."""
    outcome: list[Any] = []

    def work() -> None:
        try:
            engine_limits = llguidance.LLParserLimits(
                max_items_in_row=limits.state_items,
                step_max_items=limits.state_items * 4,
                initial_lexer_fuel=10_000_000,
                step_lexer_fuel=2_000_000,
            )
            tokenizer = engine_tokenizer(vocabulary)
            outcome.append(llguidance.LLMatcher(tokenizer, text, limits=engine_limits, log_level=0))
        except BaseException as error:  # a panic of the engine is not an Exception
            outcome.append(error)

    try:
        start_with_stack(work, STACK_BYTES).join(limits.compile_seconds)
    except RuntimeError as error:
        raise LimitExceeded(
            f"no thread with {STACK_BYTES >> 20} MB of stack could be started to compile the grammar: {error}",
            "Raise the limit on memory of this process (ulimit -v).",
        ) from None
    if not outcome:
        raise LimitExceeded(f"the grammar did not compile within {limits.compile_seconds} seconds")
    if isinstance(outcome[0], BaseException):
        raise engine_error(str(outcome[0]), "could not compile the grammar")
    matcher: llguidance.LLMatcher = outcome[0]
    check(matcher)
    return matcher


def check(matcher: llguidance.LLMatcher) -> None:
    """Raise the error of an engine that failed; its results would otherwise mean that the output must end."""
    if matcher.is_error():
        reason = matcher.get_error().split("\n<state>")[0]
        if reason == "NoExtensionBias":  # the mask is empty
            raise dead_end()
        raise engine_error(reason, "failed")


def engine_error(reason: str, what: str) -> ConstraintError:
    """Return the error for a failure of the engine, `LimitExceeded` if it reached one of its limits."""
    if any(word in reason.lower() for word in LIMIT_WORDS):
        return LimitExceeded(
            f"the grammar engine reached a limit: {reason}", "The grammar may be too large or very ambiguous."
        )
    return ConstraintError(f"the grammar engine {what}: {reason}")


def spell(piece: bytes, vocabulary: Vocabulary) -> list[int] | None:
    """Return token ids that spell a piece, single bytes where possible; None if the vocabulary cannot spell it."""
    last: dict[int, tuple[int, int]] = {0: (0, 0)}
    for end in range(1, len(piece) + 1):
        for start in range(end - 1, max(-1, end - 1 - vocabulary.longest), -1):
            token = vocabulary.ids.get(piece[start:end]) if start in last else None
            if token is not None:
                last[end] = (start, token)
                break
    ids, end = [], len(piece)
    while end in last and end > 0:
        end, token = last[end]
        ids.append(token)
    return ids[::-1] if end == 0 else None


def to_llguidance(grammar: Grammar, placeholders: Mapping[str, int] | None = None) -> str:
    """Write the trimmed grammar in llguidance's notation, which is like Lark's, one character per terminal.

    `placeholders` are rules that are replaced by one special token each, given by its id.
    """
    names = {name: f"r{i}" for i, name in enumerate(grammar.rules)}
    names[grammar.start] = "start"
    classes: dict[Chars, str] = {}
    characters: set[str] = set()
    lines = []
    for name, productions in grammar.rules.items():
        if placeholders and name in placeholders:
            lines.append(f"{names[name]}: <[{placeholders[name]}]>")
            continue
        alternatives = []
        for production in productions:
            symbols = []
            for symbol in production:
                if isinstance(symbol, Ref):
                    symbols.append(names[symbol.name])
                elif isinstance(symbol, Chars):
                    symbols.append(classes.setdefault(symbol, f"c{len(classes)}"))
                else:
                    symbols.append(terminals(symbol))
                    characters.update(symbol.text)
            alternatives.append(" ".join(symbols) or '""')
        lines.append(f"{names[name]}: " + "\n  | ".join(alternatives))
    named = [(name, chars) for chars, name in classes.items()]
    named += [(terminals(Text(char)), Chars(((ord(char), ord(char)),))) for char in sorted(characters)]
    for name, chars in named:
        # The engine has at most 65,535 symbols. Each occurrence of a terminal is one of them, so that terminals
        # are written once, as the only part of a rule: the engine replaces the rule by its terminal.
        lines += [f"{name}: {name.upper()}", f"{name.upper()}: /{character_class(chars)}/"]
    return "\n".join(lines) + "\n"


@lru_cache(maxsize=10_000)
def terminals(literal: Text) -> str:
    """Return the terminals of a literal, one per character."""
    return " ".join(f"t{ord(char)}" for char in literal.text)


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
        self.tokens += [b"\xff<placeholder>"] * MAX_PLACEHOLDERS
        self.bos_token_id = None
        self.special_token_ids = [i for i, token in enumerate(vocabulary.tokens) if not token]
        self.special_token_ids += range(self.eos_token_id, len(self.tokens))

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


def placeholder_id(vocabulary: Vocabulary, k: int) -> int:
    """Return the id of the special token of the k-th placeholder; it follows the vocabulary and its end token."""
    return len(vocabulary) + 1 + k
