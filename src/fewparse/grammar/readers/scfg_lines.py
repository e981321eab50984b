"""Read one line of an `.scfg` file: its tokens, and the rule or macro that they define.

The reader is linear and does not recurse, so a line may be long and its macro calls nested deeply.
"""

import json
import re
from collections.abc import Callable
from typing import NamedTuple, NoReturn

from fewparse.grammar.readers.regex import CharacterClasses
from fewparse.grammar.rules import Chars, Ref, Text

TOKEN = re.compile(
    r"""\s*+(?:
      (?P<string>"[^"\\]*+(?:\\.[^"\\]*+)*+")
      |(?P<regex>/[^/]*+/)
      |(?P<name>[a-zA-Z][_a-zA-Z0-9]*+)
      |(?P<empty>\#e(?![_a-zA-Z0-9]))
      |(?P<arrow>->|[12]>)
      |(?P<sign>[|,?()])
      |(?P<unsupported>.).*+)""",
    re.VERBOSE | re.DOTALL,
)
STRING = re.compile(
    r"""(?:[^"\\\x00-\x1f\ud800-\udfff]
      |\\["\\/bfnrt]
      |\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}
      |\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})*+""",
    re.VERBOSE,
)
SURROGATE = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}|[\ud800-\udfff]")
MAX_SHOWN_LENGTH = 60
NO_CONTINUATION = "There are no continuation lines: write the whole rule on one line."
FORM = "A rule is written `name -> utterance , program`, all on one line."
ONE_PROGRAM = "The program side takes one expansion: write one rule for each program."
NO_COMMENT = "There are no trailing comments: a comment has its own line, which begins with #."
DOUBLE_QUOTES = 'Text is written in double quotes, as in "text".'
ESCAPES = r"Escapes are those of JSON: \" \\ \/ \b \f \n \r \t and \u0041."
SLASH = r"It ends with a slash; a slash inside is written \x2f."
UNSUPPORTED = {
    '"': ("this string is never closed", r"It ends with a double quote; a quote inside is written \"."),
    "/": ("this regular expression is never closed", SLASH),
    "#": ("a comment is not allowed here", NO_COMMENT),
    ";": ("a semicolon is not allowed here", "A rule ends with its line: remove the semicolon."),
    "_": ("a name cannot begin with _", "A name begins with a letter; letters, digits and _ follow."),
    "-": ("'-' is not allowed here", "A name has only letters, digits and _; the arrow is ->."),
    **dict.fromkeys("0123456789", ("a name cannot begin with a digit", "A name begins with a letter.")),
    **dict.fromkeys("'`‘’“”„«»", ("this quotation mark is not supported", DOUBLE_QUOTES)),
    **dict.fromkeys("*+", ("repetition is not supported", "Write a recursive rule, as in `list -> item list`.")),
    **dict.fromkeys("[]{}", ("brackets are not supported", "Give the part its own rule; `name?` is optional.")),
}


class Regex(NamedTuple):
    """A character class; `name` is the source text of its pattern, with slashes."""

    name: str
    chars: Chars


class OptionalItem(NamedTuple):
    """An optional nonterminal or literal."""

    item: Text | Ref


class Call(NamedTuple):
    """A macro call; `at` is its offset in the line."""

    name: str
    arguments: tuple["Item", ...]
    at: int


Item = Text | Ref | Regex | OptionalItem | Call
Fail = Callable[[str, int, str], NoReturn]
EMPTY = Text("")


class Rule(NamedTuple):
    """A rule as written; `program` is None for a rule of the utterance side only."""

    name: str
    utterances: list[list[Item]]
    program: list[Item] | None


class Macro(NamedTuple):
    """A macro definition; `at` is its offset in the line."""

    name: str
    parameters: tuple[str, ...]
    body: list[Item]
    at: int


def shown(name: str) -> str:
    """Truncate a name for a message."""
    return name if len(name) <= MAX_SHOWN_LENGTH else f"{name[:MAX_SHOWN_LENGTH]}..."


class LineReader:
    """Reads one line that is not empty. `fail(message, at, hint)` reports a mistake and raises.

    `interned` and `classes` share symbols and character classes across lines. `calls` collects the macro calls.
    """

    def __init__(self, line: str, fail: Fail, interned: dict[str, Text | Ref], classes: CharacterClasses) -> None:
        self._report = fail
        self._interned = interned
        self._classes = classes
        self._length = len(line.rstrip())
        self._matches = list(TOKEN.finditer(line, 0, self._length))
        self._kinds = [match.lastgroup for match in self._matches]
        self._kinds.append("end")
        self._texts = [match[match.lastindex or 0] for match in self._matches]
        self._texts.append("")
        self._index = 0
        self.calls: list[Call] = []

    def read(self) -> Rule | Macro:
        """Return the rule or macro of this line."""
        name = self._name()
        parameters: tuple[str, ...] = ()
        if self._text() == "(":
            parameters = self._parameters()
            if self._text() != "2>":
                hint = f"A macro is defined with 2>, as in {shown(name)}(x) 2> ...; a rule has no parameters."
                self._unexpected("expected `2>` after a macro's parameters", hint)
        if self._kind() != "arrow":
            self._missing_arrow(name)
        arrow = self._text()
        if arrow == "2>":
            body = self._expansion(True, parameters)
            self._end("a macro has one expansion, and", "It is a part of a program side.")
            return Macro(name, parameters, body, self._at(0))
        utterances = [self._expansion()]
        first_bar = self._index
        while self._text() == "|":
            utterances.append(self._expansion())
        if arrow == "1>":
            self._end("a rule with `1>` has no program, and", "With a program, a rule is written with ->.")
            return Rule(name, utterances, None)
        if self._text() == ",":
            program = self._expansion(True)
            self._end("a program side is one expansion, and", ONE_PROGRAM)
            return Rule(name, utterances, program)
        if self._kind() == "end" and len(utterances) > 1:
            hint = "Without a comma, both sides are the same and have no alternatives: write one rule for each."
            self._fail("expected a comma and a program after these alternatives", hint, first_bar)
        self._end("a right-hand side is made of names, strings, regular expressions and #e;", FORM)
        return Rule(name, utterances, utterances[0])

    def _kind(self) -> str | None:
        return self._kinds[self._index]

    def _text(self) -> str:
        return self._texts[self._index]

    def _next(self) -> str:
        self._index += 1
        return self._texts[self._index - 1]

    def _at(self, index: int) -> int:
        if index == len(self._matches):
            return self._length
        return self._matches[index].start(self._matches[index].lastindex or 0)

    def _name(self) -> str:
        if self._kind() == "arrow":
            self._fail("expected a name before the arrow", FORM)
        if self._text() in ("|", ","):
            self._fail(f"a rule cannot begin with `{self._text()}`", NO_CONTINUATION)
        if self._kind() != "name":
            self._unexpected("expected the name of a rule", FORM)
        return self._next()

    def _missing_arrow(self, name: str) -> NoReturn:
        expected = "expected `->`, `1>` or `2>` after the name"
        if self._text() in (":", "=", "→", "⇒"):
            self._fail(expected, f"The arrow is written ->, as in {shown(name)} -> ...")
        if self._text() == ">" and name[-1] in "12":
            self._fail(expected, f"Put a space before {name[-1]}>, which is a separate token.")
        self._unexpected(expected, FORM)

    def _parameters(self) -> tuple[str, ...]:
        opened = self._index
        hint = "Parameters are written name(x, y)."
        self._next()
        parameters: dict[str, None] = {}
        while self._text() != ")":
            if self._kind() == "end":
                self._fail("this ( is never closed", hint, opened)
            if self._kind() != "name":
                self._unexpected("expected a parameter's name or `)`", hint)
            if self._text() in parameters:
                self._fail(f"the parameter `{shown(self._text())}` is repeated", "Give each its own name.")
            parameters[self._next()] = None
            if self._text() == ",":
                self._next()
            elif self._text() != ")" and self._kind() != "end":
                self._unexpected("expected `,` or `)` after a parameter", hint)
        self._next()
        return tuple(parameters)

    def _expansion(self, calls: bool = False, parameters: tuple[str, ...] = ()) -> list[Item]:
        """Read the next token, which is an arrow, bar or comma, and the expansion after it."""
        before = self._next()
        items: list[Item] = []
        while True:
            kind, text = self._kinds[self._index], self._texts[self._index]
            if kind == "name" or kind == "string":
                after = self._texts[self._index + 1]
                if after == "?":
                    items.append(self._optional(parameters))
                elif after == "(" and kind == "name":
                    if not calls:
                        hint = "Macros are parts of programs: they can only be called after the comma."
                        self._fail("a macro cannot be called on the utterance side", hint)
                    items.append(self._call())
                    self._reject_optional("a macro call", "Give the optional part its own rule.")
                else:
                    items.append(self._interned.get(text) or self._symbol())
                    self._index += 1
            elif kind == "regex":
                items.append(self._regex())
                self._reject_optional("a regular expression", "Give it a rule: `digit -> /[0-9]/`, then `digit?`.")
            elif kind == "empty":
                self._index += 1
                items.append(EMPTY)
                self._reject_optional("#e", "It is empty already.")
            else:
                break
        if not items:
            self._missing_expansion(before)
        return items

    def _missing_expansion(self, before: str) -> NoReturn:
        if self._text() == "?":
            self._fail("nothing precedes this ?", 'It follows a name or a string: name? or "text"?')
        if self._kind() == "end" or self._text() in ("|", ","):
            self._fail(f"expected something after `{before}`", "For the empty string, write #e.")
        self._unexpected(f"expected a name, a string, a regular expression or #e after `{before}`", FORM)

    def _optional(self, parameters: tuple[str, ...]) -> Item:
        item = self._symbol()
        if self._next() in parameters:
            self._reject_optional("a macro's parameter", "Give the optional part a rule, and pass its name.")
        self._next()
        self._reject_optional("an optional symbol", "One ? is enough.")
        return item if item is EMPTY else OptionalItem(item)

    def _reject_optional(self, what: str, hint: str) -> None:
        if self._text() == "?":
            self._fail(f"{what} cannot be optional", hint)

    def _call(self) -> Call:
        open_calls: list[tuple[int, list[Item]]] = []
        while True:
            item: Item
            if self._kind() == "name" and self._texts[self._index + 1] == "(":
                open_calls.append((self._index, []))
                self._index += 2
                continue
            if self._text() == ")":
                index, arguments = open_calls.pop()
                item = Call(self._texts[index], tuple(arguments), self._at(index))
                self.calls.append(item)
                if not open_calls:
                    self._index += 1
                    return item
            elif self._kind() in ("name", "string"):
                item = self._symbol()
            elif self._kind() == "empty":
                item = EMPTY
            else:
                self._missing_argument(open_calls[-1][0], "an argument")
            self._index += 1
            open_calls[-1][1].append(item)
            if self._text() == ",":
                self._index += 1
            elif self._text() != ")":
                self._missing_argument(open_calls[-1][0], "`,`")

    def _missing_argument(self, call: int, expected: str) -> NoReturn:
        if self._kind() == "end":
            self._fail("this macro call is never closed", "A call is written name(x, y).", call)
        hint = "An argument is one name, one string, #e or one macro call; anything more needs a rule or a macro."
        self._unexpected(f"expected {expected} or `)` in the call of `{shown(self._texts[call])}`", hint)

    def _symbol(self) -> Text | Ref:
        text = self._text()
        item = self._interned.get(text)
        if item is None:
            item = self._interned[text] = Ref(text) if self._kind() == "name" else self._unquoted(text)
        return item

    def _unquoted(self, string: str) -> Text:
        valid = STRING.match(string, 1)
        end = valid.end() if valid else 1
        if end < len(string) - 1:
            self._invalid_string(string, end)
        return Text(json.loads(string)) if end > 1 else EMPTY

    def _invalid_string(self, string: str, end: int) -> NoReturn:
        if SURROGATE.match(string, end):
            hint = r"Write the character itself, or both halves of its pair, as in \ud83d\ude00."
            self._fail("half of a surrogate pair is not a character", hint, offset=end)
        if string[end] == "\\":
            self._fail("this escape is not supported", ESCAPES, offset=end)
        escape = json.dumps(string[end])[1:-1]
        self._fail("a control character is not allowed in a string", f"Write {escape} for it.", offset=end)

    def _regex(self) -> Regex:
        text = self._text()
        if text == "//":
            self._fail("this regular expression is empty", f"Any character but a line break is /./. {NO_COMMENT}")
        if (len(text) - len(text[:-1].rstrip("\\"))) % 2 == 0:
            self._fail("a regular expression ends at the next slash", SLASH, offset=len(text) - 1)

        def fail(message: str, offset: int) -> NoReturn:
            self._fail(message, "It has the syntax of Python's `regex`, for one character.", offset=1 + offset)

        chars = self._classes.read(text[1:-1], fail)
        self._index += 1
        return Regex(text, chars)

    def _end(self, why: str, hint: str) -> None:
        if self._kind() == "end":
            return
        if self._text() in ("(", ")"):
            hint = "Parentheses contain a macro's arguments, right after its name; there are no groups."
        elif self._kind() == "arrow":
            hint = "One line is one rule."
        self._unexpected(f"{why} `{self._text()}` is not allowed here", hint)

    def _unexpected(self, message: str, hint: str) -> NoReturn:
        """Report a mistake at the next token; unsupported characters have their own message and hint."""
        if self._kind() == "unsupported":
            specific = UNSUPPORTED.get(self._text())
            message, hint = specific or (f"{self._text()!r} is not supported; {message}", hint)
        self._fail(message, hint)

    def _fail(self, message: str, hint: str, index: int | None = None, offset: int = 0) -> NoReturn:
        """Report a mistake in a token, by default the next one."""
        self._report(message, self._at(self._index if index is None else index) + offset, hint)
