"""Read grammars in the EBNF of Lark, as far as it describes a plain context-free grammar.

Supported: rules and terminals, alternatives, groups, `[optional]`, `? * +`, `~ n..m`, "strings" (with the i
flag), "a".."z" ranges, /regular expressions/, // comments. Rejected with a hint: %ignore, %import, templates.
There is no lexer: a terminal is a rule like any other, and spaces are written explicitly.
"""

import ast
import re
from pathlib import Path
from typing import NamedTuple, NoReturn

from fewparse.errors import GrammarError, LimitExceeded, UnknownName, line_and_column
from fewparse.grammar.readers.expressions import Choice, Expression, Repeat, Sequence, lower
from fewparse.grammar.readers.regex import RegexReader, either_case_of
from fewparse.grammar.rules import Chars, Grammar, Ref, Text

TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|\#[^\n]*)
      |(?P<string>"(?:\\.|[^"\\\n]++)*+"i?)
      |(?P<regex>/(?!/)(?:\\.|\[(?:\\.|[^\]\\\n]++)*+\]|[^/\\\n\[]++)++/[imslux]*)
      |(?P<define>[?!]{0,2}+[A-Za-z_][A-Za-z_0-9]*(?:\.-?\d+)?\s*:(?!:))
      |(?P<alias>->\s*[A-Za-z_][A-Za-z_0-9]*)
      |(?P<name>[A-Za-z_][A-Za-z_0-9]*)
      |(?P<range>\.\.)
      |(?P<number>\d+)
      |(?P<operator>[|()\[\]?*+~])
      |(?P<directive>%\w+[^\n]*)""",
    re.VERBOSE,
)
ESCAPE = re.compile(
    r"""\\(?:[\\"nrtf]
      |x[0-9A-Fa-f]{2}
      |u(?![dD][89A-Fa-f])[0-9A-Fa-f]{4}
      |U00(?!00[dD][89A-Fa-f])(?:0[0-9A-Fa-f]|10)[0-9A-Fa-f]{4})""",
    re.VERBOSE,
)
STRING = re.compile(rf'"(?:[^"\\]++|{ESCAPE.pattern})*+', re.VERBOSE)
MAX_DIGITS = 18
MAX_PATTERN_LENGTH = 200_000
HINTS = {
    "%ignore": 'Nothing is ignored: write spaces where they occur, for example " ".',
    "%import": "Write the imported terminal out, for example INT: /[0-9]+/.",
}


class Lexeme(NamedTuple):
    """A token of the grammar's source; `at` is its offset."""

    kind: str
    text: str
    at: int


def read_grammar(source: str, path: Path | str = "<grammar>", start: str = "start") -> Grammar:
    """Return the grammar of a source text.

    Raises GrammarError with line and caret for a mistake, LimitExceeded for a grammar that is too large or nested
    too deeply.
    """
    try:
        return Reader(source, path).read(start)
    except RecursionError:
        raise LimitExceeded("the grammar is nested too deeply", "Name its inner groups as rules.") from None


class Reader:
    """A recursive-descent parser of one source text."""

    def __init__(self, source: str, path: Path | str) -> None:
        self._source = source
        self._path = path
        self._lexemes = self._tokenize()
        self._index = 0
        self._references: list[Lexeme] = []

    def read(self, start: str) -> Grammar:
        """Return the grammar of all definitions; raise GrammarError for undefined names."""
        definitions: dict[str, Expression] = {}
        while self._kind() != "end":
            lexeme = self._next()
            if lexeme.kind == "directive":
                directive = lexeme.text.split()[0]
                self._fail(f"{directive} is not supported", lexeme.at, HINTS.get(directive))
            if lexeme.kind != "define":
                self._fail("expected a rule, `name: ...`", lexeme.at)
            name = re.split(r"[.:\s]", lexeme.text.lstrip("?!"))[0]
            if name in definitions:
                self._fail(f"`{name}` is defined twice", lexeme.at, "Join the definitions with |.")
            definitions[name] = self._choice()
        for reference in self._references:
            if reference.text not in definitions:
                hint = UnknownName("rule", reference.text, definitions).hint
                self._fail(f"`{reference.text}` is not defined", reference.at, hint)
        if start not in definitions:
            raise GrammarError(
                f"no rule is called `{start}`", self._path, hint="It is the start symbol of the grammar."
            )
        return lower(definitions, start)

    def _tokenize(self) -> list[Lexeme]:
        lexemes, at = [], 0
        while at < len(self._source):
            match = TOKEN.match(self._source, at)
            if match is None:
                opened = self._source[at]
                messages = {'"': "this string is never closed", "/": "this regular expression is never closed"}
                self._fail(messages.get(opened, f"{opened!r} is not allowed here"), at)
            if match.lastgroup != "space":
                lexemes.append(Lexeme(str(match.lastgroup), match.group(), at))
            at = match.end()
        return [*lexemes, Lexeme("end", "", len(self._source))]

    def _kind(self) -> str:
        return self._lexemes[self._index].kind

    def _text(self) -> str:
        return self._lexemes[self._index].text

    def _next(self) -> Lexeme:
        self._index += 1
        return self._lexemes[self._index - 1]

    def _choice(self) -> Expression:
        options = [self._sequence()]
        while self._text() == "|":
            self._next()
            options.append(self._sequence())
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self) -> Expression:
        parts: list[Expression] = []
        while self._kind() in ("string", "regex", "name") or (self._kind() == "operator" and self._text() in "(["):
            parts.append(self._quantified())
        if self._kind() == "alias":
            self._next()
        if self._kind() not in ("end", "define", "directive") and self._text() not in ("|", ")", "]"):
            self._fail(f"{self._text()!r} is not allowed here", self._lexemes[self._index].at)
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _quantified(self) -> Expression:
        atom = self._atom()
        while self._kind() == "operator" and self._text() in "?*+~":
            sign = self._next()
            if sign.text == "~":
                atom = Repeat(atom, *self._counts(sign))
            else:
                atom = Repeat(atom, 1 if sign.text == "+" else 0, 1 if sign.text == "?" else None)
        return atom

    def _counts(self, sign: Lexeme) -> tuple[int, int]:
        if self._kind() != "number":
            self._fail("~ is followed by a count, as in ~ 3 or ~ 2..5", sign.at)
        low = high = self._count()
        if self._kind() == "range":
            self._next()
            if self._kind() != "number":
                self._fail("a range of counts ends with a number", sign.at)
            high = self._count()
        if high < low:
            self._fail("this range of counts runs backwards", sign.at)
        return low, high

    def _count(self) -> int:
        return int(self._next().text[:MAX_DIGITS])  # more digits are beyond all limits anyway

    def _atom(self) -> Expression:
        lexeme = self._next()
        if lexeme.kind == "string":
            return self._string(lexeme)
        if lexeme.kind == "regex":
            return self._regex(lexeme)
        if lexeme.kind == "name":
            self._references.append(lexeme)
            return Ref(lexeme.text)
        inner = self._choice()
        closing = {"(": ")", "[": "]"}[lexeme.text]
        if self._text() != closing:
            self._fail(f"this {lexeme.text} is never closed", lexeme.at)
        self._next()
        return Repeat(inner, 0, 1) if lexeme.text == "[" else inner

    def _string(self, lexeme: Lexeme) -> Expression:
        text = self._unquote(lexeme)
        if self._kind() == "range":
            self._next()
            other = self._next()
            high = self._unquote(other) if other.kind == "string" else ""
            if len(text) != 1 or len(high) != 1 or high < text:
                self._fail('a range is written "a".."z"', lexeme.at)
            return Chars.of([(ord(text), ord(high))])
        if lexeme.text.endswith("i"):
            return Sequence(tuple(map(either_case_of, text)))
        return Text(text) if text else Sequence(())

    def _unquote(self, lexeme: Lexeme) -> str:
        quoted = lexeme.text.removesuffix("i")
        valid = STRING.match(quoted)
        if valid and valid.end() < len(quoted) - 1:
            hint = r"Supported escapes: \\ \" \n \r \t \f \x41 \u0041 \U00000041."
            self._fail("this escape is not supported", lexeme.at + valid.end(), hint)
        return ESCAPE.sub(lambda escape: str(ast.literal_eval(f'"{escape.group()}"')), quoted[1:-1])

    def _regex(self, lexeme: Lexeme) -> Expression:
        pattern, _, flags = lexeme.text[1:].rpartition("/")
        if set(flags) - {"i"}:
            self._fail(f"the flags {flags!r} are not supported; only i is", lexeme.at)

        if len(pattern) > MAX_PATTERN_LENGTH:
            message = f"a regular expression has {len(pattern):,} characters; the limit is {MAX_PATTERN_LENGTH:,}"
            raise LimitExceeded(message, "Write it as several rules.")

        def fail(message: str, offset: int) -> NoReturn:
            self._fail(message, lexeme.at + 1 + offset)

        return RegexReader(pattern, "i" in flags, fail).read()

    def _fail(self, message: str, at: int, hint: str | None = None) -> NoReturn:
        raise GrammarError(message, self._path, *line_and_column(self._source, at), self._source, hint)
