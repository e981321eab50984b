"""Regular expressions of a grammar's terminals: the subset that is plain regular language, read exactly."""

import re
from collections.abc import Callable
from typing import NoReturn

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
LAST_CASED = 0x1E943


class RegexReader:
    """Reads one pattern. `fail(message, offset)` reports a mistake at its place and does not return."""

    def __init__(self, pattern: str, ignore_case: bool, fail: Callable[[str, int], NoReturn]) -> None:
        self._pattern = pattern
        self._ignore_case = ignore_case
        self._fail = fail
        self._at = 0

    def read(self) -> Expression:
        """The whole pattern as an expression."""
        expression = self._choice()
        if self._at < len(self._pattern):
            self._fail("unbalanced )", self._at)
        return expression

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _next(self, wanted: str) -> str:
        char = self._peek()
        if not char:
            self._fail(f"the regular expression ends where {wanted} is expected", self._at)
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
        least, most = int(low), int(high) if high else (None if comma else int(low))
        if max(least, most or 0) > MAX_COUNT or (most is not None and most < least):
            self._fail(f"a count is at most {MAX_COUNT}, and not less than its beginning", start)
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
            self._fail("anchors have no meaning in a grammar: a terminal always matches whole", start)
        if char in "*+?{":
            self._fail(f"nothing to repeat before {char}", start)
        return self._literal(char)

    def _literal(self, char: str) -> Expression:
        cases = either_case(char) if self._ignore_case else {char}
        return Chars.of([(ord(c), ord(c)) for c in cases]) if len(cases) > 1 else Text(char)

    def _group(self, start: int) -> Expression:
        if self._peek() == "?":
            if self._pattern[self._at : self._at + 2] != "?:":
                self._fail("only (...) and (?:...) groups are understood", start)
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
            self._fail(f"\\{char} is not understood here", start)
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
    """The letters of a range that have a case."""
    return [c for c in map(chr, range(ord(low), min(ord(high), LAST_CASED) + 1)) if c.swapcase() != c]


def either_case(*chars: str) -> set[str]:
    """These characters in lower and in upper case, where that is one character."""
    return {case for c in chars for case in (c, c.lower(), c.upper()) if len(case) == 1}
