r"""Regular expressions of JSON Schemas, rewritten for the engine.

JSON Schema has patterns of ECMAScript, `jsonschema` reads them as Python's, and the engine as Rust's; the three
differ in classes such as \w, in what a dot and a dollar match, and in the syntax of sets. A pattern is parsed by
Python's own parser and written with explicit code points. Where ECMAScript and Python differ in a class, the
characters of both are allowed, so that the text matches for both.
"""

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from re import _constants as op
from re import _parser
from typing import Any, NamedTuple

from fewparse.grammar.readers.regex import all_characters
from fewparse.grammar.rules import LAST_CODE_POINT, Chars

ANYTHING = "(?s:.*)"
MAX_ALTERNATIVES = 256
MAX_LENGTH = 10_000
MAX_COUNT = 10_000
Item = tuple[Any, Any]
"""An operation of Python's parser and its arguments."""

REFUSED = {
    op.ASSERT: "lookahead and lookbehind",
    op.ASSERT_NOT: "lookahead and lookbehind",
    op.GROUPREF: "references to groups",
    op.GROUPREF_EXISTS: "references to groups",
    op.ATOMIC_GROUP: "atomic groups",
    op.POSSESSIVE_REPEAT: "possessive quantifiers",
    op.AT: "word boundaries, and anchors inside of the pattern,",
}
BEGINNINGS = (op.AT_BEGINNING, op.AT_BEGINNING_STRING)
ENDS = (op.AT_END, op.AT_END_STRING)
CHARACTERS = (op.LITERAL, op.NOT_LITERAL, op.ANY, op.IN)
UNWRITABLE = Chars.of([(0, 7), (0xB, 0xB), (0xE, 0x1F), (0x7F, 0x7F)])
r"""Control characters that JSON texts could only have as \u escapes, which are never generated."""
LINE_BREAKS = "\n\r\u2028\u2029"
ASCII_CLASSES = {"d": "0-9", "w": "0-9A-Za-z_"}
ECMA_SPACES = "\t\n\v\f\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"


class PatternError(ValueError):
    """A pattern that is invalid, or that the engine cannot enforce; `at` is the offset of the mistake."""

    def __init__(self, message: str, at: int | None = None) -> None:
        super().__init__(message)
        self.message, self.at = message, at


class Category(NamedTuple):
    r"""The characters of a class such as \w: those of both Python and ECMAScript, and those of either."""

    both: Chars
    either: Chars

    def negated(self) -> "Category":
        """Return the complement."""
        return Category(self.either.negated(), self.both.negated())


def to_engine(pattern: str) -> str:
    """Return a pattern of the engine that matches whole texts in which a pattern of a schema is found.

    Raises `PatternError` if the pattern is not valid, or not regular.
    """
    tree, flags = parse(pattern)
    return Writer(flags).whole(tree)


def parse(pattern: str) -> tuple[list[Item], int]:
    """Return a pattern as Python's parser reads it, and its flags; raise `PatternError` if it is not valid."""
    if len(pattern) > MAX_LENGTH:
        raise PatternError(f"it has more than {MAX_LENGTH:,} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)  # cached, so that `jsonschema` shows no warnings later
            tree = _parser.parse(pattern)
        check_counts(tree)
    except re.error as error:
        raise PatternError(f"it is not a valid regular expression: {error.msg}", error.pos) from None
    except (RecursionError, OverflowError):
        raise PatternError("it is too complex") from None
    return list(tree), tree.state.flags


def check_counts(items: Iterable[Item], factor: int = 1) -> None:
    """Raise `PatternError` if nested repetitions together repeat something too often."""
    for operation, value in items:
        if operation in (op.MAX_REPEAT, op.MIN_REPEAT):
            low, high, inner = value
            times = factor * max(1, low if high is op.MAXREPEAT else high)
            if times > MAX_COUNT:
                raise PatternError(f"it repeats something more than {MAX_COUNT:,} times")
            check_counts(inner, times)
        elif operation in (op.SUBPATTERN, op.BRANCH):
            for branch in [value[3]] if operation is op.SUBPATTERN else value[1]:
                check_counts(branch, factor)


def short_matches(pattern: str) -> list[str]:
    """Return short texts in which a valid pattern is found, one for each of its alternatives."""
    tree, flags = parse(pattern)
    writer = Writer(flags)
    branches = alternatives(tree[0]) if len(tree) == 1 and tree[0][0] is op.BRANCH else [tree]
    return [_shortest(branch, writer) for branch in branches]


def _shortest(items: Iterable[Item], writer: "Writer") -> str:
    found = []
    for operation, value in items:
        if operation in CHARACTERS:
            found.append(sample(writer.characters(operation, value)))
        elif operation in (op.MAX_REPEAT, op.MIN_REPEAT):
            found.append(_shortest(value[2], writer) * value[0])
        elif operation is op.BRANCH:
            found.append(min((_shortest(branch, writer) for branch in value[1]), key=len))
        elif operation is op.SUBPATTERN:
            found.append(_shortest(value[3], writer))
    return "".join(found)


def sample(chars: Chars) -> str:
    """Return a character of a class, a letter or digit if there is one; empty if the class is empty."""
    usual = next((char for char in "a0A-" if char in chars), "")
    return usual or "".join(chr(low) for low, _ in chars.ranges[:1])


class Writer:
    r"""Writes a parsed pattern for the engine; `flags` are its global flags.

    With `either`, classes such as \w have the characters of Python or ECMAScript, otherwise those of both.
    """

    def __init__(self, flags: int, either: bool = False) -> None:
        if flags & (re.MULTILINE | re.LOCALE):
            raise PatternError("the flags `m` and `L` cannot be enforced")
        self._flags = flags
        self._either = either

    def whole(self, tree: list[Item]) -> str:
        """Write a pattern that is searched as one that matches the whole text."""
        written = [
            ("" if at_start else ANYTHING) + self._sequence(items) + ("" if at_end else ANYTHING)
            for items, at_start, at_end in self.searched(tree)
        ]
        return f"^(?:{'|'.join(dict.fromkeys(written))})$"

    def searched(self, tree: list[Item]) -> Iterator[tuple[list[Item], bool, bool]]:
        """Yield alternatives of a pattern without anchors, and whether each is at the start and at the end.

        Raises `PatternError` for a pattern that cannot be written.
        """
        for items in self._anchored(tree):
            first, last = 0, len(items)
            while first < last and items[first][0] is op.AT and items[first][1] in BEGINNINGS:
                first += 1
            while last > first and items[last - 1][0] is op.AT and items[last - 1][1] in ENDS:
                last -= 1
            self._sequence(items[first:last])
            yield items[first:last], first > 0, last < len(items)

    def _anchored(self, items: list[Item]) -> list[list[Item]]:
        """Return alternatives of a pattern, so that anchors in its first and last groups are not in a group."""
        agenda, found = [items], []
        while agenda:
            current = agenda.pop()
            place = next((at for at in (0, len(current) - 1) if current and has_anchor(current[at])), None)
            if place is None:
                found.append(current)
                continue
            for inner in alternatives(current[place]):
                agenda.append([*current[:place], *inner, *current[place + 1 :]])
            if len(agenda) + len(found) > MAX_ALTERNATIVES:
                raise PatternError("it has too many alternatives with anchors")
        return found[::-1]

    def _sequence(self, items: Iterable[Item]) -> str:
        return "".join(self._item(*item) for item in items)

    def _item(self, operation: Any, value: Any) -> str:
        if operation in CHARACTERS:
            return character_class(self.characters(operation, value))
        if operation in (op.MAX_REPEAT, op.MIN_REPEAT):
            low, high, inner = value
            counts = f"{{{low},{'' if high is op.MAXREPEAT else high}}}"
            return f"(?:{self._sequence(inner)}){counts}"
        if operation is op.BRANCH:
            return f"(?:{'|'.join(self._sequence(branch) for branch in value[1])})"
        if operation is op.SUBPATTERN:
            _, added, removed, inner = value
            if (added | removed) & (re.IGNORECASE | re.MULTILINE | re.DOTALL | re.ASCII):
                raise PatternError("flags inside of the pattern cannot be enforced")
            return f"(?:{self._sequence(inner)})"
        raise PatternError(f"{REFUSED.get(operation, str(operation))} cannot be enforced")

    def characters(self, operation: Any, value: Any) -> Chars:
        """Return the characters that an item of one character matches."""
        if operation is op.ANY:
            breaks = "" if self._flags & re.DOTALL else LINE_BREAKS[:1] if self._either else LINE_BREAKS
            return Chars.of(spans(breaks)).negated()
        members = value if operation is op.IN else [(op.LITERAL, value)]
        negated = operation is op.NOT_LITERAL or members[0] == (op.NEGATE, None)
        if negated and self._flags & re.IGNORECASE:
            raise PatternError("a negated class without regard to case cannot be enforced")
        ranges: list[tuple[int, int]] = []
        for kind, member in members:
            if kind is op.LITERAL:
                ranges.append((member, member))
            elif kind is op.RANGE:
                ranges.append(member)
            elif kind is op.CATEGORY:
                found = category(str(member).rpartition("_")[2], "_NOT_" in str(member))
                ranges += (found.either if negated is not self._either else found.both).ranges
        if self._flags & re.IGNORECASE:
            ranges += [(ord(c.swapcase()),) * 2 for c in map(chr, range(65, 123)) if within(c, ranges)]
        chars = Chars.of(ranges)
        return chars.negated() if negated else chars.without_surrogates()


def has_anchor(item: Item) -> bool:
    """Return whether an item is a group with an anchor at any depth."""
    return item[0] in (op.SUBPATTERN, op.BRANCH) and any(
        inner[0] is op.AT or has_anchor(inner) for inner_items in alternatives(item) for inner in inner_items
    )


def alternatives(item: Item) -> list[list[Item]]:
    """Return the alternatives of a group."""
    operation, value = item
    if operation is op.BRANCH:
        return [list(branch) for branch in value[1]]
    _, added, removed, inner = value
    if added | removed:
        raise PatternError("flags inside of the pattern cannot be enforced")
    return [list(inner)]


def within(char: str, ranges: Iterable[tuple[int, int]]) -> bool:
    """Return whether an ASCII letter is in one of the ranges."""
    return char.isalpha() and any(low <= ord(char) <= high for low, high in ranges)


def spans(text: str) -> list[tuple[int, int]]:
    """Return the code points of a text as ranges; a hyphen stands between the ends of a range."""
    found = re.findall(r"(.)(?:-(.))?", text, re.DOTALL)
    return [(ord(first), ord(last or first)) for first, last in found]


@cache
def category(name: str, negated: bool) -> Category:
    r"""Return the characters of \d, \w or \s, given the name of Python's parser, or of the negated class."""
    letter = {"DIGIT": "d", "WORD": "w", "SPACE": "s"}[name]
    matches = re.finditer(rf"\{letter}+", all_characters())
    python = Chars.of((ord(match[0][0]), ord(match[0][-1])) for match in matches)
    ecma = Chars.of(spans(ASCII_CLASSES.get(letter, ECMA_SPACES)))
    either = Chars.of([*python.ranges, *ecma.ranges])
    found = Category(python.without(python.without(ecma)), either)
    return found.negated() if negated else found


def character_class(chars: Chars) -> str:
    """Write a character class of the engine, without characters that are never generated.

    The engine takes a class with all control characters for one with quotes and backslashes.
    """
    chars = chars.without(UNWRITABLE)
    if not chars.ranges:
        return rf"[^\x{{0}}-\x{{{LAST_CODE_POINT:X}}}]"
    return "[" + "".join(rf"\x{{{a:X}}}" if a == b else rf"\x{{{a:X}}}-\x{{{b:X}}}" for a, b in chars.ranges) + "]"


def literal(text: str) -> str:
    """Write a text as a pattern of the engine."""
    return "".join(rf"\x{{{ord(char):X}}}" for char in text)


def none_of(texts: Sequence[str]) -> str:
    """Return a pattern of the engine for all texts except some."""
    return f"^(?:{'|'.join(_not_in(set(texts), ''))})$"


def _not_in(texts: set[str], prefix: str) -> Iterator[str]:
    """Yield patterns of the texts that start with a prefix and are not among some, which start with it too."""
    following = sorted({text[len(prefix)] for text in texts if text != prefix})
    if prefix not in texts:
        yield literal(prefix)
    other = character_class(Chars.of([(ord(char), ord(char)) for char in following]).negated())
    yield f"{literal(prefix)}{other}{ANYTHING}"
    for char in following:
        yield from _not_in({text for text in texts if text.startswith(prefix + char)}, prefix + char)
