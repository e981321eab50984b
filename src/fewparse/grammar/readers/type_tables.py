"""Generate the rules of a synchronous grammar from tables of function signatures and English templates.

A type table has a row for each overload, field and literal type (`name,returnType,arg: Type,…`); the template
table has their wording (`Shift,$by past $base`). Each overload becomes one line of an `.scfg` file; literal types
are only declared in the tables, and their rules are written by hand.
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
class TableRules:
    """The lines of an `.scfg` file without the start rule and the rules of literals, and the omitted entries.

    `pruned_…`: entries that can never be built, because nothing produces a type that they need. `untemplated`:
    the name of the function for each rule that has no template and is worded as `(call …)`.
    """

    rules: tuple[str, ...]
    pruned_functions: tuple[str, ...]
    pruned_fields: tuple[str, ...]
    pruned_getters: tuple[str, ...]
    pruned_types: tuple[str, ...]
    untemplated: tuple[str, ...]


def rules_from_tables(types: Sequence[tuple[str, str]], templates: tuple[str, str] | None) -> TableRules:
    """Return the rules of type tables and a template table, given as (path, text), in the order of their rows.

    Several type tables are concatenated. Raises GrammarError for a mistake in a table.
    """
    tables = [Table(path, text) for path, text in types]
    entries = [read_entry(table, row) for table in tables for row in table.rows()]
    pruned, unproduced = prune(entries)
    remaining = [entry for entry in entries if entry not in pruned]
    writer = RuleWriter(read_templates(Table(*templates, templates=True)) if templates else {}, remaining)
    titles: defaultdict[Kind, list[str]] = defaultdict(list)
    for entry in entries:
        if entry in pruned:
            titles[entry.kind].append(entry.title)
    return TableRules(
        rules=("empty -> #e , #e", *(rule for entry in remaining for rule in writer.rules(entry))),
        pruned_functions=tuple(titles["function"]),
        pruned_fields=tuple(titles["field"]),
        pruned_getters=tuple(titles["getter"]),
        pruned_types=tuple(unproduced),
        untemplated=tuple(e.name for e in remaining if e.kind == "function" and not writer.templates(e)),
    )


class Argument(NamedTuple):
    """A named argument; its name is also its placeholder in templates."""

    name: str
    type: str


@dataclass(frozen=True, eq=False)
class Entry:
    """A row of a type table: a constructor of values of a type from arguments.

    `key` is the name of its row in the template table. The only argument of a getter is the object, named after
    its type; the only argument of a field is the field's value.
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
        """The qualified name, for messages."""
        if self.kind == "getter":
            return f"{self.arguments[0].type}.{self.name}"
        return f"{self.type}.{self.name}" if self.kind == "field" else self.name


def read_entry(table: Table, row: list[Cell]) -> Entry:
    """Read one row; its kind follows from its name."""
    layout = "A row is written name,returnType,arg: Type,…"
    if len(row) < 2 or not row[0].text or not row[1].text:
        table.fail("a row needs a name and a return type", row[0].at, layout)
    (name, at), returns = row[:2]
    check_type(table, returns.text, returns.at)
    arguments = tuple(read_argument(table, cell) for cell in row[2:])
    if name.startswith("Setter:"):
        if len(arguments) != 2:
            hint = "A field is written Setter:Type.field,Type,Type: Type,field: FieldType"
            table.fail(f"a setter has two arguments, but this one has {len(arguments)}", at, hint)
        return Entry("field", returns.text, arguments[1].name, returns.text, arguments[1:], table, at)
    if "." in name and not name.endswith(NO_GETTER) and name != "List.Nil":
        owner, _, field = name.rpartition(".")
        check_type(table, owner, at)
        return Entry("getter", name, field, returns.text, (Argument(owner, owner),), table, at)
    if name == "item":
        if not arguments:
            table.fail("`item` needs an argument: the object that contains it", at, layout)
        owner = arguments[0].type
        return Entry("getter", "", name, returns.text, (Argument(owner, owner),), table, at)
    lambda_type = returns.text.startswith("Lambda") and name != "Lambda.construct"
    kind: Kind = "declaration" if lambda_type or name.startswith("#") else "function"
    repeated = [argument for argument, count in Counter(a.name for a in arguments).items() if count > 1]
    if repeated and kind == "function":
        table.fail(f"`{shown(name)}` has two arguments called `{shown(repeated[0])}`", at)
    return Entry(kind, name, name, returns.text, arguments if kind == "function" else (), table, at)


def read_argument(table: Table, cell: Cell) -> Argument:
    """Read a cell of the form `arg: Type`."""
    name, _, type_ = (part.strip() for part in cell.text.partition(":"))
    if not name or not type_ or " " in name:
        table.fail(f"expected `arg: Type`, not `{shown(cell.text)}`", cell.at, "For example, start: DateTime")
    check_type(table, type_, cell.at)
    return Argument(name, type_)


def check_type(table: Table, type_: str, at: int) -> None:
    """Raise GrammarError if the name of a type cannot be made the name of a nonterminal."""
    if not LEGAL_NAME.fullmatch(nonterminal(type_)):
        hint = "Types are written with letters, digits, _ and brackets, and begin with a letter."
        table.fail(f"`{shown(type_)}` cannot be the name of a type", at, hint)


def prune(entries: Sequence[Entry]) -> tuple[set[Entry], list[str]]:
    """Return the entries that need a type that nothing produces, transitively, and all such types.

    A type with fields can be written without any, so it stays produced if all its fields are pruned.
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
    """Literal text and placeholders, alternating; the first and the last piece are text."""

    pieces: list[str]
    at: int

    @property
    def placeholders(self) -> frozenset[str]:
        """The names after the dollar signs."""
        return frozenset(self.pieces[1::2])


class Templates:
    """One row of the template table; of several templates with the same placeholders, the first is used."""

    def __init__(self, table: Table, row: list[Cell]) -> None:
        self.table = table
        self.at = row[0].at
        self.all = [Template(PLACEHOLDER.split(cell.text), cell.at) for cell in row[1:]]
        self._by_placeholders = {template.placeholders: template for template in reversed(self.all)}

    def matching(self, arguments: Iterable[str]) -> Template | None:
        """Return the first template with exactly these placeholders."""
        return self._by_placeholders.get(frozenset(arguments))


def read_templates(table: Table) -> dict[str, Templates]:
    """Return the rows of the template table by name."""
    rows: dict[str, Templates] = {}
    for row in table.rows():
        name = row[0].text.strip()
        if not name:
            table.fail("these templates have no name", row[0].at, "A row is written name,template,…")
        if name in rows:
            line = table.line(rows[name].at)
            hint = f"The other row is line {line}: put all templates of a name into one row."
            table.fail(f"`{shown(name)}` has two rows of templates", row[0].at, hint)
        rows[name] = Templates(table, row)
    return rows


class RuleWriter:
    """Writes the rules of entries, given the rows of the template table."""

    def __init__(self, rows: Mapping[str, Templates], entries: Iterable[Entry]) -> None:
        self._rows = rows
        self._arguments: defaultdict[str, set[str]] = defaultdict(set)
        for entry in entries:
            self._arguments[entry.key].update(argument.name for argument in entry.arguments)
        self._openings: dict[str, list[str]] = {}

    def templates(self, entry: Entry) -> Templates | None:
        """Return the templates of an entry; None if there are none."""
        templates = self._rows.get(entry.key)
        return templates if templates and templates.all else None

    def rules(self, entry: Entry) -> Iterator[str]:
        """Yield the `.scfg` lines of an entry."""
        name, slots = nonterminal(entry.type), [nonterminal(argument.type) for argument in entry.arguments]
        if entry.kind == "function":
            utterance = self._worded(entry) or default_words(entry)
            program = [quoted(f" ({entry.name}")]
            for argument, slot in zip(entry.arguments, slots, strict=True):
                program += [quoted(f" :{argument.name}"), slot] if entry.name[0].isupper() else [slot]
            yield rule(name, utterance, [*program, quoted(")")])
        elif entry.kind == "getter":
            utterance = self._worded(entry) or [quoted(f"{entry.name} of "), *slots]
            yield rule(name, utterance, [quoted(f" (:{entry.name}"), *slots, quoted(")")])
        elif entry.kind == "field":
            rest = f"{name}_{name}_args"
            if entry.type not in self._openings:
                opening = self._openings[entry.type] = self._opening(entry)
                yield rule(name, [*opening, rest], [quoted(f" ({entry.type}"), rest, quoted(")")])
                yield f"{rest} -> #e , #e"
            words = self._worded(entry)
            if words is None:
                words = [quoted(f" with {entry.name} set to "), *slots]
            elif self._openings[entry.type]:
                words = [quoted(" "), *words]
            yield rule(rest, [*words, rest], [quoted(f" :{entry.name}"), *slots, rest])

    def _opening(self, entry: Entry) -> list[str]:
        """Return the words before the fields of a type: its first template, if that has any text."""
        templates = self.templates(entry)
        if templates is None:
            return []
        template = templates.all[0]
        if template.placeholders:
            hint = "The first template of a type with fields is plain text; those of its fields follow."
            self._fail_placeholder(templates, template, template.pieces[1], entry, hint)
        return [quoted(template.pieces[0])] if template.pieces[0] else []

    def _worded(self, entry: Entry) -> list[str] | None:
        """Return the words of an entry by its template; None if it has none."""
        templates = self.templates(entry)
        if templates is None:
            return None
        template = templates.matching(argument.name for argument in entry.arguments)
        if template is None:
            return None if entry.kind == "field" else self._fail_mismatch(entry, templates)
        slots = {argument.name: nonterminal(argument.type) for argument in entry.arguments}
        texts = (quoted(piece) if piece else "" for piece in template.pieces[::2])
        names = (slots[piece] for piece in template.pieces[1::2])
        words = [word for pair in zip_longest(texts, names) for word in pair if word]
        return words or ["#e"]

    def _fail_mismatch(self, entry: Entry, templates: Templates) -> NoReturn:
        known = self._arguments[entry.key]
        for template in templates.all:
            for placeholder in template.pieces[1::2]:
                if placeholder not in known:
                    hint = f"It may use {listed_placeholders(known)}."
                    self._fail_placeholder(templates, template, placeholder, entry, hint)
        line = entry.table.line(entry.at)
        needed = listed_placeholders(argument.name for argument in entry.arguments)
        found = "; ".join(listed_placeholders(template.placeholders) for template in templates.all[:5])
        templates.table.fail(
            f"no template of `{shown(entry.title)}` has exactly {needed}",
            templates.at,
            f"{entry.table.path}:{line} needs one. Found: {found}.",
        )

    def _fail_placeholder(
        self, templates: Templates, template: Template, name: str, entry: Entry, hint: str
    ) -> NoReturn:
        at = max(template.at, templates.table.text.find(f"${name}", template.at))
        templates.table.fail(f"`${shown(name)}` is not an argument of `{shown(entry.key)}`", at, hint)


def default_words(entry: Entry) -> list[str]:
    """Return the words of a function without templates: its name and the names of its arguments."""
    words = [quoted(f"(call {entry.name}")]
    for index, (name, type_) in enumerate(entry.arguments):
        words += [quoted(" and " if index else " with "), quoted(f"{name} set to "), nonterminal(type_)]
    return [*words, quoted(")")]


def rule(name: str, utterance: Iterable[str], program: Iterable[str]) -> str:
    """Return an `.scfg` line; both sides end in `empty`, so that rules without arguments are as deep as others."""
    return f"{name} -> {' '.join(utterance)} empty , {' '.join(program)} empty"


def nonterminal(type_: str) -> str:
    """Return the nonterminal of a type."""
    return type_.lower().replace("[", "_").replace("]", "_")


def quoted(text: str) -> str:
    """Return a terminal."""
    return json.dumps(text, ensure_ascii=False)


def listed_placeholders(names: Iterable[str]) -> str:
    """Join placeholders for a message; long lists are shortened."""
    names = sorted(names)
    return ", ".join(f"${shown(name)}" for name in names[:8]) + ", …" * (len(names) > 8) or "no placeholder"


def shown(text: str) -> str:
    """Truncate a text for a message."""
    return text if len(text) <= 60 else f"{text[:57]}…"
