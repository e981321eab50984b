"""Write a grammar in the EBNF of Lark or the GBNF of llama.cpp."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from fewparse.errors import ConstraintError
from fewparse.grammar.export.left_recursion import reduce_left_recursion, split_repetition
from fewparse.grammar.rules import SURROGATES, Chars, Grammar, Production, Ref, Symbol, Text, trim

MAX_LINE_LENGTH = 100
LARK_TEXT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}
LARK_CLASS = {char: f"\\{char}" for char in "\\/[]^-&|~"} | {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}
GBNF_TEXT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
GBNF_CLASS = {"\\": "\\\\", "[": "\\[", "]": "\\]", "^": "\\x5e", "-": "\\x2d"}
GBNF_CLASS |= {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def to_lark(grammar: Grammar) -> str:
    """Return the grammar for Lark (`parser="earley", lexer="dynamic_complete"`), with `start` as its first rule.

    Raises ConstraintError if the grammar derives no string.
    """
    useful = useful_rules(grammar)
    names = legal_names(useful, "start", "_", lark_name)
    notation = Notation(names, LARK_TEXT, LARK_CLASS, "/")
    rules = []
    for name in in_order(useful):
        options = [notation.sequence(p) for p in distinct(useful.rules[name])]
        head = f"{names[name]}:"
        one_line = f"{head} {' | '.join(options).strip()}".rstrip()
        indent = " " * (len(head) - 1)
        split = f"\n{indent}| ".join([f"{head} {options[0]}".rstrip(), *options[1:]])
        rules.append(one_line if len(one_line) <= MAX_LINE_LENGTH or len(options) == 1 else split)
    return "\n".join(rules) + "\n"


def to_gbnf(grammar: Grammar) -> str:
    """Return the grammar for llama.cpp, with `root` as its first rule.

    llama.cpp does not support left recursion: `a: b | a c` becomes `b c*`, and other left recursion is removed.
    Raises ConstraintError if the grammar derives no string.
    """
    useful = reduce_left_recursion(useful_rules(grammar))
    names = legal_names(useful, "root", "-", gbnf_name)
    notation = Notation(names, GBNF_TEXT, GBNF_CLASS, "")
    rules = []
    for name in in_order(useful):
        initial, repeated = split_repetition(name, distinct(useful.rules[name]))
        options = [notation.sequence(p) or '""' for p in initial]
        if repeated:
            single = max(map(len, repeated)) == 1
            options = [gbnf_repetition(options, [notation.sequence(p) for p in repeated], single)]
        head = f"{names[name]} ::= "
        one_line = head + " | ".join(options)
        rules.append(one_line if len(one_line) <= MAX_LINE_LENGTH else head + " |\n  ".join(options))
    return "\n".join(rules) + "\n"


def useful_rules(grammar: Grammar) -> Grammar:
    """Return the grammar without useless rules and without surrogates, which are not characters."""
    cleaned = {
        name: tuple(tuple(map(without_surrogates, production)) for production in productions)
        for name, productions in grammar.rules.items()
    }
    trimmed = trim(Grammar(cleaned, grammar.start)).grammar
    if not trimmed.rules:
        raise ConstraintError("the grammar derives no string at all", "Check that every recursion can end.")
    return trimmed


def without_surrogates(symbol: Symbol) -> Symbol:
    """Remove surrogates from a class; a literal with a surrogate becomes the empty class."""
    if isinstance(symbol, Chars):
        return symbol.without_surrogates()
    if isinstance(symbol, Text) and any(char in SURROGATES for char in symbol.text):
        return Chars(())
    return symbol


def in_order(grammar: Grammar) -> Iterable[str]:
    """Return the names of the rules, the start symbol first."""
    return dict.fromkeys([grammar.start, *grammar.rules])


def distinct(productions: Iterable[Production]) -> Iterable[Production]:
    """Return the productions without empty literals and without duplicates."""
    return dict.fromkeys(tuple(symbol for symbol in p if symbol != Text("")) for p in productions)


def legal_names(grammar: Grammar, start: str, separator: str, legal: Callable[[str], str]) -> dict[str, str]:
    """Return a legal and unique name for each rule; `legal` makes it legal, a number after `separator` unique."""
    names = {grammar.start: start}
    used = {start}
    counts: dict[str, int] = {}
    for name in grammar.rules:
        if name not in names:
            base = unique = legal(name)
            while unique in used:
                counts[base] = counts.get(base, 1) + 1
                unique = f"{base}{separator}{counts[base]}"
            used.add(unique)
            names[name] = unique
    return names


def lark_name(name: str) -> str:
    """Make a rule name legal in Lark: lower case, starting with a letter."""
    plain = re.sub(r"[^a-z0-9_]+", "_", name.lower()).strip("_")
    return plain if re.match("[a-z]", plain) else f"rule_{plain}".rstrip("_")


def gbnf_name(name: str) -> str:
    """Make a rule name legal in GBNF: letters, digits and hyphens."""
    plain = re.sub(r"[^a-zA-Z0-9]+", "-", name).strip("-")
    return plain if re.match("[a-zA-Z]", plain) else f"rule-{plain}".rstrip("-")


class Notation(NamedTuple):
    """The spelling of symbols: rule names, escapes in literals and classes, and the delimiter of classes."""

    names: Mapping[str, str]
    literal_escapes: Mapping[str, str]
    class_escapes: Mapping[str, str]
    class_delimiter: str

    def sequence(self, production: Production) -> str:
        """Write a production, its symbols separated by spaces."""
        return " ".join(map(self._symbol, production))

    def _symbol(self, symbol: Symbol) -> str:
        if isinstance(symbol, Ref):
            return self.names[symbol.name]
        if isinstance(symbol, Text):
            return f'"{"".join(escaped(char, self.literal_escapes) for char in symbol.text)}"'
        return f"{self.class_delimiter}{self._class(symbol)}{self.class_delimiter}"

    def _class(self, chars: Chars) -> str:
        """Write the ranges of a class, or of its complement if these are fewer."""
        others = chars.negated()
        negated = 0 < len(others.ranges) < len(chars.ranges)
        members = []
        for low, high in (others if negated else chars).ranges:
            between = "-" if high > low + 1 else ""
            first, last = (escaped(chr(code), self.class_escapes) for code in (low, high))
            members.append(first if low == high else f"{first}{between}{last}")
        return f"[{'^' if negated else ''}{''.join(members)}]"


def escaped(char: str, special: Mapping[str, str]) -> str:
    """Escape a character for a literal or a class."""
    if char in special:
        return special[char]
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def gbnf_repetition(initial: list[str], repeated: list[str], single: bool) -> str:
    """Write one initial option, then any number of repeated ones; `single` if these are one symbol each."""
    loop = repeated[0] if single and len(repeated) == 1 else f"({' | '.join(repeated)})"
    if initial == ['""']:
        return f"{loop}*"
    if initial == repeated:
        return f"{loop}+"
    first = initial[0] if len(initial) == 1 else f"({' | '.join(initial)})"
    return f"{first} {loop}*"
