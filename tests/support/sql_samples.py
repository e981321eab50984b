"""Databases for the tests of SQL domains: schemas with data, for SQLite, DuckDB and PostgreSQL."""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from fewparse.domains.sql.database import Column, Database, ForeignKey, Table, Value

TYPES = {
    "integer": "INTEGER",
    "number": "DECIMAL(12, 2)",
    "text": "TEXT",
    "date": "DATE",
    "time": "TIME",
    "datetime": "TIMESTAMP",
    "boolean": "BOOLEAN",
    "other": "TEXT",
}
Row = tuple[Value | None, ...]
MAX_VALUES = 500


@dataclass(frozen=True)
class Sample:
    """A schema, the rows of its tables, and statements that create views."""

    database: Database
    rows: dict[str, list[Row]]
    views: tuple[str, ...] = ()

    def statements(self) -> Iterator[str]:
        """Yield the statements that create the tables and rows, the same for all databases."""
        views = {view.split('"')[1] for view in self.views}
        for table in self.database.tables:
            if table.name not in views:
                columns = ", ".join(f"{quoted(column.name)} {TYPES[column.type]}" for column in table.columns)
                yield f"CREATE TABLE {quoted(table.name)} ({columns})"
                for row in self.rows[table.name]:
                    yield f"INSERT INTO {quoted(table.name)} VALUES ({', '.join(map(literal, row))})"
        yield from self.views

    def sqlite(self) -> sqlite3.Connection:
        """Return a database in memory with the tables and rows."""
        connection = sqlite3.connect(":memory:")
        for statement in self.statements():
            connection.execute(statement)
        return connection


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(value: Value | None) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return "NULL" if value is None else str(value)


def integer(name: str) -> Column:
    return Column(name, "integer")


def text(name: str, *values: str, comment: str = "") -> Column:
    return Column(name, "text", comment=comment, values=values or None)


def shop() -> Sample:
    """A shop: foreign keys, dates, truth values, a composite key, a self-reference, a view."""
    tables = (
        Table(
            "customers",
            (
                integer("cust_id"),
                text("name"),
                text("city", "Leipzig", "Köln", "St. Ives", "the hague"),
                Column("since", "date"),
                Column("active", "boolean"),
            ),
            ("cust_id",),
        ),
        Table(
            "categories",
            (integer("id"), text("title", "books", "toys"), integer("parent_id")),
            ("id",),
            "category",
        ),
        Table(
            "products",
            (
                integer("id"),
                text("name"),
                Column("price", "number", comment="unit price"),
                integer("category_id"),
                integer("stock"),
            ),
            ("id",),
        ),
        Table(
            "orders",
            (
                integer("id"),
                integer("customer_id"),
                Column("ordered_at", "datetime"),
                Column("ship_date", "date"),
                text("status", "open", "shipped", "sent back"),
                Column("pickup", "time"),
            ),
            ("id",),
        ),
        Table(
            "order_items",
            (integer("order_id"), integer("line"), integer("product_id"), integer("qty")),
            ("order_id", "line"),
        ),
        Table("returns", (integer("order_id"), integer("line"), text("reason"), Column("payload", "other"))),
        Table("big_spenders", (integer("cust_id"), Column("total", "number"))),
    )
    keys = (
        ForeignKey("categories", ("parent_id",), "categories", ("id",)),
        ForeignKey("products", ("category_id",), "categories", ("id",)),
        ForeignKey("orders", ("customer_id",), "customers", ("cust_id",)),
        ForeignKey("order_items", ("order_id",), "orders", ("id",)),
        ForeignKey("order_items", ("product_id",), "products", ("id",)),
        ForeignKey("returns", ("order_id", "line"), "order_items", ("order_id", "line")),
    )
    rows: dict[str, list[Row]] = {
        "customers": [
            (1, "Ada O'Neil", "Leipzig", "2019-02-28", True),
            (2, "Bob", "Köln", "2020-02-29", False),
            (3, 'Cleo "C" Day', "St. Ives", None, True),
            (4, "Dan", "the hague", "2021-12-31", None),
        ],
        "categories": [(1, "books", None), (2, "toys", None), (3, "toys", 2)],
        "products": [(1, "Atlas", 30.5, 1, 7), (2, "Ball", 4.0, 3, 0), (3, "Kite", 12.25, 3, 2_000_000_000)],
        "orders": [
            (10, 1, "2024-01-05 10:00:00", "2024-01-07", "shipped", "09:30:00"),
            (11, 1, "2024-03-01 18:30:00", None, "open", None),
            (12, 2, "2024-03-02 08:15:00", "2024-03-04", "sent back", "17:00:00"),
        ],
        "order_items": [(10, 1, 1, 2), (10, 2, 2, 5), (11, 1, 3, 1), (12, 1, 3, 2_000_000_000)],
        "returns": [(12, 1, "broken string", '{"a": 1}'), (10, 2, None, None)],
    }
    view = (
        'CREATE VIEW "big_spenders" AS SELECT o.customer_id AS cust_id, '
        "SUM(i.qty * CAST(p.price AS DOUBLE PRECISION)) AS total "
        "FROM orders o JOIN order_items i ON i.order_id = o.id JOIN products p ON p.id = i.product_id"
        " GROUP BY o.customer_id"
    )
    return Sample(Database("sqlite", tables, keys), rows, (view,))


def odd_names() -> Sample:
    """Names with blanks, quotation marks, reserved words of SQL and of canonical English, and emoji."""
    tables = (
        Table(
            "order",
            (
                integer("select"),
                text("group by", "a and b", "is", 'say "hi"', "o'clock", ""),
                integer("number"),
                Column("total", "number"),
                text('quo"ted'),
                text("O'Neil"),
            ),
        ),
        Table(
            "Order Line", (integer("select"), integer("2020"), text("first name"), text("FirstName"), text("from"))
        ),
        Table("😀", (text("🍐"), Column("date of birth", "date"), integer("__"), integer("each"))),
        Table("order_2", (integer("item"), text("whose", "x"), integer("a.b"))),
    )
    keys = (ForeignKey("Order Line", ("select",), "order", ("select",)),)
    rows: dict[str, list[Row]] = {
        "order": [
            (1, "a and b", 5, 1.5, 'x"y', "z"),
            (2, 'say "hi"', None, 2.5, "%", "_"),
            (3, "", 7, None, "", "\\"),
        ],
        "Order Line": [
            (1, 2020, "ann", "Ann", "here"),
            (1, 0, "bob", None, "there"),
            (3, -4, "cyd", "Cyd", "where"),
        ],
        "😀": [("🍐🍎", "2000-02-29", 1, 2), ("ä", None, 3, None)],
        "order_2": [(1, "x", 1), (2, None, 2)],
    }
    return Sample(Database("sqlite", tables, keys), rows)


def company() -> Sample:
    """A company: two foreign keys between the same tables, a self-reference, numbers as text, no key at all."""
    tables = (
        Table(
            "dept",
            (integer("dept_no"), text("dname", "sales", "research"), integer("budget")),
            ("dept_no",),
            "department",
        ),
        Table(
            "emp",
            (
                integer("emp_no"),
                text("ename", comment="employee name"),
                integer("mgr"),
                Column("sal", "number", comment="salary"),
                integer("dept_no"),
                integer("home_dept"),
                Column("hired", "date"),
                text("grade", "1", "2", "10"),
            ),
            ("emp_no",),
        ),
        Table(
            "log", (Column("at", "datetime"), text("entry"), Column("ok", "boolean"), Column("seconds", "number"))
        ),
    )
    keys = (
        ForeignKey("emp", ("mgr",), "emp", ("emp_no",)),
        ForeignKey("emp", ("dept_no",), "dept", ("dept_no",)),
        ForeignKey("emp", ("home_dept",), "dept", ("dept_no",)),
    )
    rows: dict[str, list[Row]] = {
        "dept": [(1, "sales", 1000), (2, "research", 0), (3, None, None)],
        "emp": [
            (7, "king", None, 5000.0, 1, 1, "2011-11-17", "10"),
            (8, "blake", 7, 2850.5, 1, 2, "2012-05-01", "2"),
            (9, "ford", 8, 3000.0, 2, 2, None, None),
            (10, "smith", 9, None, None, 2, "2020-02-29", "1"),
        ],
        "log": [("2024-01-01 00:00:00", "start", True, 0.0), ("2024-01-01 12:30:15", None, False, 12.5)],
    }
    return Sample(Database("sqlite", tables, keys), rows)


SAMPLES = {"shop": shop(), "odd names": odd_names(), "company": company()}


def geography(path: Path) -> Database:
    """Return the schema of GeoQuery's database, with the values of its text columns."""
    kinds = {"text": "text", "int": "integer", "double": "number", "varchar(3)": "text"}
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
        tables = []
        for (name,) in names:
            columns = []
            for _, column, declared, *_ in connection.execute(f"PRAGMA table_info({name})").fetchall():
                found = Column(column, kinds[declared.lower()])  # type: ignore[arg-type]
                if found.type == "text":
                    rows = connection.execute(f"SELECT DISTINCT {column} FROM {name} WHERE {column} IS NOT NULL")
                    values = sorted(str(value) for (value,) in rows)
                    found = replace(found, values=tuple(values) if len(values) <= MAX_VALUES else None)
                columns.append(found)
            tables.append(Table(name, tuple(columns)))
    return Database("sqlite", tuple(tables))
