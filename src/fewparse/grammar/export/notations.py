"""Write a grammar in the notations of others: the EBNF of Lark, and the GBNF of llama.cpp."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from fewparse.errors import ConstraintError
from fewparse.grammar.export.left_recursion import only_repetition, repetition
from fewparse.grammar.rules import SURROGATES, Chars, Grammar, Production, Ref, Symbol, Text, trim

LONGEST_LINE = 100
LARK_TEXT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}
LARK_CLASS = {char: f"\\{char}" for char in "\\/[]^-&|~"} | {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}
GBNF_TEXT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
GBNF_CLASS = {"\\": "\\\\", "[": "\\[", "]": "\\]", "^": "\\x5e", "-": "\\x2d"}
GBNF_CLASS |= {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def to_lark(grammar: Grammar) -> str:
    """The grammar for Lark (`parser="earley", lexer="dynamic_complete"`), with `start` as its first rule."""
    useful = usable(grammar)
    names = legal_names(useful, "start", "_", lark_name)
    notation = Notation(names, LARK_TEXT, LARK_CLASS, "/")
    rules = []
    for name in in_order(useful):
        options = [notation.sequence(p) for p in without_repeats(useful.rules[name])]
        head = f"{names[name]}:"
        one_line = f"{head} {' | '.join(options).strip()}".rstrip()
        indent = " " * (len(head) - 1)
        split = f"\n{indent}| ".join([f"{head} {options[0]}".rstrip(), *options[1:]])
        rules.append(one_line if len(one_line) <= LONGEST_LINE or len(options) == 1 else split)
    return "\n".join(rules) + "\n"


def to_gbnf(grammar: Grammar) -> str:
    """The grammar for llama.cpp, with `root` as its first rule.

    llama.cpp refuses left recursion: `a: b | a c` becomes `b c*`, and other left recursion is taken apart.
    """
    useful = only_repetition(usable(grammar))
    names = legal_names(useful, "root", "-", gbnf_name)
    notation = Notation(names, GBNF_TEXT, GBNF_CLASS, "")
    rules = []
    for name in in_order(useful):
        first, again = repetition(name, without_repeats(useful.rules[name]))
        options = [notation.sequence(p) or '""' for p in first]
        if again:
            options = [repeated(options, [notation.sequence(p) for p in again], max(map(len, again)) == 1)]
        head = f"{names[name]} ::= "
        one_line = head + " | ".join(options)
        rules.append(one_line if len(one_line) <= LONGEST_LINE else head + " |\n  ".join(options))
    return "\n".join(rules) + "\n"


def usable(grammar: Grammar) -> Grammar:
    """The grammar without what derives nothing or is never reached; surrogates are no characters."""
    cleaned = {
        name: tuple(tuple(map(without_surrogates, production)) for production in productions)
        for name, productions in grammar.rules.items()
    }
    trimmed = trim(Grammar(cleaned, grammar.start)).grammar
    if not trimmed.rules:
        raise ConstraintError("the grammar derives no string at all", "Is a rule missing its end of recursion?")
    return trimmed


def without_surrogates(symbol: Symbol) -> Symbol:
    """A symbol of real characters; a text with others becomes a class of none, which derives nothing."""
    if isinstance(symbol, Chars):
        return symbol.without_surrogates()
    if isinstance(symbol, Text) and any(char in SURROGATES for char in symbol.text):
        return Chars(())
    return symbol


def in_order(grammar: Grammar) -> Iterable[str]:
    """The start, then all others as they come."""
    return dict.fromkeys([grammar.start, *grammar.rules])


def without_repeats(productions: Iterable[Production]) -> Iterable[Production]:
    """Each production once, without texts that are empty."""
    return dict.fromkeys(tuple(symbol for symbol in p if symbol != Text("")) for p in productions)


def legal_names(grammar: Grammar, start: str, joint: str, legal: Callable[[str], str]) -> dict[str, str]:
    """A name for each rule that is legal and its own; where two would be the same, the later one is numbered."""
    names = {grammar.start: start}
    taken = {start}
    counts: dict[str, int] = {}
    for name in grammar.rules:
        if name not in names:
            wish = chosen = legal(name)
            while chosen in taken:
                counts[wish] = counts.get(wish, 1) + 1
                chosen = f"{wish}{joint}{counts[wish]}"
            taken.add(chosen)
            names[name] = chosen
    return names


def lark_name(name: str) -> str:
    """A rule of Lark is written small, and begins with a letter."""
    plain = re.sub(r"[^a-z0-9_]+", "_", name.lower()).strip("_")
    return plain if re.match("[a-z]", plain) else f"rule_{plain}".rstrip("_")


def gbnf_name(name: str) -> str:
    """A rule of GBNF has letters, digits and hyphens."""
    plain = re.sub(r"[^a-zA-Z0-9]+", "-", name).strip("-")
    return plain if re.match("[a-zA-Z]", plain) else f"rule-{plain}".rstrip("-")


class Notation(NamedTuple):
    """How symbols are written: the names of rules, what is escaped where, and what stands around a class."""

    names: Mapping[str, str]
    in_text: Mapping[str, str]
    in_class: Mapping[str, str]
    around_class: str

    def sequence(self, production: Production) -> str:
        """A production, symbol by symbol."""
        return " ".join(map(self._symbol, production))

    def _symbol(self, symbol: Symbol) -> str:
        if isinstance(symbol, Ref):
            return self.names[symbol.name]
        if isinstance(symbol, Text):
            return f'"{"".join(escaped(char, self.in_text) for char in symbol.text)}"'
        return f"{self.around_class}{self._class(symbol)}{self.around_class}"

    def _class(self, chars: Chars) -> str:
        """The ranges of a class, or those that it leaves out where they are fewer."""
        others = chars.negated()
        negated = 0 < len(others.ranges) < len(chars.ranges)
        members = []
        for low, high in (others if negated else chars).ranges:
            between = "-" if high > low + 1 else ""
            first, last = (escaped(chr(code), self.in_class) for code in (low, high))
            members.append(first if low == high else f"{first}{between}{last}")
        return f"[{'^' if negated else ''}{''.join(members)}]"


def escaped(char: str, special: Mapping[str, str]) -> str:
    """A character as it stands between quotes or brackets."""
    if char in special:
        return special[char]
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def repeated(first: list[str], again: list[str], single: bool) -> str:
    """One of the first, then any of the others; `single` says that those are one symbol each."""
    loop = again[0] if single and len(again) == 1 else f"({' | '.join(again)})"
    if first == ['""']:
        return f"{loop}*"
    if first == again:
        return f"{loop}+"
    begin = first[0] if len(first) == 1 else f"({' | '.join(first)})"
    return f"{begin} {loop}*"
