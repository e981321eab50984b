"""Which FROM clauses the language has: every table, and joins along foreign keys and columns of equal type.

The number of joins is limited, so that the grammar of a large database stays small: foreign keys come first, then
columns of equal name and type, then other columns of equal type; joins of two tables come before larger ones.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations_with_replacement, permutations

from fewparse.domains.sql.database import Database, ForeignKey, Table
from fewparse.domains.sql.identifiers import alias
from fewparse.domains.sql.types import JOIN_KINDS, Kind, kind_of

MAX_JOINED = 4
"""The largest number of tables in one FROM clause."""
MAX_JOINS = {2: 120, 3: 100, 4: 30}
"""The largest number of joins by their number of tables."""
MAX_KEYED_JOINS = 400
"""The largest number of joins of two tables by foreign keys."""
MAX_JOINS_IN_ALL = 420
MAX_FULL_JOINS = 60
"""If there are more joins of two tables, none of them has arithmetic, sub-queries or set operations of its own."""
MAX_CALCULATING = 40
"""The largest number of joins of three and four tables that have arithmetic."""
MAX_RELATED_TABLES = 12
"""Larger databases have correlated sub-queries along foreign keys only."""
MAX_TABLES = 40
"""Larger databases have simpler joins, and tables with a foreign key are joined by it only."""
FOREIGN_KEY, SAME_NAME, SAME_TABLE, SAME_TYPE = range(4)
"""How closely two tables are related, the closest first."""


@dataclass(frozen=True)
class Member:
    """The n-th occurrence of a table in a FROM clause."""

    table: str
    number: int = 1


@dataclass(frozen=True)
class Scope:
    """The tables of a FROM clause in the order of the schema; a table that occurs twice is there twice."""

    tables: tuple[str, ...]

    @property
    def members(self) -> tuple[Member, ...]:
        """The occurrences of the tables."""
        return members_of(self.tables)


def members_of(tables: Iterable[str]) -> tuple[Member, ...]:
    """Return the occurrences of the tables of a sequence; occurrences of the same table are numbered."""
    seen: Counter[str] = Counter()
    found = []
    for table in tables:
        seen[table] += 1
        found.append(Member(table, seen[table]))
    return tuple(found)


class Scopes:
    """The scopes of a database; raises nothing."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.tables = {table.name: table for table in database.tables if table.columns}
        self._order = {name: index for index, name in enumerate(self.tables)}
        self._names = frozenset(database.by_name)
        self._kinds = {name: join_kinds(table) for name, table in self.tables.items()}
        self._keys: dict[frozenset[str], list[ForeignKey]] = {}
        for key in database.foreign_keys:
            if key.table in self.tables and key.other_table in self.tables:
                self._keys.setdefault(frozenset((key.table, key.other_table)), []).append(key)

    def alias(self, member: Member) -> str:
        """Return the name of an occurrence of a table."""
        return alias(member.table, member.number, self._names)

    def foreign_keys(self, one: str, other: str) -> list[ForeignKey]:
        """Return the foreign keys between two tables, in either direction."""
        return self._keys.get(frozenset((one, other)), [])

    def relation(self, one: str, other: str) -> int | None:
        """Return how closely two tables are related; None if they cannot be joined."""
        if self.foreign_keys(one, other):
            return FOREIGN_KEY
        if not self._kinds[one].keys() & self._kinds[other].keys():
            return None
        if one == other:
            return SAME_TABLE
        same = any(names & self._kinds[other].get(kind, set()) for kind, names in self._kinds[one].items())
        return SAME_NAME if same else SAME_TYPE

    @cached_property
    def joins(self) -> tuple[Scope, ...]:
        """The joins of the language."""
        found: list[Scope] = []
        smaller = self._ranked_pairs
        found += [scope for _, scope in smaller]
        for size in range(3, MAX_JOINED + 1):
            limit = max(0, min(MAX_JOINS[size], MAX_JOINS_IN_ALL - len(found)))
            smaller = sorted(self._larger(smaller), key=lambda ranked: ranked[0])[:limit]
            found += [scope for _, scope in smaller]
        return tuple(found)

    @cached_property
    def _ranked_pairs(self) -> list[tuple[int, Scope]]:
        """The joins of two tables with their relations, the closest first."""
        pairs = sorted(self._pairs(), key=lambda ranked: ranked[0])
        keyed = [pair for pair in pairs if pair[0] == FOREIGN_KEY][:MAX_KEYED_JOINS]
        return keyed + [pair for pair in pairs if pair[0] != FOREIGN_KEY][: max(0, MAX_JOINS[2] - len(keyed))]

    def _pairs(self) -> list[tuple[int, Scope]]:
        """Return all pairs of tables that can be joined, with their relations."""
        pairs: Iterable[tuple[str, ...]] = combinations_with_replacement(self.tables, 2)
        if len(self.tables) > MAX_KEYED_JOINS:  # too many to look at: those with foreign keys are enough
            pairs = sorted(
                {tuple(sorted(key, key=self._order.__getitem__)) * (3 - len(key)) for key in self._keys}
            )
        ranked = ((self.relation(one, other), Scope((one, other))) for one, other in pairs)
        return [(relation, scope) for relation, scope in ranked if relation is not None]

    def _larger(self, smaller: list[tuple[int, Scope]]) -> list[tuple[int, Scope]]:
        """Return the scopes with one more table, ranked by their relations."""
        neighbours: dict[str, list[tuple[int, str]]] = {}
        for scope in self.joins_of_two:
            one, other = scope.tables
            relation = self.relation(one, other)
            assert relation is not None
            neighbours.setdefault(one, []).append((relation, other))
            if one != other:
                neighbours.setdefault(other, []).append((relation, one))
        found: dict[Scope, int] = {}
        for rank, scope in smaller:
            for table in dict.fromkeys(scope.tables):
                for relation, other in neighbours.get(table, ()):
                    if not self._extends(scope, relation, other):
                        continue
                    larger = Scope(tuple(sorted((*scope.tables, other), key=self._order.__getitem__)))
                    found[larger] = min(rank + relation, found.get(larger, rank + relation))
        return [(rank, scope) for scope, rank in found.items()]

    def _extends(self, scope: Scope, relation: int, table: str) -> bool:
        """Return whether a table may extend a scope: four tables are joined by foreign keys, or all the same."""
        if len(scope.tables) < MAX_JOINED - 1:
            return relation <= SAME_TABLE
        return (relation == FOREIGN_KEY and self._is_keyed(scope)) or set(scope.tables) == {table}

    def _is_keyed(self, scope: Scope) -> bool:
        """Return whether each table of a scope has a foreign key to another one, or is referred to by one."""
        return all(
            any(self.foreign_keys(one, other) for other in set(scope.tables) - {one}) for one in scope.tables
        )

    @cached_property
    def joins_of_two(self) -> tuple[Scope, ...]:
        """The joins of two tables."""
        return tuple(scope for _, scope in self._ranked_pairs)

    @cached_property
    def known(self) -> frozenset[tuple[str, ...]]:
        """The tables of all scopes, in the order of the schema."""
        return frozenset(scope.tables for scope in self.joins) | {(name,) for name in self.tables}

    def has(self, tables: Iterable[str]) -> bool:
        """Return whether there is a scope with these tables."""
        return tuple(sorted(tables, key=self._order.__getitem__)) in self.known

    def order(self, table: str) -> int:
        """Return the position of a table in the schema."""
        return self._order[table]

    def is_full(self, scope: Scope) -> bool:
        """Return whether a scope has everything that a single table has."""
        return len(scope.tables) == 1 or (len(scope.tables) == 2 and len(self.joins_of_two) <= MAX_FULL_JOINS)

    def has_arithmetic(self, scope: Scope) -> bool:
        """Return whether a scope has arithmetic."""
        return not self.is_large and (self.is_full(scope) or scope in self.calculating)

    @cached_property
    def calculating(self) -> frozenset[Scope]:
        """The joins of three and more tables that have arithmetic: by foreign keys, different tables first."""
        keyed = [scope for scope in self.joins if len(scope.tables) > 2 and self._is_keyed(scope)]
        keyed.sort(key=lambda scope: len(scope.tables) - len(set(scope.tables)))
        return frozenset(() if self.is_large else keyed[:MAX_CALCULATING])

    def sequences(self, scope: Scope) -> Iterator[tuple[str, ...]]:
        """Yield the orders in which the tables of a scope can be joined: each is related to one before it.

        Joins of four tables start with the first table of the schema.
        """
        for tables in sorted(set(permutations(scope.tables)), key=lambda found: [self._order[t] for t in found]):
            if len(tables) == MAX_JOINED and tables[0] != scope.tables[0]:
                continue
            if all(
                any(self.relation(table, earlier) is not None for earlier in tables[:index])
                for index, table in enumerate(tables)
                if index
            ):
                yield tables

    @property
    def is_large(self) -> bool:
        """Whether the database has so many tables that joins must be simple."""
        return len(self.tables) > MAX_TABLES

    @property
    def relates_all(self) -> bool:
        """Whether correlated sub-queries are related by any columns of equal type."""
        return len(self.tables) <= MAX_RELATED_TABLES

    @cached_property
    def relations(self) -> tuple[tuple[str, str], ...]:
        """Ordered pairs of tables for correlated sub-queries: the outer table and the inner one."""
        pairs = [scope.tables for scope in self.joins_of_two]
        if not self.relates_all:
            pairs = [(one, other) for one, other in pairs if self.foreign_keys(one, other)]
        return tuple(dict.fromkeys([(a, b) for a, b in pairs] + [(b, a) for a, b in pairs]))


@lru_cache(maxsize=8)
def scopes_of(database: Database) -> Scopes:
    """Return the scopes of a database, made once."""
    return Scopes(database)


def join_kinds(table: Table) -> dict[Kind, set[str]]:
    """Return the names of the columns that can join a table, by their kinds."""
    found: dict[Kind, set[str]] = {}
    for column in table.columns:
        kind = kind_of(column)
        if kind in JOIN_KINDS:
            found.setdefault(kind, set()).add(column.name)
    return found
