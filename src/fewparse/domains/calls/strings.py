"""Grammar rules for JSON strings: free text, lengths and formats.

The characters of free text are written in one way only: quotes and backslashes after a backslash, and the usual
escapes for line breaks and tabs; other control characters cannot be written.
"""

import re

from fewparse.domains.calls.decimals import Rules
from fewparse.grammar.readers.ebnf import read_grammar
from fewparse.grammar.rules import Chars, Production, Ref, Text
from fewparse.json_schema.formats import FORMATS, LABEL

TEXT = "TEXT"
"""The rule for free text, which can be copied from the utterance."""
MAX_CHARS = 1000
"""The length of texts with a larger maximum length: it is not reached within the length limit of an output."""
PLAIN = Chars(((0, 0x1F), (ord('"'), ord('"')), (ord("\\"), ord("\\")))).negated()
ESCAPED = Chars.of((ord(char), ord(char)) for char in '"\\nrtbf')
HOST = rf"{LABEL}(\.{LABEL}){{0,2}}"
WORD = "[A-Za-z0-9_+-]{1,30}"
PATTERNS = {
    name: FORMATS[name] for name in ("date", "time", "date-time", "duration", "uuid", "ipv4", "ipv6", "uri")
} | {
    "hostname": HOST,
    "email": rf"{WORD}(\.{WORD})?@{HOST}",
}
"""The formats that are enforced; hostnames and addresses are kept short, because their length is limited."""
LENGTHS = {"date": (10, 10), "uuid": (36, 36), "ipv4": (7, 15)}


class StringRules:
    """Adds rules for strings to the rules of a grammar, each once."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def string(self, least: int = 0, most: int | None = None) -> Ref:
        """Return a rule for strings of a number of characters between two bounds, with their quotes."""
        most = None if most is None else min(most, MAX_CHARS)
        if most is None and least <= 1:
            name = "string" if least == 0 else "nonempty_string"
            empty: tuple[Production, ...] = () if least else ((Text('""'),),)
            self._rules.setdefault(name, (*empty, (Text('"'), self._text(), Text('"'))))
            return Ref(name)
        name = f"string_{least}_{'any' if most is None else most}"
        more = (Ref(self._up_to(most - least)),) if most is not None else self._any_text()
        self._rules.setdefault(name, ((Text('"'), *[self._char()] * least, *more, Text('"')),))
        return Ref(name)

    def formatted(self, name: str) -> Ref:
        """Return a rule for strings of a format."""
        rule = f"format_{name}"
        if rule not in self._rules:
            pattern = re.sub(r"(?<!\\)/", r"\/", PATTERNS[name])
            read = read_grammar(f"start: /{pattern}/")
            inner = {f"{rule}_{key}": renamed(productions, f"{rule}_") for key, productions in read.rules.items()}
            self._rules.update(inner)
            self._rules[rule] = ((Text('"'), Ref(f"{rule}_start"), Text('"')),)
        return Ref(rule)

    def _char(self) -> Ref:
        self._rules.setdefault("char", ((PLAIN,), (Text("\\"), ESCAPED)))
        return Ref("char")

    def _text(self) -> Ref:
        char = self._char()
        self._rules.setdefault(TEXT, ((char,), (Ref(TEXT), char)))
        return Ref(TEXT)

    def _any_text(self) -> tuple[Ref]:
        self._rules.setdefault("any_text", ((), (self._text(),)))
        return (Ref("any_text"),)

    def _up_to(self, most: int) -> str:
        """Return the name of a rule for up to a number of characters; shorter ones share its rules."""
        char = self._char()
        for count in range(most + 1):
            more: tuple[Production, ...] = ((char, Ref(f"up_to_{count - 1}_chars")),) if count else ()
            self._rules.setdefault(f"up_to_{count}_chars", ((), *more))
        return f"up_to_{most}_chars"


def renamed(productions: tuple[Production, ...], prefix: str) -> tuple[Production, ...]:
    """Return productions whose references have a prefix."""
    return tuple(tuple(Ref(prefix + s.name) if isinstance(s, Ref) else s for s in p) for p in productions)
