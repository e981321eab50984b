"""Rules made from the schema: columns and their known values, tables, and their occurrences in joins."""

from collections.abc import Iterator

from fewparse.domains.sql.database import Column, Database, ForeignKey, Table
from fewparse.domains.sql.english import ORDINALS, Phrases, value_phrase
from fewparse.domains.sql.identifiers import identifier, string_literal
from fewparse.domains.sql.scopes import Member, Scopes
from fewparse.domains.sql.types import KEY_KINDS, KINDS, kind_of
from fewparse.domains.sql.value_sets import value_sets
from fewparse.grammar.rules import Production, Ref, Symbol, Text
from fewparse.grammar.synchronous import PairedRule, Pairing

PREFIXED = (*KINDS, "num", "key", "any", "simple", "osimple")
"""What a table within a join has: what the table has, with its name as a prefix."""
JOINED = (
    *KINDS,
    *("num", "key", "simple", "osimple", "exists", "oexists"),
    *("item", "agg", "aint", "adec", "atext", "adate", "atime", "adatetime"),
)
"""What a join has from its tables."""
FOLLOWING = ("irest", "drest", "arest", "grest")
"""What may follow after something of a table: what may follow in one of the joins with it."""
MAX_TWIN_COLUMNS = 1_000
"""Databases with more columns have no rules for rows of a table that have the same value in a column."""


def item_name(database: Database) -> str:
    """Return the name of a derived table's column: no column of the database has it."""
    taken = {column.name.casefold() for table in database.tables for column in table.columns}
    name = "item"
    while name in taken:
        name += "_"
    return name


def same(name: str, *symbols: Ref) -> PairedRule:
    """Return a rule that is the same on both sides."""
    return PairedRule(name, symbols, (Pairing(symbols, tuple(range(len(symbols)))),))


def text_rule(name: str, english: str, sql: str) -> PairedRule:
    """Return a rule for a text of both sides."""
    return PairedRule(name, text(sql), (Pairing(text(english), (None,) if sql else ()),))


def text(found: str) -> Production:
    """Return the production of a text."""
    return (Text(found),) if found else ()


class SchemaRules:
    """The rules of columns, tables and members; identifiers are those of the templates' parameters."""

    def __init__(self, database: Database, phrases: Phrases, scopes: Scopes) -> None:
        self.scopes = scopes
        self.phrases = phrases
        self.table_ids: dict[str, str] = {}
        for name in scopes.tables:
            slug = "".join(char for char in name.lower() if char.isascii() and char.isalnum()) or "table"
            number = sum(known.startswith(slug) for known in self.table_ids.values())
            self.table_ids[name] = f"{slug}X{number}" if number else slug
        self.value_sets: dict[tuple[str, ...], str] = {}
        self._values = value_sets(database)
        self._columns: dict[tuple[str, str], Ref] = {}
        columns = sum(len(table.columns) for table in database.tables)
        self.has_twins = columns <= MAX_TWIN_COLUMNS

    def member_id(self, member: Member) -> str:
        """Return the identifier of an occurrence of a table."""
        return f"{self.table_ids[member.table]}Q{member.number}"

    def table_rules(self, table: Table) -> Iterator[PairedRule]:
        """Yield the rules of a table in a scope of its own, where its columns have no prefix."""
        table_id = self.table_ids[table.name]
        yield same(f"has_{table_id}", Ref("have"))
        for column in table.columns:
            ref = self._column(table, column)
            kind = kind_of(column)
            yield same(f"{kind}_{table_id}", ref)
            if kind in KEY_KINDS:
                yield same(f"key_{table_id}", ref)
            values = self._values.get((table.name, column.name))
            if values is not None:
                choices = self.value_sets.setdefault(values, f"V{len(self.value_sets)}")
                yield same(f"simple_{table_id}", ref, Ref(f"choice_{choices}"))
            elif kind == "text":
                yield same(f"free_{table_id}", ref)

    def _column(self, table: Table, column: Column) -> Ref:
        """Return the nonterminal of a column; columns with the same name and phrase share it."""
        key = self.phrases.columns[table.name, column.name], identifier(column.name)
        return self._columns.setdefault(key, Ref(f"column_{len(self._columns)}"))

    def shared_rules(self) -> Iterator[PairedRule]:
        """Yield the rules of column names and known values, after those of all tables."""
        for (phrase, name), ref in self._columns.items():
            yield text_rule(ref.name, phrase, name)
        for values, choices in self.value_sets.items():
            for value in values:
                yield text_rule(f"value_{choices}", value_phrase(value), string_literal(value))

    def member_rules(self, member: Member) -> Iterator[PairedRule]:
        """Yield the rules of an occurrence of a table whose columns have its name as a prefix."""
        table, table_id, member_id = member.table, self.table_ids[member.table], self.member_id(member)
        ordinal = f"{ORDINALS[member.number]} " if member.number > 1 else ""
        one, many = ordinal + self.phrases.singular[table], ordinal + self.phrases.plural[table]
        name, written = identifier(self.scopes.alias(member)), identifier(table)
        yield text_rule(f"many_{member_id}", many, written if member.number == 1 else f"{written} AS {name}")
        yield text_rule(f"prefix_{member_id}", f"{one}'s ", f"{name}.")
        yield text_rule(f"whole_{member_id}", f"whole {one}", f"{name}.*")
        yield PairedRule(f"has_{member_id}", (Ref("has"),), (Pairing((Text(f"whose {one}"), Ref("has")), (1,)),))
        for base in PREFIXED:
            yield same(f"{base}_{member_id}", Ref(f"prefix_{member_id}"), Ref(f"{base}_{table_id}"))

    def join_rules(self, scope_id: str, members: tuple[Member, ...]) -> Iterator[PairedRule]:
        """Yield the rules of a scope of several tables: what its members have, and what may follow after them."""
        for member in members:
            member_id = self.member_id(member)
            for base in JOINED:
                yield same(f"{base}_{scope_id}", Ref(f"{base}_{member_id}"))
            for base in FOLLOWING:
                yield same(f"{base}_{member_id}", Ref(f"{base}_{scope_id}"))

    def foreign_key_rule(self, name: str, key: ForeignKey, one: Member, other: Member) -> PairedRule:
        """Return a rule of programs for the condition by which a foreign key relates members, `one` first."""
        columns, other_columns = key.columns, key.other_columns
        if key.table != one.table:
            columns, other_columns = other_columns, columns
        symbols: list[Symbol] = []
        for a, b in zip(columns, other_columns, strict=True):
            symbols += [Text(" AND ")] if symbols else []
            symbols += [*self._qualified(one, a), Text(" = "), *self._qualified(other, b)]
        return PairedRule(name, tuple(symbols), ())

    def _qualified(self, member: Member, column: str) -> tuple[Symbol, Symbol]:
        """Return the symbols of a column with its prefix."""
        table = self.scopes.tables[member.table]
        return Ref(f"prefix_{self.member_id(member)}"), self._column(table, table.by_name[column])

    def twins(self, name: str, one: Member, other: Member) -> Iterator[PairedRule]:
        """Yield rules by which two occurrences of a table have the same value in a column."""
        for column in self.scopes.tables[one.table].columns:
            if self.has_twins and kind_of(column) in KEY_KINDS:
                condition = f"{self._written(one, column.name)} = {self._written(other, column.name)}"
                yield text_rule(name, self.phrases.columns[one.table, column.name], condition)

    def _written(self, member: Member, column: str) -> str:
        return f"{identifier(self.scopes.alias(member))}.{identifier(column)}"
