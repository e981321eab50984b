"""The synchronous grammar of a schema: canonical English and canonical SQL of SELECT statements.

Its rules are instances of the templates in `select.scfg`, one for each scope (the tables of a FROM clause), so
that columns are only those of the tables in the FROM clause. Columns are shared by all scopes of their table, and
sub-queries are shared by all queries: the size is linear in columns, tables and joins.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import product

from fewparse.domains.sql.columns import SchemaRules, item_name, same
from fewparse.domains.sql.database import Database
from fewparse.domains.sql.english import Phrases
from fewparse.domains.sql.scopes import Member, Scope, members_of, scopes_of
from fewparse.domains.sql.templates import Binding, Instances, Template, templates
from fewparse.domains.sql.types import TYPE_OF_KIND, TYPES, Type, kind_of
from fewparse.errors import DomainError
from fewparse.grammar.rules import Grammar, Production, Ref, Symbol, productive_names, reachable_names
from fewparse.grammar.synchronous import PairedRule, Pairing, SynchronousGrammar

FREE_TEXT = ("text", "fragment", "pattern")
"""The rules whose text is copied from the utterance: string literals and patterns of LIKE."""
ARITHMETIC = frozenset({"intcalc", "deccalc", "aintcalc", "adeccalc"})
"""Rules that large databases lack: see `Scopes.is_large`."""
FULL_ONLY = ARITHMETIC | frozenset(
    (
        "operand",
        "numbersbare",
        "numbersopen",
        "numbersfull",
        "gbody3",
        "gbody13",
        "gbody23",
        "gbody123",
        "rowbare",
        "rowopen",
        "rowfull",
        "listfull",
        "groupbare",
        "groupopen",
        "ocond",
        "opred",
        "otest",
        "oands",
        "oors",
        "ohcond",
        "ohtest",
    )
)
"""Rules that only full scopes have: see `Scopes.is_full`."""
SMALL_ONLY = frozenset(
    ("dmore", "gmore", "gper", "amore", "perbody", "aggbare", "aggopen", "listbare", "listopen", "val")
)
"""Rules that joins of large databases lack."""
KEPT = frozenset({"start", *FREE_TEXT})
"""Rules that keep their names."""
GROUPS = ("one", "two", "more")
"""Scopes by their number of tables, so that a random query is not always a join."""
TWO_COLUMN_TYPES: tuple[Type, ...] = ("num", "text")
"""The types of set operations of two columns."""


def sql_grammar(database: Database, phrases: Phrases) -> SynchronousGrammar:
    """Return the grammar of a schema; raises `DomainError` if it has no table with a column."""
    if not any(table.columns for table in database.tables):
        raise DomainError("the database has no table with a column", "schema", hint="Create tables first.")
    return Builder(database, phrases).grammar()


class Builder:
    """Makes the rules of a schema."""

    def __init__(self, database: Database, phrases: Phrases) -> None:
        self._scopes = scopes_of(database)
        self._schema = SchemaRules(database, phrases, self._scopes)
        self._templates = templates(item_name(database))
        self._rules: list[PairedRule] = []
        self._members: dict[Member, None] = {}
        self._bindings: dict[frozenset[str], list[Binding]] = {frozenset(): [{}]}
        self._types: dict[str, tuple[Type, ...]] = {}
        """The types of the columns of a scope or table, by identifier."""
        self._full: set[str] = set()
        self._calculating: set[str] = set()
        self._sequences: dict[tuple[str, ...], str] = {}
        self._pairs: dict[tuple[str, str], None] = {}
        self._keyed: set[str] = set()
        """Relations and joins that are along a foreign key only."""
        large = self._scopes.is_large
        self._omitted = FULL_ONLY | SMALL_ONLY if large else FULL_ONLY
        self._omitted_of_full = ARITHMETIC if large else frozenset[str]()

    def grammar(self) -> SynchronousGrammar:
        """Return the grammar."""
        for name, table in self._scopes.tables.items():
            self._rules += self._schema.table_rules(table)
            self._add_table(name)
        for number, scope in enumerate(self._scopes.joins):
            self._add_join(f"J{number}", scope)
        for outer, inner in self._scopes.relations:
            self._add_relation(outer, inner)
        for member in self._members:
            self._rules += self._schema.member_rules(member)
            self._bind(M=self._schema.member_id(member))
            self._bind(N=self._schema.member_id(member))
            self._bind(U=self._schema.member_id(member))
            self._bind(U=self._schema.member_id(member), G=GROUPS[1])
        self._rules += self._schema.shared_rules()
        for choices in self._schema.value_sets.values():
            self._bind(C=choices)
        for left, right in self._pairs:
            self._bind(L=left, N=right)
        for group in GROUPS:
            self._bind(G=group)
        instances = Instances()
        for template in self._templates:
            self._rules += instances.of(template, self._values(template))
        self._rules += instances.literal_rules()
        return SynchronousGrammar(useful(self._rules))

    def _bind(self, **binding: str) -> None:
        self._bindings.setdefault(frozenset(binding), []).append(binding)

    def _bind_scope(self, scope_id: str, tables: int) -> None:
        group = GROUPS[min(tables, len(GROUPS)) - 1]
        for name in ("S", "T" if tables == 1 else "J"):
            self._bind(**{name: scope_id})
            self._bind(**{name: scope_id, "G": group})

    def _member(self, member: Member) -> str:
        """Return the identifier of a member, whose rules are made later."""
        self._members[member] = None
        return self._schema.member_id(member)

    def _add_table(self, name: str) -> None:
        table_id, member = self._schema.table_ids[name], Member(name)
        found = {TYPE_OF_KIND.get(kind_of(column)) for column in self._scopes.tables[name].columns}
        self._types[table_id] = tuple(kind for kind in TYPES if kind in found or kind == "num")
        self._full.add(table_id)
        self._bind(U=table_id)
        self._bind(U=table_id, G=GROUPS[0])
        self._bind_scope(table_id, 1)
        self._bind(H=table_id, M=self._member(member))
        self._bind(H=self._schema.member_id(member), M=self._schema.member_id(member))
        self._bind(S=table_id, Q=self._sequence((name,)))

    def _add_join(self, scope_id: str, scope: Scope) -> None:
        found = {kind for table in scope.tables for kind in self._types[self._schema.table_ids[table]]}
        self._types[scope_id] = tuple(kind for kind in TYPES if kind in found)
        if self._scopes.is_full(scope):
            self._full.add(scope_id)
        if scope in self._scopes.calculating:
            self._calculating.add(scope_id)
        for member in scope.members:
            self._member(member)
        self._rules += self._schema.join_rules(scope_id, scope.members)
        self._bind_scope(scope_id, len(scope.tables))
        for tables in self._scopes.sequences(scope):
            self._bind(S=scope_id, Q=self._sequence(tables))

    def _sequence(self, tables: tuple[str, ...]) -> str:
        """Return the identifier of a sequence of joined tables, and bind the parameters of its rules."""
        if tables in self._sequences:
            return self._sequences[tables]
        *earlier, last = members_of(tables)
        last_id = self._member(last)
        prefix = self._sequence(tables[:-1]) if earlier else None
        sequence = self._sequences[tables] = f"X{len(self._sequences)}"
        if prefix is None:
            self._rules.append(same(f"tables_{sequence}", Ref(f"many_{last_id}")))
            return sequence
        step = {"Q": sequence, "P": prefix, "N": last_id}
        self._bind(**step)
        self._bind(Q=sequence)
        for member in earlier:
            self._bind(Q=sequence, L=self._member(member), N=last_id)
            self._pairs[self._member(member), last_id] = None
        keys = [(key, m) for m in earlier for key in self._scopes.foreign_keys(m.table, last.table)]
        if len(keys) == 1 and last.number == 1:
            key, member = keys[0]
            self._bind(**step, E=sequence)
            self._rules.append(self._schema.foreign_key_rule(f"foreignkey_{sequence}", key, member, last))
            if self._scopes.is_large:
                self._keyed.add(sequence)
        return sequence

    def _add_relation(self, outer: str, inner: str) -> None:
        """Add correlated sub-queries over a table in queries over another, or over the same table."""
        one, other = Member(outer), Member(inner, 2 if inner == outer else 1)
        edge = f"{self._member(one)}{self._member(other)}"
        binding = {"E": edge, "N": self._member(other)}
        self._bind(**binding)
        for more in ({"M": self._member(one)}, {"T": self._schema.table_ids[outer]}):
            self._bind(**binding, **more)
        self._bind(E=edge)
        self._bind(E=edge, M=self._member(one))
        keys = self._scopes.foreign_keys(outer, inner)
        if outer == inner:
            self._rules += self._schema.twins(f"twin_{edge}", other, one)
        elif len(keys) == 1:
            self._rules.append(self._schema.foreign_key_rule(f"foreignkey_{edge}", keys[0], other, one))
            if not self._scopes.relates_all:
                self._keyed.add(edge)

    def _values(self, template: Template) -> Iterator[Binding]:
        """Yield the bindings of a template's parameters."""
        types = sorted(template.parameters & {"Y", "Z"})
        for binding in self._bindings.get(template.parameters - {"Y", "Z"}, ()):
            scope = binding.get("S") or binding.get("J")
            omitted = self._omitted_of_full if scope in self._full else self._omitted
            calculates = scope in self._calculating and template.base in ARITHMETIC
            if scope is not None and template.base in omitted and not calculates:
                continue
            if template.base in ("onlink", "onjoin") and binding.get("E", binding.get("Q")) in self._keyed:
                continue
            if not types:
                yield binding
                continue
            known = self._types.get(binding.get("S") or binding.get("J") or binding.get("T") or "", TYPES)
            if "E" in binding and not self._scopes.relates_all:
                known = ("num",)
            if len(types) == 2 and self._scopes.is_large:
                continue
            if len(types) == 2:
                known = tuple(kind for kind in known if kind in TWO_COLUMN_TYPES)
            for chosen in product(known, repeat=len(types)):
                yield {**binding, **dict(zip(types, chosen, strict=True))}


def useful(rules: list[PairedRule]) -> tuple[PairedRule, ...]:
    """Return the rules that occur in a derivation, without names that only stand for another one."""
    productive = productive_names(both_sides(rules))
    kept = [rule for rule in rules if all(name in productive for name in names_in(rule))]
    reached = reachable_names(both_sides(kept).rules, "start")
    return without_aliases([rule for rule in kept if rule.name in reached])


def both_sides(rules: Iterable[PairedRule]) -> Grammar:
    """Return a grammar with a production for each rule, of the symbols of both sides."""
    found: dict[str, list[Production]] = {}
    for rule in rules:
        utterances = (symbol for pairing in rule.pairings for symbol in pairing.utterance)
        found.setdefault(rule.name, []).append((*(rule.program or ()), *utterances))
    return Grammar({name: tuple(productions) for name, productions in found.items()})


def names_in(rule: PairedRule) -> Iterator[str]:
    """Yield the nonterminals that a rule uses."""
    for production in (rule.program or (), *(pairing.utterance for pairing in rule.pairings)):
        for symbol in production:
            if isinstance(symbol, Ref):
                yield symbol.name


def without_aliases(rules: list[PairedRule]) -> tuple[PairedRule, ...]:
    """Replace nonterminals whose only rule is another nonterminal by that one."""
    count = Counter(rule.name for rule in rules)
    aliases: dict[str, Ref] = {}
    for rule in rules:
        if count[rule.name] == 1 and rule.program is not None and len(rule.program) == len(rule.pairings) == 1:
            only = rule.program[0]
            if isinstance(only, Ref) and rule.pairings[0].utterance == (only,) and rule.name not in KEPT:
                aliases[rule.name] = only

    def replaced(symbol: Symbol) -> Symbol:
        while isinstance(symbol, Ref) and symbol.name in aliases:
            symbol = aliases[symbol.name]
        return symbol

    def production(symbols: Production) -> Production:
        if not any(isinstance(symbol, Ref) and symbol.name in aliases for symbol in symbols):
            return symbols
        return tuple([replaced(symbol) for symbol in symbols])

    return tuple(
        PairedRule(
            rule.name,
            None if rule.program is None else production(rule.program),
            tuple(Pairing(production(pairing.utterance), pairing.links) for pairing in rule.pairings),
        )
        for rule in rules
        if rule.name not in aliases
    )
