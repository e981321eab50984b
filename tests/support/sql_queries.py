"""Random queries as people write them, over a schema with NULL in every column, and rows for it."""

import random
import sqlite3
from functools import cache

from fewparse.domains.sql.database import Column, Database, ForeignKey, Table

NUMERIC = ("integer", "number")
TYPES = {"integer": "INTEGER", "number": "DECIMAL(12, 2)", "text": "TEXT", "date": "DATE", "boolean": "BOOLEAN"}
LINKED = ("integer", "text", "date")
CITIES = ("Bern", "Genf", "Oslo", "Rome")
VALUES: dict[str, list[object]] = {
    "integer": [0, 1, 2, 2, 3, 5],
    "number": [0, 1, 2, 2.5, 3],
    "text": ["Ann", "ann", "Bo", "", "O'Neil", "50%", "open"],
    "date": ["2024-01-01", "2024-02-01", "2023-12-31"],
    "boolean": [0, 1],
}


def table(name: str, key: tuple[str, ...], *columns: Column) -> Table:
    return Table(name, columns, key)


SHOP = Database(
    "sqlite",
    (
        table(
            "customer",
            ("id",),
            Column("id", "integer"),
            Column("name", "text"),
            Column("city", "text", values=CITIES),
            Column("age", "integer"),
            Column("vip", "boolean"),
        ),
        table(
            "orders",
            ("id",),
            Column("id", "integer"),
            Column("customer_id", "integer"),
            Column("total", "number"),
            Column("day", "date"),
            Column("status", "text"),
        ),
        table(
            "product",
            ("id",),
            Column("id", "integer"),
            Column("name", "text"),
            Column("price", "number"),
            Column("stock", "integer"),
        ),
        table(
            "item",
            ("order_id", "product_id"),
            Column("order_id", "integer"),
            Column("product_id", "integer"),
            Column("quantity", "integer"),
        ),
    ),
    (
        ForeignKey("orders", ("customer_id",), "customer", ("id",)),
        ForeignKey("item", ("order_id",), "orders", ("id",)),
        ForeignKey("item", ("product_id",), "product", ("id",)),
    ),
)


@cache
def random_rows(seed: int) -> sqlite3.Connection:
    """Return a database of the shop in memory; foreign keys may dangle, and a quarter of the values is NULL."""
    rng = random.Random(seed)
    connection = sqlite3.connect(":memory:")
    for made in SHOP.tables:
        columns = ", ".join(f"{column.name} {TYPES[column.type]}" for column in made.columns)
        connection.execute(f"CREATE TABLE {made.name} ({columns})")
        keys = set[tuple[object, ...]]()
        for number in range(1, 9):
            row = [
                None if rng.random() < 0.25 else rng.choice(column.values or VALUES[column.type])
                for column in made.columns
            ]
            row[: len(made.primary_key)] = (
                [number] if len(made.primary_key) == 1 else rng.choices(range(1, 8), k=2)
            )
            key = tuple(row[: len(made.primary_key)])
            if key not in keys:
                keys.add(key)
                connection.execute(f"INSERT INTO {made.name} VALUES ({', '.join('?' * len(row))})", row)
    return connection


Sources = list[tuple[str, Table]]
"""The aliases of the tables of a FROM clause, and the tables."""


class RandomQuery:
    """Draws one query: `sql` is its text."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._aliases = 0
        self.sql = self._statement()

    def _one(self, *choices: str) -> str:
        return self._rng.choice(choices)

    def _chance(self, share: float) -> bool:
        return self._rng.random() < share

    def _alias(self) -> str:
        self._aliases += 1
        return f"t{self._aliases}"

    def _statement(self) -> str:
        kind = self._rng.random()
        if kind < 0.08:
            column = self._rng.choice(self._rng.choice(SHOP.tables).columns)
            operator = self._one(" UNION ", " UNION ALL ", " INTERSECT ", " EXCEPT ")
            return operator.join(self._values(column, 1) for _ in range(self._rng.choice([2, 2, 3])))
        if kind < 0.15:
            return f"SELECT COUNT(*) FROM ({self._select(inner=True)}) q"
        if kind < 0.22:
            chosen = self._rng.choice(SHOP.tables)
            where = self._condition([(chosen.name, chosen)], 1)
            item = self._one("COUNT(*)", f"q.{chosen.columns[0].name}", "*")
            return f"WITH q AS (SELECT * FROM {chosen.name} WHERE {where}) SELECT {item} FROM q"
        return self._select()

    def _select(self, inner: bool = False) -> str:
        sources, tables, conditions = self._from()
        if self._chance(0.6):
            conditions.append(self._condition(sources))
        rest = f"{tables} WHERE {' AND '.join(conditions)}" if conditions else tables
        kind = self._rng.random()
        if kind < 0.5:
            return self._listing(sources, rest, inner)
        if kind < 0.65:
            items = ", ".join(self._aggregate(sources) for _ in range(self._rng.choice([1, 2])))
            end = self._one("", "", " LIMIT 1", " LIMIT 1 OFFSET 1", " ORDER BY 1")
            return f"SELECT {items} FROM {rest}{end}"
        groups = [self._key(sources) for _ in range(self._rng.choice([1, 1, 2]))]
        items_ = [*groups, *(self._aggregate(sources) for _ in range(self._rng.choice([0, 1, 2])))]
        if self._chance(0.2):
            self._rng.shuffle(items_)
        having = ""
        if self._chance(0.3):
            having = f" HAVING {self._aggregate(sources)} {self._one('>', '=', '<=')} {self._one('1', '2', '0')}"
        elif self._chance(0.1):
            having = f" HAVING {groups[0]} IS NOT NULL"
        return f"SELECT {', '.join(items_)} FROM {rest} GROUP BY {', '.join(groups)}{having}"

    def _listing(self, sources: Sources, rest: str, inner: bool) -> str:
        items = [self._one(self._key(sources), self._number(sources)) for _ in range(self._rng.choice([1, 1, 2]))]
        if self._chance(0.2):
            items = ["*"]
        distinct = "DISTINCT " if self._chance(0.25) else ""
        end = ""
        if not inner and not distinct and self._chance(0.3):
            unique = ", ".join(f"{alias}.{key}" for alias, made in sources for key in made.primary_key)
            end = f" ORDER BY {self._key(sources)}{self._one('', ' DESC')}, {unique} LIMIT {self._one('1', '3')}"
            end += self._one("", " OFFSET 1")
        return f"SELECT {distinct}{', '.join(items)} FROM {rest}{end}"

    def _from(self) -> tuple[Sources, str, list[str]]:
        first = self._rng.choice(SHOP.tables)
        sources, conditions = [(self._alias(), first)], list[str]()
        text = f"{first.name} {self._one('', 'AS ')}{sources[0][0]}"
        if self._chance(0.12):
            text = f"(SELECT * FROM {first.name} z WHERE {self._condition([('z', first)], 1)}) {sources[0][0]}"
        for _ in range(self._rng.choice([0, 0, 1, 1, 2])):
            other, alias, link = self._link(sources)
            kind = self._rng.random()
            if kind < 0.45:
                text += f" {self._one('INNER ', '')}JOIN {other.name} {alias} ON {link}"
            elif kind < 0.8:
                text += f" LEFT {self._one('OUTER ', '')}JOIN {other.name} {alias} ON {link}"
                if self._chance(0.2):
                    conditions.append(link)
            elif kind < 0.9 and len(sources) == 1:
                text += f" RIGHT JOIN {other.name} {alias} ON {link}"
            elif " JOIN " not in text:
                text += f", {other.name} {alias}"
                conditions.append(link)
            else:
                text += f" JOIN {other.name} {alias} ON {link}"
            sources.append((alias, other))
        return sources, text, conditions

    def _link(self, sources: Sources) -> tuple[Table, str, str]:
        """Return a further table, its alias and a condition: along a foreign key, or by columns of one type."""
        alias, made = self._rng.choice(sources)
        if self._chance(0.2):
            mine = self._rng.choice([column for column in made.columns if column.type in LINKED])
            pairs = [(t, c) for t in SHOP.tables for c in t.columns if t != made and c.type == mine.type]
            if pairs:
                other, equal = self._rng.choice(pairs)
                name = self._alias()
                return other, name, f"{name}.{equal.name} = {alias}.{mine.name}"
        found = [(made, made.primary_key[0], made.primary_key[0])]
        for key in SHOP.foreign_keys:
            if key.table == made.name:
                found.append((SHOP.by_name[key.other_table], key.other_columns[0], key.columns[0]))
            if key.other_table == made.name:
                found.append((SHOP.by_name[key.table], key.columns[0], key.other_columns[0]))
        other, column, own = self._rng.choice(found)
        name = self._alias()
        return other, name, self._one(f"{name}.{column} = {alias}.{own}", f"{alias}.{own} = {name}.{column}")

    def _column(self, sources: Sources, types: tuple[str, ...]) -> tuple[str, Column] | None:
        found = [(alias, c) for alias, made in sources for c in made.columns if c.type in types]
        if not found:
            return None
        alias, column = self._rng.choice(found)
        return f"{alias}.{column.name}", column

    def _key(self, sources: Sources) -> str:
        found = self._column(sources, ("integer", "text", "date"))
        assert found is not None
        return found[0]

    def _number(self, sources: Sources, deep: bool = True) -> str:
        found = self._column(sources, NUMERIC)
        assert found is not None
        if not deep or self._chance(0.7):
            return found[0]
        other = self._one(self._number(sources, deep=False), "2", "10", "0.5", "1")
        return self._one("({} {} {})", "{} {} {}").format(found[0], self._one(*"+-*/"), other)

    def _aggregate(self, sources: Sources) -> str:
        function = self._one(
            "COUNT(*)", "COUNT(", "COUNT(DISTINCT ", "SUM(", "SUM(DISTINCT ", "AVG(", "MIN(", "MAX("
        )
        if function == "COUNT(*)":
            return function
        return f"{function}{self._key(sources) if 'COUNT' in function else self._number(sources)})"

    def _literal(self, column: Column) -> str:
        if column.values or column.type in ("text", "date"):
            return self._one(
                *(f"'{value}'" for value in column.values or VALUES[column.type] if "'" not in str(value))
            )
        if column.type == "boolean":
            return self._one("TRUE", "FALSE", "1", "0")
        return self._one("0", "1", "2", "5") if column.type == "integer" else self._one("1", "2.5", "3.0", "0")

    def _condition(self, sources: Sources, depth: int = 2) -> str:
        kind = self._rng.random()
        if depth and kind < 0.25:
            parts = [self._condition(sources, depth - 1) for _ in range(self._rng.choice([2, 3]))]
            return f"({self._one(' AND ', ' OR ').join(parts)})"
        if depth and kind < 0.33:
            return f"NOT ({self._condition(sources, depth - 1)})"
        types = self._rng.choice([NUMERIC, ("text",), ("date",), ("boolean",)])
        found = self._column(sources, types) or self._column(sources, NUMERIC)
        assert found is not None
        name, column = found
        if column.type == "boolean":
            return self._one(
                name, f"NOT {name}", f"{name} = {self._literal(column)}", f"{name} IS TRUE", f"{name} <> TRUE"
            )
        return self._predicate(name, column, sources, depth)

    def _predicate(self, name: str, column: Column, sources: Sources, depth: int) -> str:
        negation = self._one("", "NOT ")
        literals = [self._literal(column) for _ in range(3)]
        kinds = [
            f"{name} IS {negation}NULL",
            f"{name} {negation}IN ({', '.join(literals[: self._rng.randint(1, 3)])})",
            f"{name} {self._one('=', '<>', '!=')} {literals[0]}",
            f"{literals[0]} = {name}",
        ]
        if column.type == "text" and not column.values:
            kinds.append(f"{name} {negation}LIKE '{self._one('A%', '%n', '%n%', '_o', 'an%n', '50%')}'")
        if column.type != "text":
            kinds.append(f"{name} {negation}BETWEEN {literals[0]} AND {literals[1]}")
            kinds.append(f"{name} {self._one('<', '>', '<=', '>=')} {literals[0]}")
        if column.type in NUMERIC:
            kinds.append(f"{self._number(sources)} {self._one('=', '<', '>')} {literals[0]}")
        if depth:
            kinds.append(f"{name} {negation}IN ({self._values(column, depth - 1)})")
            kinds.append(f"{name} {self._one('=', '<', '>=', '<>')} ({self._values(column, depth - 1, True)})")
            kinds.append(f"{negation}EXISTS ({self._related(sources)})")
        return self._one(*kinds)

    def _values(self, like: Column, depth: int, single: bool = False) -> str:
        """Return a sub-query with values of a column's type; of one value if it is `single`."""
        found = [(made, c) for made in SHOP.tables for c in made.columns if c.type == like.type]
        made, column = self._rng.choice(found)
        alias = self._alias()
        item = f"{alias}.{column.name}"
        if single and column.type != "boolean":
            item = f"{self._one('MIN', 'MAX')}({item})"
        where = f" WHERE {self._condition([(alias, made)], depth)}" if self._chance(0.6) else ""
        return f"SELECT {item} FROM {made.name} {alias}{where}"

    def _related(self, sources: Sources) -> str:
        """Return a sub-query that refers to one of the tables around it."""
        other, alias, link = self._link(sources)
        where = f" AND {self._condition([(alias, other)], 0)}" if self._chance(0.5) else ""
        return f"SELECT {self._one('1', '*')} FROM {other.name} {alias} WHERE {link}{where}"
