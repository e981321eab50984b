"""Regular expressions in grammars: as expressions (EBNF) and as character classes (`.scfg`).

RegexReader reads the part of Python's `re` syntax that has an exact counterpart in a grammar: no anchors,
lookaround or backreferences. `character_class` takes any pattern of the `regex` module and tests it on each
character.
"""

import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import chain
from math import prod
from typing import NoReturn

import regex

from fewparse.errors import LimitExceeded
from fewparse.grammar.readers.expressions import Choice, Expression, Repeat, Sequence
from fewparse.grammar.rules import LAST_CODE_POINT, SURROGATES, Chars, Text

CLASSES = {
    "d": Chars.of([(ord("0"), ord("9"))]),
    "s": Chars.of([(ord(c), ord(c)) for c in " \t\n\r\f\v"]),
    "w": Chars.of([(ord("a"), ord("z")), (ord("A"), ord("Z")), (ord("0"), ord("9")), (ord("_"), ord("_"))]),
}
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "0": "\0"}
HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
QUANTIFIERS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
MAX_COUNT = 10_000
MAX_DIGITS = 9
MAX_SLOW_PATTERNS = 16
LAST_CASED = 0x1E943
PLAIN_CHARACTER = re.compile(r"[^\\.^$*+?{}\[\]|()]", re.DOTALL)
PLAIN_CLASS = re.compile(r"\[\^?+(?:\\[^\w\s]|\\x[0-9A-Fa-f]{2}|([^\\\[\]])(?!\1))++\]", re.DOTALL)
# A class whose members are plain characters and escapes, an escape for a class, or a property. It matches one
# character, whatever is before or after it.
ONE_CLASS = re.compile(
    r"""\[\^?+(?:\\[^\w\s]|\\[dDwWsSnrtfv]|([^\\\[\]])(?!\1))++\]|\\[dDwWsS]|\\[pP]\{\^?\w++\}""", re.DOTALL
)
COUNTS = re.compile(r"\{[\d\s,]*\}", re.ASCII)
SUBPATTERN_CALL = re.compile(r"\(\?(?:R|&|P>|[+-]?\d)")
MAX_COUNT_PRODUCT = 1_000
MAX_PATTERN_LENGTH = 2_000
TIMED_CHARACTERS = 128
TIMEOUT_SECONDS = 1.0


class RegexReader:
    """Reads one pattern. `fail(message, offset)` reports a mistake at an offset into the pattern and raises."""

    def __init__(self, pattern: str, ignore_case: bool, fail: Callable[[str, int], NoReturn]) -> None:
        self._pattern = pattern
        self._ignore_case = ignore_case
        self._fail = fail
        self._at = 0

    def read(self) -> Expression:
        """Return the whole pattern as an expression."""
        expression = self._choice()
        if self._at < len(self._pattern):
            self._fail("unbalanced )", self._at)
        return expression

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _next(self, expected: str) -> str:
        char = self._peek()
        if not char:
            self._fail(f"the regular expression ends where {expected} is expected", self._at)
        self._at += 1
        return char

    def _choice(self) -> Expression:
        options = [self._sequence()]
        while self._peek() == "|":
            self._at += 1
            options.append(self._sequence())
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self) -> Expression:
        parts = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._quantified())
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _quantified(self) -> Expression:
        atom = self._atom()
        while (char := self._peek()) and char in "*+?{":
            start = self._at
            self._at += 1
            low, high = self._counts(start) if char == "{" else QUANTIFIERS[char]
            if self._peek() and self._peek() in "?+":
                self._fail("lazy and possessive quantifiers have no meaning in a grammar", self._at)
            atom = Repeat(atom, low, high)
        return atom

    def _counts(self, start: int) -> tuple[int, int | None]:
        close = self._pattern.find("}", start)
        low, comma, high = self._pattern[start + 1 : max(close, start)].partition(",")
        if close < 0 or not low.isdecimal() or not (high.isdecimal() or (comma and not high) or not comma):
            self._fail("a count is written {3}, {3,} or {3,5}; a brace itself is \\{", start)
        self._at = close + 1
        if max(len(low), len(high)) > MAX_DIGITS:
            self._fail(f"a count is at most {MAX_COUNT}", start)
        least, most = int(low), int(high) if high else (None if comma else int(low))
        if max(least, most or 0) > MAX_COUNT or (most is not None and most < least):
            self._fail(f"a count is at most {MAX_COUNT}, and its end is not less than its start", start)
        return least, most

    def _atom(self) -> Expression:
        start = self._at
        char = self._next("a character")
        if char == "(":
            return self._group(start)
        if char == "[":
            return self._set(start)
        if char == ".":
            return Chars.of([(ord("\n"), ord("\n"))]).negated()
        if char == "\\":
            escaped = self._escape()
            return escaped if isinstance(escaped, Chars) else self._literal(escaped)
        if char in "^$":
            self._fail("anchors have no meaning in a grammar: a terminal always matches completely", start)
        if char in "*+?{":
            self._fail(f"nothing to repeat before {char}", start)
        return self._literal(char)

    def _literal(self, char: str) -> Expression:
        return either_case_of(char) if self._ignore_case else Text(char)

    def _group(self, start: int) -> Expression:
        if self._peek() == "?":
            if self._pattern[self._at : self._at + 2] != "?:":
                self._fail("only (...) and (?:...) groups are supported", start)
            self._at += 2
        inner = self._choice()
        if self._peek() != ")":
            self._fail("this group is never closed", start)
        self._at += 1
        return inner

    def _escape(self) -> str | Chars:
        start = self._at
        char = self._next("an escaped character")
        if char.lower() in CLASSES:
            return CLASSES[char] if char in CLASSES else CLASSES[char.lower()].negated()
        if char in HEX_DIGITS:
            digits = re.compile(f"[0-9A-Fa-f]{{{HEX_DIGITS[char]}}}").match(self._pattern, self._at)
            code = int(digits.group(), 16) if digits else LAST_CODE_POINT + 1
            if code > LAST_CODE_POINT or chr(code) in SURROGATES:
                self._fail(f"\\{char} needs {HEX_DIGITS[char]} hexadecimal digits of a character", start)
            self._at += HEX_DIGITS[char]
            return chr(code)
        if char in ESCAPES:
            return ESCAPES[char]
        if char.isalnum():
            self._fail(f"\\{char} is not supported here", start)
        return char

    def _set(self, start: int) -> Chars:
        negated = self._peek() == "^"
        self._at += negated
        ranges: list[tuple[int, int]] = []
        first = True
        while first or self._peek() != "]":
            first = False
            if not self._peek():
                self._fail("this character class is never closed", start)
            low = self._member()
            if isinstance(low, Chars):
                ranges += low.ranges
                continue
            high = low
            if self._peek() == "-" and self._pattern[self._at + 1 : self._at + 2] not in ("]", ""):
                self._at += 1
                end = self._member()
                if isinstance(end, Chars) or end < low:
                    self._fail("this range runs backwards", self._at)
                high = end
            ranges.append((ord(low), ord(high)))
            if self._ignore_case:
                ranges += [(ord(c), ord(c)) for c in either_case(*letters(low, high))]
        self._at += 1
        chars = Chars.of(ranges)
        return chars.negated() if negated else chars

    def _member(self) -> str | Chars:
        char = self._next("a character")
        return self._escape() if char == "\\" else char


def letters(low: str, high: str) -> list[str]:
    """Return the letters of a range that have an upper and a lower case."""
    return [c for c in map(chr, range(ord(low), min(ord(high), LAST_CASED) + 1)) if c.swapcase() != c]


def either_case(*chars: str) -> set[str]:
    """Return these characters in lower and upper case, as far as that is one character."""
    return {case for c in chars for case in (c, c.lower(), c.upper()) if len(case) == 1}


@lru_cache(maxsize=10_000)
def either_case_of(char: str) -> Chars | Text:
    """Return a character in lower and upper case, as a class if these differ."""
    cases = either_case(char)
    return Chars.of([(ord(c), ord(c)) for c in cases]) if len(cases) > 1 else Text(char)


def character_class(pattern: str, fail: Callable[[str, int], NoReturn]) -> Chars:
    """Return the characters `c` for which `regex.match(pattern, c)` succeeds.

    So `a?` is any character, since it also matches the empty string, and `ab` is none. `fail(message, offset)`
    reports a mistake and raises. Raises LimitExceeded if the pattern is too long or too slow.
    """
    if PLAIN_CHARACTER.fullmatch(pattern):
        return Chars.of([(ord(pattern), ord(pattern))]).without_surrogates()
    if PLAIN_CLASS.fullmatch(pattern):
        read = RegexReader(pattern, False, fail).read()
        assert isinstance(read, Chars)
        return read.without_surrogates()
    if len(pattern) > MAX_PATTERN_LENGTH:
        message = f"a regular expression for one character has {len(pattern):,} characters"
        raise LimitExceeded(
            message, f"At most {MAX_PATTERN_LENGTH:,} are allowed, unless it is a plain class like [a-z]."
        )
    check_cost(pattern, fail)
    try:
        return (class_characters if ONE_CLASS.fullmatch(pattern) else matching_characters)(pattern)
    except regex.error as error:
        fail(f"the regular expression is wrong: {error.msg}", error.pos or 0)
    except (RecursionError, MemoryError, OverflowError, ValueError):
        fail("the regular expression is too complex", 0)
    except TimeoutError:
        raise LimitExceeded(
            "a regular expression takes too long to match one character", f"Simplify /{pattern[:60]}/."
        ) from None


class CharacterClasses:
    """The character classes of one grammar; few of them may take time, since they are tested on each character."""

    def __init__(self) -> None:
        self._slow: set[str] = set()

    def read(self, pattern: str, fail: Callable[[str, int], NoReturn]) -> Chars:
        """Return `character_class(pattern, fail)`; raise LimitExceeded if too many patterns are not plain ones."""
        if not any(kind.fullmatch(pattern) for kind in (PLAIN_CHARACTER, PLAIN_CLASS, ONE_CLASS)):
            self._slow.add(pattern)
            if len(self._slow) > MAX_SLOW_PATTERNS:
                message = f"more than {MAX_SLOW_PATTERNS} regular expressions are not plain character classes"
                raise LimitExceeded(message, f"Write /{pattern[:60]}/ as a class, such as [a-z], or as rules.")
        return character_class(pattern, fail)


def check_cost(pattern: str, fail: Callable[[str, int], NoReturn]) -> None:
    """Reject large counts and recursion: they can exhaust memory before the timeout takes effect."""
    counts = [int(count) for braces in COUNTS.findall(pattern) for count in re.findall(r"\d+", braces)]
    if prod(max(count, 1) for count in counts) > MAX_COUNT_PRODUCT:
        fail("the counts of the regular expression are too large", pattern.index("{"))
    if call := SUBPATTERN_CALL.search(pattern):
        fail("a regular expression that calls its own parts is not supported", call.start())


@lru_cache(maxsize=1_000)
def matching_characters(pattern: str) -> Chars:
    """Match the pattern against every character; the first few have a timeout, which would slow down all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        match = regex.compile(pattern, cache_pattern=False).match
    for code in range(TIMED_CHARACTERS):
        match(chr(code), timeout=TIMEOUT_SECONDS)
    return Chars.of(runs(filter(match, all_characters())))


@lru_cache(maxsize=1_000)
def class_characters(pattern: str) -> Chars:
    """Return the characters of a pattern that is one class, by a single search in all characters."""
    regex.compile(pattern, cache_pattern=False)  # for errors with the right offset
    matches = regex.compile(f"(?:{pattern})++").finditer(all_characters())
    return Chars.of((ord(match[0][0]), ord(match[0][-1])) for match in matches).without_surrogates()


def runs(characters: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of consecutive characters among sorted ones."""
    first, last = -1, -2
    for code in map(ord, characters):
        if code != last + 1:
            if first >= 0:
                yield first, last
            first = code
        last = code
    if first >= 0:
        yield first, last


@lru_cache(maxsize=1)
def all_characters() -> str:
    """Return all characters in order."""
    first_surrogate, last_surrogate = SURROGATES.ranges[0]
    return "".join(map(chr, chain(range(first_surrogate), range(last_surrogate + 1, LAST_CODE_POINT + 1))))
