"""Write what examples show about functions and their slots as the rules of a lean grammar with readable names."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from fewparse.grammar.induction.sexpr import Part, Shape
from fewparse.grammar.rules import Chars, Grammar, Production, Ref, Symbol, Text, fresh_name, trim

Rules = dict[str, tuple[Production, ...]]
Template = tuple[tuple[Part, bool], ...]
"""Arguments in their order, and whether each is needed."""

DIGIT = Chars.of([(ord("0"), ord("9"))])
LETTERS = Chars.of([(ord("a"), ord("z")), (ord("A"), ord("Z"))])
NAME_CHARS = Chars.of([*LETTERS.ranges, *DIGIT.ranges, (ord("_"), ord("_")), (ord("-"), ord("-"))])
FREE_TEXT = "TEXT"
"""The rule of what stands between quotes."""
LITERALS = {
    "NATURAL": re.compile(r"[0-9]+"),
    "INTEGER": re.compile(r"-[0-9]+"),
    "DECIMAL": re.compile(r"-?[0-9]+\.[0-9]+"),
    "DATE": re.compile(r"[0-9]{4}-[01][0-9]-[0-3][0-9]"),
    "TIME": re.compile(r"[0-2][0-9]:[0-5][0-9]"),
}
SIGNS = {"=": "equal", "<": "less", ">": "greater", "~": "like", "+": "plus", "-": "minus", "*": "times"}


@dataclass(frozen=True)
class Function:
    """What counts as one function: a head, with its shape or the slot around it where they matter."""

    head: str
    shape: Shape | None = None
    within: "Slot | None" = None


@dataclass(frozen=True)
class Slot:
    """A place for an expression."""

    function: Function
    name: str


@dataclass(frozen=True)
class Constant:
    """A bare word that is no literal."""

    word: str


@dataclass(frozen=True)
class Kind:
    """A class of literals, known by the name of its rule."""

    rule: str


@dataclass(frozen=True)
class Family:
    """Words of a common form."""

    form: Production


Filler = Function | Constant | Kind | Family
PROGRAM = Slot(Function(""), "start")
QUOTED = Kind("quoted")


def kind_of(word: str) -> Kind | None:
    """The class of a literal that is a word."""
    return next((Kind(rule) for rule, pattern in LITERALS.items() if pattern.fullmatch(word)), None)


def compose(
    functions: Mapping[Function, Collection[Shape]],
    slots: Mapping[Slot, tuple[Filler, ...]],
    quoted: Iterable[str],
    optional_keywords: bool,
) -> Grammar:
    """The grammar of functions with these shapes, whose slots take these fillers.

    `quoted` are the texts of the examples, which decide what a text may hold.
    """
    composer = Composer(functions, slots, quoted)
    for function, shapes in functions.items():
        composer.write(function, shapes, optional_keywords)
    composer.rules["start"] = composer.alternatives(slots[PROGRAM])
    return Grammar(numbered(trim(Grammar(merge_equal(composer.rules))).grammar.rules, composer.stems))


class Composer:
    """The rules made so far."""

    def __init__(
        self, functions: Iterable[Function], slots: Mapping[Slot, tuple[Filler, ...]], quoted: Iterable[str]
    ) -> None:
        self.rules: Rules = {"start": (), **literal_rules(quoted)}
        self.stems: dict[str, str] = {}
        self._slots = slots
        self._names = {function: self._reserve(last_word(function.head)) for function in functions}
        self._sets: dict[frozenset[Filler], Ref] = {}
        self._options: dict[tuple[Function, Part], Ref] = {}
        self._users: dict[frozenset[Filler], set[str]] = {}
        for slot, fillers in slots.items():
            self._users.setdefault(frozenset(fillers), set()).add(slot.function.head)

    def write(self, function: Function, shapes: Collection[Shape], optional_keywords: bool) -> None:
        """The rule of a function: all ways to call it."""
        templates = optional(shapes) if optional_keywords else [tuple((part, True) for part in s) for s in shapes]
        self.rules[self._names[function]] = tuple(self._production(function, template) for template in templates)

    def _production(self, function: Function, template: Template) -> Production:
        symbols: list[Symbol] = [Text(function.head)]
        for part, needed in template:
            blank = "" if len(symbols) == 1 and function.head.endswith("(") else " "
            argument = self._argument(function, part, blank)
            symbols += argument if needed else (self._option(function, part, argument),)
        return joined([*symbols, Text(")")])

    def _argument(self, function: Function, part: Part, blank: str) -> Production:
        if not part.keyword:
            return (Text(blank), self._slot(Slot(function, part.slot)))
        if not part.slot:
            return (Text(blank + part.keyword),)
        return (Text(f"{blank}{part.keyword} "), self._slot(Slot(function, part.slot)))

    def _option(self, function: Function, part: Part, argument: Production) -> Ref:
        if (function, part) not in self._options:
            name = self._reserve(f"{self._names[function]} maybe {part.keyword}")
            self.rules[name] = ((), argument)
            self._options[function, part] = Ref(name)
        return self._options[function, part]

    def _reserve(self, wish: str) -> str:
        name = fresh_name(readable(wish), self.rules)
        self.stems[name] = readable(wish)
        self.rules[name] = ()
        return name

    def alternatives(self, fillers: Iterable[Filler]) -> tuple[Production, ...]:
        """One production a filler."""
        return tuple(self._filler(filler) for filler in fillers)

    def _filler(self, filler: Filler) -> Production:
        if isinstance(filler, Function):
            return (Ref(self._names[filler]),)
        if isinstance(filler, Constant):
            return (Text(filler.word),)
        if isinstance(filler, Family):
            return filler.form
        return (Ref(filler.rule),)

    def _slot(self, slot: Slot) -> Symbol:
        """What stands for the fillers of a slot: the only one itself, or a rule for their set."""
        fillers = self._slots[slot]
        key = frozenset(fillers)
        if key not in self._sets:
            productions = self.alternatives(fillers)
            if len(productions) == len(productions[0]) == 1:
                return productions[0][0]
            general = len(self._users[key]) > 1 and any(isinstance(filler, Function) for filler in fillers)
            name = "arg" + slot.name if slot.name.isdigit() else slot.name
            reserved = self._reserve("expr" if general else f"{last_word(slot.function.head)} {name}")
            self.rules[reserved] = productions
            self._sets[key] = Ref(reserved)
        return self._sets[key]


def optional(shapes: Collection[Shape]) -> list[Template]:
    """The shapes, where those that differ only in their keywords become one in which such keywords are optional.

    Keywords keep the order in which they were seen; a shape that contradicts the order of others stays as it is.
    """
    groups: dict[Shape, list[Shape]] = {}
    templates: list[Template] = []
    for shape in shapes:
        fixed = tuple(part for part in shape if not part.keyword)
        named = shape[len(fixed) :]
        if shape[: len(fixed)] == fixed and all(p.slot for p in named) and len(set(named)) == len(named):
            groups.setdefault(fixed, []).append(named)
        else:
            templates.append(needing(shape, shape))
    for fixed, choices in groups.items():
        order: dict[Part, list[Part]] = {}
        agreeing = []
        for named in choices:
            wider = {part: [*order.get(part, []), *named[max(0, i - 1) : i]] for i, part in enumerate(named)}
            if acyclic({**order, **wider}):
                order |= wider
                agreeing.append(named)
            else:
                templates.append(needing(fixed + named, fixed + named))
        line = tuple(TopologicalSorter(order).static_order())
        always = set(agreeing[0]).intersection(*agreeing)
        if always or () in agreeing:
            templates.append(needing(fixed + line, {*fixed, *always}))
        else:
            templates += [needing(fixed + line[i:], {*fixed, part}) for i, part in enumerate(line)]
    return templates


def needing(parts: Shape, needed: Collection[Part]) -> Template:
    """A template with these parts, some of them needed."""
    return tuple((part, part in needed) for part in parts)


def acyclic(order: Mapping[Part, Iterable[Part]]) -> bool:
    """Whether parts can stand in a line, each behind those that are said to come before it."""
    try:
        TopologicalSorter(order).prepare()
    except CycleError:
        return False
    return True


def literal_rules(quoted: Iterable[str]) -> Rules:
    """The rules of all literals. A text has no escapes and line breaks unless an example has one."""
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
    """One or more characters of a class, in the form that the copy option understands."""
    return (chars,), (Ref(name), chars)


def digits(allowed: str) -> Chars:
    """One of these digits."""
    return Chars.of((ord(digit), ord(digit)) for digit in allowed)


def joined(symbols: Iterable[Symbol]) -> Production:
    """A production in which no text stands beside another."""
    parts: list[Symbol] = []
    for symbol in symbols:
        if isinstance(symbol, Text) and parts and isinstance(last := parts[-1], Text):
            parts[-1] = Text(last.text + symbol.text)
        else:
            parts.append(symbol)
    return tuple(parts)


def merge_equal(rules: Rules) -> Rules:
    """The same language without rules that say the same as another, or that are only another name for one."""
    while True:
        known: dict[frozenset[Production], str] = {}
        same: dict[str, str] = {}
        for name, productions in rules.items():
            only = productions[0][0] if len(productions) == 1 == len(productions[0]) else None
            if name != "start" and isinstance(only, Ref):
                same[name] = only.name
            elif name != "start" and known.setdefault(frozenset(productions), name) != name:
                same[name] = known[frozenset(productions)]
        if not same:
            return rules
        rules = {
            name: tuple(dict.fromkeys(tuple(renamed(symbol, same) for symbol in p) for p in productions))
            for name, productions in rules.items()
            if name not in same
        }


def renamed(symbol: Symbol, same: Mapping[str, str]) -> Symbol:
    """A symbol under the name that is kept."""
    while isinstance(symbol, Ref) and symbol.name in same:
        symbol = Ref(same[symbol.name])
    return symbol


def numbered(rules: Mapping[str, tuple[Production, ...]], stems: Mapping[str, str]) -> Rules:
    """The same rules, where those whose names have the same stem are numbered without gaps."""
    names: dict[str, str] = {}
    taken: dict[str, str] = {}
    for name in rules:
        names[name] = fresh_name(stems.get(name, name), taken)
        taken[names[name]] = name
    return {
        names[name]: tuple(tuple(Ref(names[s.name]) if isinstance(s, Ref) else s for s in p) for p in productions)
        for name, productions in rules.items()
    }


def last_word(head: str) -> str:
    """The word that names a function; forms without one are applications."""
    return head.split(" ")[-1].split("(")[-1] or "apply"


def readable(wish: str) -> str:
    """A legal name of a rule that is like a wish."""
    if not any(char.isalnum() for char in wish):
        wish = " ".join(SIGNS.get(char, "") for char in wish)
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", wish).lower()
    plain = re.sub(r"[^a-z0-9]+", "_", snake).strip("_")
    return plain if plain[:1].isalpha() else f"form_{plain}".strip("_")
