"""Induce the rules of a synchronous grammar from tables: what can be called, and how it is said in English.

A type table has a row for each overload, field and literal type (`name,returnType,arg: Type,…`); the table of
templates says them (`Shift,$by past $base`). Each overload becomes one line of a rule file; the types of literals
are only declared here, and their rules are written by hand.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal, NamedTuple, NoReturn

from fewparse.grammar.readers.csv_table import Cell, Table

Kind = Literal["function", "getter", "field", "declaration"]

PLACEHOLDER = re.compile(r"\$([^ :]*)")
LEGAL_NAME = re.compile(r"[a-zA-Z][_a-zA-Z0-9]*")
NO_GETTER = ("apply", "construct", "?")


@dataclass(frozen=True)
class Induced:
    """The lines of a rule file, which lacks only the start and the rules of literals, and what was left out.

    `pruned_…` name what can never be built because nothing produces a type that it needs; `untemplated` has the
    name of a function for each of its rules that had to be worded as `(call …)`.
    """

    rules: tuple[str, ...]
    pruned_functions: tuple[str, ...]
    pruned_fields: tuple[str, ...]
    pruned_getters: tuple[str, ...]
    pruned_types: tuple[str, ...]
    untemplated: tuple[str, ...]


def induce_from_tables(types: Sequence[tuple[str, str]], templates: tuple[str, str] | None) -> Induced:
    """The rules of type tables, given as (path, text), in the order of their rows; several tables are joined."""
    tables = [Table(path, text) for path, text in types]
    entries = [read_entry(table, row) for table in tables for row in table.rows()]
    pruned, unproduced = prune(entries)
    kept = [entry for entry in entries if entry not in pruned]
    writer = Writer(read_templates(Table(*templates, templates=True)) if templates else {}, kept)
    left_out: defaultdict[Kind, list[str]] = defaultdict(list)
    for entry in entries:
        if entry in pruned:
            left_out[entry.kind].append(entry.title)
    return Induced(
        rules=("empty -> #e , #e", *(rule for entry in kept for rule in writer.rules(entry))),
        pruned_functions=tuple(left_out["function"]),
        pruned_fields=tuple(left_out["field"]),
        pruned_getters=tuple(left_out["getter"]),
        pruned_types=tuple(unproduced),
        untemplated=tuple(e.name for e in kept if e.kind == "function" and not writer.templates(e)),
    )


class Argument(NamedTuple):
    """A named argument; its name is also its placeholder in templates."""

    name: str
    type: str


@dataclass(frozen=True, eq=False)
class Entry:
    """A row of a type table: something that builds a value of a type out of arguments.

    `key` is the name under which its templates are written. A getter's one argument is the object, called by its
    type's name; a field's is its value.
    """

    kind: Kind
    key: str
    name: str
    type: str
    arguments: tuple[Argument, ...]
    table: Table
    at: int

    @property
    def title(self) -> str:
        """The name under which a user knows it."""
        if self.kind == "getter":
            return f"{self.arguments[0].type}.{self.name}"
        return f"{self.type}.{self.name}" if self.kind == "field" else self.name


def read_entry(table: Table, row: list[Cell]) -> Entry:
    """One row; its name tells what it is."""
    layout = "A row is written name,returnType,arg: Type,…"
    if len(row) < 2 or not row[0].text or not row[1].text:
        table.fail("a row needs a name and a return type", row[0].at, layout)
    (name, at), returns = row[:2]
    check_type(table, returns.text, returns.at)
    arguments = tuple(read_argument(table, cell) for cell in row[2:])
    if name.startswith("Setter:"):
        if len(arguments) != 2:
            hint = "A field is written Setter:Type.field,Type,Type: Type,field: FieldType"
            table.fail(f"a setter has two arguments, and this one has {len(arguments)}", at, hint)
        return Entry("field", returns.text, arguments[1].name, returns.text, arguments[1:], table, at)
    if "." in name and not name.endswith(NO_GETTER) and name != "List.Nil":
        owner, _, field = name.rpartition(".")
        check_type(table, owner, at)
        return Entry("getter", name, field, returns.text, (Argument(owner, owner),), table, at)
    if name == "item":
        if not arguments:
            table.fail("`item` needs an argument: the object that it is an item of", at, layout)
        owner = arguments[0].type
        return Entry("getter", "", name, returns.text, (Argument(owner, owner),), table, at)
    lambda_type = returns.text.startswith("Lambda") and name != "Lambda.construct"
    kind: Kind = "declaration" if lambda_type or name.startswith("#") else "function"
    repeated = [argument for argument, count in Counter(a.name for a in arguments).items() if count > 1]
    if repeated and kind == "function":
        table.fail(f"`{shown(name)}` has two arguments called `{shown(repeated[0])}`", at)
    return Entry(kind, name, name, returns.text, arguments if kind == "function" else (), table, at)


def read_argument(table: Table, cell: Cell) -> Argument:
    """A cell that reads `arg: Type`."""
    name, _, type_ = (part.strip() for part in cell.text.partition(":"))
    if not name or not type_ or " " in name:
        table.fail(f"expected `arg: Type`, not `{shown(cell.text)}`", cell.at, "For example, start: DateTime")
    check_type(table, type_, cell.at)
    return Argument(name, type_)


def check_type(table: Table, type_: str, at: int) -> None:
    """Refuse a type that no nonterminal can be named after."""
    if not LEGAL_NAME.fullmatch(nonterminal(type_)):
        hint = "Types are written with letters, digits, _ and brackets, and begin with a letter."
        table.fail(f"`{shown(type_)}` cannot be the name of a type", at, hint)


def prune(entries: Sequence[Entry]) -> tuple[set[Entry], list[str]]:
    """The entries that need a type that nothing produces, with what that leaves unproduced, and all such types.

    A type with fields can be written without any, so losing them all does not lose the type.
    """
    producers = Counter(entry.type for entry in entries)
    users: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        for type_ in dict.fromkeys(argument.type for argument in entry.arguments):
            users[type_].append(entry)
    dropped: set[Entry] = set()
    unproduced = [type_ for type_ in users if not producers[type_]]
    for type_ in unproduced:
        for user in users[type_]:
            if user not in dropped:
                dropped.add(user)
                producers[user.type] -= user.kind != "field"
                if not producers[user.type]:
                    unproduced.append(user.type)
    return dropped, unproduced


class Template(NamedTuple):
    """Literal text and placeholders in turn, beginning and ending with text."""

    pieces: list[str]
    at: int

    @property
    def placeholders(self) -> frozenset[str]:
        """The names behind the dollar signs."""
        return frozenset(self.pieces[1::2])


class Phrases:
    """The templates of one name, found by their placeholders; the first of several is taken."""

    def __init__(self, table: Table, row: list[Cell]) -> None:
        self.table = table
        self.at = row[0].at
        self.templates = [Template(PLACEHOLDER.split(cell.text), cell.at) for cell in row[1:]]
        self._fitting = {template.placeholders: template for template in reversed(self.templates)}

    def fitting(self, arguments: Iterable[str]) -> Template | None:
        """The first template with just these placeholders."""
        return self._fitting.get(frozenset(arguments))


def read_templates(table: Table) -> dict[str, Phrases]:
    """The templates by name."""
    phrases: dict[str, Phrases] = {}
    for row in table.rows():
        name = row[0].text.strip()
        if not name:
            table.fail("these templates belong to no name", row[0].at, "A row is written name,template,…")
        if name in phrases:
            line, _ = table.place(phrases[name].at)
            hint = f"The other row is line {line}: put all templates of a name into one row."
            table.fail(f"`{shown(name)}` has two rows of templates", row[0].at, hint)
        phrases[name] = Phrases(table, row)
    return phrases


class Writer:
    """Writes the rules of entries."""

    def __init__(self, phrases: Mapping[str, Phrases], entries: Iterable[Entry]) -> None:
        self._phrases = phrases
        self._arguments: defaultdict[str, set[str]] = defaultdict(set)
        for entry in entries:
            self._arguments[entry.key].update(argument.name for argument in entry.arguments)
        self._leads: dict[str, list[str]] = {}

    def templates(self, entry: Entry) -> Phrases | None:
        """The templates that were written for an entry, if there are any."""
        phrases = self._phrases.get(entry.key)
        return phrases if phrases and phrases.templates else None

    def rules(self, entry: Entry) -> Iterator[str]:
        """The lines for one entry."""
        name, slots = nonterminal(entry.type), [nonterminal(argument.type) for argument in entry.arguments]
        if entry.kind == "function":
            utterance = self._worded(entry) or called(entry)
            program = [quoted(f" ({entry.name}")]
            for argument, slot in zip(entry.arguments, slots, strict=True):
                program += [quoted(f" :{argument.name}"), slot] if entry.name[0].isupper() else [slot]
            yield rule(name, utterance, [*program, quoted(")")])
        elif entry.kind == "getter":
            utterance = self._worded(entry) or [quoted(f"{entry.name} of "), *slots]
            yield rule(name, utterance, [quoted(f" (:{entry.name}"), *slots, quoted(")")])
        elif entry.kind == "field":
            rest = f"{name}_{name}_args"
            if entry.type not in self._leads:
                lead = self._leads[entry.type] = self._lead(entry)
                yield rule(name, [*lead, rest], [quoted(f" ({entry.type}"), rest, quoted(")")])
                yield f"{rest} -> #e , #e"
            said = self._worded(entry)
            if said is None:
                said = [quoted(f" with {entry.name} set to "), *slots]
            elif self._leads[entry.type]:
                said = [quoted(" "), *said]
            yield rule(rest, [*said, rest], [quoted(f" :{entry.name}"), *slots, rest])

    def _lead(self, entry: Entry) -> list[str]:
        """How a type with fields begins: the first template of the type, if it has any text."""
        phrases = self.templates(entry)
        if phrases is None:
            return []
        template = phrases.templates[0]
        if template.placeholders:
            hint = "The first template of a type with fields is plain text; those of its fields follow."
            self._refuse_placeholder(phrases, template, template.pieces[1], entry, hint)
        return [quoted(template.pieces[0])] if template.pieces[0] else []

    def _worded(self, entry: Entry) -> list[str] | None:
        """An entry in the words of its template; None where none was written."""
        phrases = self.templates(entry)
        if phrases is None:
            return None
        template = phrases.fitting(argument.name for argument in entry.arguments)
        if template is None:
            return None if entry.kind == "field" else self._refuse_misfit(entry, phrases)
        slots = {argument.name: nonterminal(argument.type) for argument in entry.arguments}
        texts = (quoted(piece) if piece else "" for piece in template.pieces[::2])
        names = (slots[piece] for piece in template.pieces[1::2])
        words = [word for pair in zip_longest(texts, names) for word in pair if word]
        return words or ["#e"]

    def _refuse_misfit(self, entry: Entry, phrases: Phrases) -> NoReturn:
        known = self._arguments[entry.key]
        for template in phrases.templates:
            for placeholder in template.pieces[1::2]:
                if placeholder not in known:
                    hint = f"It may use {listed(known)}."
                    self._refuse_placeholder(phrases, template, placeholder, entry, hint)
        line, _ = entry.table.place(entry.at)
        wanted = listed(argument.name for argument in entry.arguments)
        found = "; ".join(listed(template.placeholders) for template in phrases.templates[:5])
        phrases.table.fail(
            f"no template of `{shown(entry.title)}` has just {wanted}",
            phrases.at,
            f"That is what {entry.table.path}:{line} needs. Found: {found}.",
        )

    def _refuse_placeholder(self, phrases: Phrases, at: Template, name: str, entry: Entry, hint: str) -> NoReturn:
        place = max(at.at, phrases.table.text.find(f"${name}", at.at))
        phrases.table.fail(f"`${shown(name)}` is no argument of `{shown(entry.key)}`", place, hint)


def called(entry: Entry) -> list[str]:
    """A function without templates, worded by its name and those of its arguments."""
    words = [quoted(f"(call {entry.name}")]
    for place, (name, type_) in enumerate(entry.arguments):
        words += [quoted(" and " if place else " with "), quoted(f"{name} set to "), nonterminal(type_)]
    return [*words, quoted(")")]


def rule(name: str, utterance: Iterable[str], program: Iterable[str]) -> str:
    """A line; both sides end in `empty`, which makes a rule without arguments as deep as one with them."""
    return f"{name} -> {' '.join(utterance)} empty , {' '.join(program)} empty"


def nonterminal(type_: str) -> str:
    """The nonterminal of a type."""
    return type_.lower().replace("[", "_").replace("]", "_")


def quoted(text: str) -> str:
    """A terminal."""
    return json.dumps(text, ensure_ascii=False)


def listed(names: Iterable[str]) -> str:
    """Placeholders for a message."""
    names = sorted(names)
    return ", ".join(f"${shown(name)}" for name in names[:8]) + ", …" * (len(names) > 8) or "no placeholder"


def shown(text: str) -> str:
    """A text for a message, cut where it is long."""
    return text if len(text) <= 60 else f"{text[:57]}…"
