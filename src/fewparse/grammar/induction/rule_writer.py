"""Write functions, their signatures and the fillers of their slots as grammar rules with readable names."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from fewparse.grammar.induction.sexpr import Parameter, Signature
from fewparse.grammar.rules import Chars, Grammar, Production, Ref, Symbol, Text, fresh_name, trim

Rules = dict[str, tuple[Production, ...]]
CallTemplate = tuple[tuple[Parameter, bool], ...]
"""Parameters in order, and whether each is required."""

DIGIT = Chars.of([(ord("0"), ord("9"))])
LETTERS = Chars.of([(ord("a"), ord("z")), (ord("A"), ord("Z"))])
NAME_CHARS = Chars.of([*LETTERS.ranges, *DIGIT.ranges, (ord("_"), ord("_")), (ord("-"), ord("-"))])
FREE_TEXT = "TEXT"
"""The rule of the text between quotes."""
LITERALS = {
    "NATURAL": re.compile(r"[0-9]+"),
    "INTEGER": re.compile(r"-[0-9]+"),
    "DECIMAL": re.compile(r"-?[0-9]+\.[0-9]+"),
    "DATE": re.compile(r"[0-9]{4}-[01][0-9]-[0-3][0-9]"),
    "TIME": re.compile(r"[0-2][0-9]:[0-5][0-9]"),
}
SIGN_NAMES = {"=": "equal", "<": "less", ">": "greater", "~": "like", "+": "plus", "-": "minus", "*": "times"}


@dataclass(frozen=True)
class Function:
    """A function: its head, and where these distinguish functions, its signature and the slot that it fills."""

    head: str
    signature: Signature | None = None
    within: "Slot | None" = None


@dataclass(frozen=True)
class Slot:
    """An argument position or keyword of a function."""

    function: Function
    name: str


@dataclass(frozen=True)
class Constant:
    """A word that is not a literal."""

    word: str


@dataclass(frozen=True)
class LiteralClass:
    """A class of literals, identified by the name of its rule."""

    rule: str


@dataclass(frozen=True)
class ConstantPattern:
    """The constants that match a production."""

    production: Production


Filler = Function | Constant | LiteralClass | ConstantPattern
ROOT_SLOT = Slot(Function(""), "start")
QUOTED = LiteralClass("quoted")


def literal_class(word: str) -> LiteralClass | None:
    """Return the class of a word that is a literal; None if it is not one."""
    return next((LiteralClass(rule) for rule, pattern in LITERALS.items() if pattern.fullmatch(word)), None)


def write_grammar(
    functions: Mapping[Function, Collection[Signature]],
    slots: Mapping[Slot, tuple[Filler, ...]],
    quoted: Iterable[str],
    optional_keywords: bool,
) -> Grammar:
    """Return the grammar of functions with these signatures, whose slots take these fillers.

    `quoted` are the quoted strings of the examples, which determine the characters and escapes of strings.
    """
    writer = RuleWriter(functions, slots, quoted)
    for function, signatures in functions.items():
        writer.add_function(function, signatures, optional_keywords)
    writer.rules["start"] = writer.alternatives(slots[ROOT_SLOT])
    return Grammar(renumber(trim(Grammar(merge_duplicates(writer.rules))).grammar.rules, writer.stems))


class RuleWriter:
    """Collects rules; `stems` maps each rule name to the name before it was numbered."""

    def __init__(
        self, functions: Iterable[Function], slots: Mapping[Slot, tuple[Filler, ...]], quoted: Iterable[str]
    ) -> None:
        self.rules: Rules = {"start": (), **literal_rules(quoted)}
        self.stems: dict[str, str] = {}
        self._slots = slots
        self._names = {function: self._add_name(function_word(function.head)) for function in functions}
        self._filler_sets: dict[frozenset[Filler], Ref] = {}
        self._optional: dict[tuple[Function, Parameter], Ref] = {}
        self._users: dict[frozenset[Filler], set[str]] = {}
        for slot, fillers in slots.items():
            self._users.setdefault(frozenset(fillers), set()).add(slot.function.head)

    def add_function(self, function: Function, signatures: Collection[Signature], optional_keywords: bool) -> None:
        """Write the rule of a function, with one production per signature or template."""
        if optional_keywords:
            templates = merge_signatures(signatures)
        else:
            templates = [tuple((parameter, True) for parameter in signature) for signature in signatures]
        self.rules[self._names[function]] = tuple(self._production(function, each) for each in templates)

    def _production(self, function: Function, call: CallTemplate) -> Production:
        symbols: list[Symbol] = [Text(function.head)]
        for parameter, required in call:
            blank = "" if len(symbols) == 1 and function.head.endswith("(") else " "
            argument = self._argument(function, parameter, blank)
            symbols += argument if required else (self._optional_argument(function, parameter, argument),)
        return merge_texts([*symbols, Text(")")])

    def _argument(self, function: Function, parameter: Parameter, blank: str) -> Production:
        if not parameter.keyword:
            return (Text(blank), self._slot(Slot(function, parameter.slot)))
        if not parameter.slot:
            return (Text(blank + parameter.keyword),)
        return (Text(f"{blank}{parameter.keyword} "), self._slot(Slot(function, parameter.slot)))

    def _optional_argument(self, function: Function, parameter: Parameter, argument: Production) -> Ref:
        if (function, parameter) not in self._optional:
            name = self._add_name(f"{self._names[function]} maybe {parameter.keyword}")
            self.rules[name] = ((), argument)
            self._optional[function, parameter] = Ref(name)
        return self._optional[function, parameter]

    def _add_name(self, words: str) -> str:
        """Reserve a new rule name made of these words."""
        stem = rule_name(words)
        name = fresh_name(stem, self.rules)
        self.stems[name] = stem
        self.rules[name] = ()
        return name

    def alternatives(self, fillers: Iterable[Filler]) -> tuple[Production, ...]:
        """Return one production per filler."""
        return tuple(self._filler(filler) for filler in fillers)

    def _filler(self, filler: Filler) -> Production:
        if isinstance(filler, Function):
            return (Ref(self._names[filler]),)
        if isinstance(filler, Constant):
            return (Text(filler.word),)
        if isinstance(filler, ConstantPattern):
            return filler.production
        return (Ref(filler.rule),)

    def _slot(self, slot: Slot) -> Symbol:
        """Return the symbol of a slot: its only filler, or a reference to the rule of its set of fillers."""
        fillers = self._slots[slot]
        key = frozenset(fillers)
        if key not in self._filler_sets:
            productions = self.alternatives(fillers)
            if len(productions) == len(productions[0]) == 1:
                return productions[0][0]
            general = len(self._users[key]) > 1 and any(isinstance(filler, Function) for filler in fillers)
            name = "arg" + slot.name if slot.name.isdigit() else slot.name
            added = self._add_name("expr" if general else f"{function_word(slot.function.head)} {name}")
            self.rules[added] = productions
            self._filler_sets[key] = Ref(added)
        return self._filler_sets[key]


def merge_signatures(signatures: Collection[Signature]) -> list[CallTemplate]:
    """Merge signatures that differ only in their keywords into templates with optional keywords.

    Keywords keep the order in which they were seen; a signature that contradicts the order of others is not
    merged. Keywords that all merged signatures have are required, and so is at least one if all of them have one.
    """
    groups: dict[Signature, list[Signature]] = {}
    templates: list[CallTemplate] = []
    for signature in signatures:
        positional = tuple(parameter for parameter in signature if not parameter.keyword)
        keywords = signature[len(positional) :]
        distinct = len(set(keywords)) == len(keywords)
        if signature[: len(positional)] == positional and all(p.slot for p in keywords) and distinct:
            groups.setdefault(positional, []).append(keywords)
        else:
            templates.append(template(signature, signature))
    for positional, group in groups.items():
        order: dict[Parameter, list[Parameter]] = {}
        agreeing = []
        for keywords in group:
            extended = {p: [*order.get(p, []), *keywords[max(0, i - 1) : i]] for i, p in enumerate(keywords)}
            if is_acyclic({**order, **extended}):
                order |= extended
                agreeing.append(keywords)
            else:
                templates.append(template(positional + keywords, positional + keywords))
        ordered = tuple(TopologicalSorter(order).static_order())
        in_all = set(agreeing[0]).intersection(*agreeing)
        if in_all or () in agreeing:
            templates.append(template(positional + ordered, {*positional, *in_all}))
        else:
            templates += [template(positional + ordered[i:], {*positional, p}) for i, p in enumerate(ordered)]
    return templates


def template(parameters: Signature, required: Collection[Parameter]) -> CallTemplate:
    """Return a template with these parameters, of which some are required."""
    return tuple((parameter, parameter in required) for parameter in parameters)


def is_acyclic(order: Mapping[Parameter, Iterable[Parameter]]) -> bool:
    """Return whether the parameters have a linear order in which each follows its predecessors."""
    try:
        TopologicalSorter(order).prepare()
    except CycleError:
        return False
    return True


def literal_rules(quoted: Iterable[str]) -> Rules:
    """Return the rules of all literals; strings have escapes and line breaks only if an example has them."""
    texts = list(quoted)
    escapes = {escape[1] for text in texts for escape in re.findall(r"\\.", text, re.DOTALL)}
    excluded = ['"', "\\", *(c for c in "\n\r" if not any(c in text for text in texts))]
    quote, text, escaped = Text('"'), Ref(FREE_TEXT), Ref("escaped_text")
    rules: Rules = {
        "quoted": ((quote, text, quote),),
        FREE_TEXT: repeated(FREE_TEXT, Chars.of((ord(c), ord(c)) for c in excluded).negated()),
        "NAME": repeated("NAME", NAME_CHARS),
        "NATURAL": repeated("NATURAL", DIGIT),
        "INTEGER": ((Ref("NATURAL"),), (Text("-"), Ref("NATURAL"))),
        "DECIMAL": ((Ref("INTEGER"), Text("."), Ref("NATURAL")),),
        "DATE": ((*(DIGIT,) * 4, Text("-"), digits("01"), DIGIT, Text("-"), digits("0123"), DIGIT),),
        "TIME": ((digits("012"), DIGIT, Text(":"), digits("012345"), DIGIT),),
    }
    if '""' in texts:
        rules["quoted"] += ((Text('""'),),)
    if escapes:
        marked = Chars.of((ord(c), ord(c)) for c in {*escapes, '"', "\\"})
        rules["quoted"] += ((quote, escaped, quote), (quote, escaped, text, quote))
        rules["ESCAPE"] = ((Text("\\"), marked),)
        ends = ((Ref("ESCAPE"),), (text, Ref("ESCAPE")))
        rules["escaped_text"] = (*ends, *((escaped, *end) for end in ends))
    return rules


def repeated(name: str, chars: Chars) -> tuple[Production, ...]:
    """Return the productions of one or more characters, in the form that the copy constraint recognises."""
    return (chars,), (Ref(name), chars)


def digits(allowed: str) -> Chars:
    """Return the character class of these digits."""
    return Chars.of((ord(digit), ord(digit)) for digit in allowed)


def merge_texts(symbols: Iterable[Symbol]) -> Production:
    """Concatenate adjacent texts of a production."""
    parts: list[Symbol] = []
    for symbol in symbols:
        if isinstance(symbol, Text) and parts and isinstance(last := parts[-1], Text):
            parts[-1] = Text(last.text + symbol.text)
        else:
            parts.append(symbol)
    return tuple(parts)


def merge_duplicates(rules: Rules) -> Rules:
    """Remove rules that are equal to another one or consist of a single reference; the language stays the same."""
    while True:
        first_names: dict[frozenset[Production], str] = {}
        replaced: dict[str, str] = {}
        for name, productions in rules.items():
            only = productions[0][0] if len(productions) == 1 == len(productions[0]) else None
            if name != "start" and isinstance(only, Ref):
                replaced[name] = only.name
            elif name != "start" and first_names.setdefault(frozenset(productions), name) != name:
                replaced[name] = first_names[frozenset(productions)]
        if not replaced:
            return rules
        rules = {
            name: tuple(dict.fromkeys(tuple(resolve(symbol, replaced) for symbol in p) for p in productions))
            for name, productions in rules.items()
            if name not in replaced
        }


def resolve(symbol: Symbol, replaced: Mapping[str, str]) -> Symbol:
    """Return a symbol under the name of the rule that replaces its own."""
    while isinstance(symbol, Ref) and symbol.name in replaced:
        symbol = Ref(replaced[symbol.name])
    return symbol


def renumber(rules: Mapping[str, tuple[Production, ...]], stems: Mapping[str, str]) -> Rules:
    """Rename the rules so that those with the same stem are numbered without gaps."""
    names: dict[str, str] = {}
    used_names: dict[str, str] = {}
    for name in rules:
        names[name] = fresh_name(stems.get(name, name), used_names)
        used_names[names[name]] = name
    return {
        names[name]: tuple(tuple(Ref(names[s.name]) if isinstance(s, Ref) else s for s in p) for p in productions)
        for name, productions in rules.items()
    }


def function_word(head: str) -> str:
    """Return the word that names a function; `apply` for a form without one."""
    return head.split(" ")[-1].split("(")[-1] or "apply"


def rule_name(words: str) -> str:
    """Return a valid rule name made of these words, in snake case."""
    if not any(char.isalnum() for char in words):
        words = " ".join(SIGN_NAMES.get(char, "") for char in words)
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", words).lower()
    plain = re.sub(r"[^a-z0-9]+", "_", snake).strip("_")
    return plain if plain[:1].isalpha() else f"form_{plain}".strip("_")
