"""The schema of a database is read as it is: names, types, keys, comments, and values that are few."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from fewparse.domains.sql.connection import Connection, Reflected, open_database
from fewparse.domains.sql.database import Column, Database, ForeignKey
from fewparse.domains.sql.reflect import ValueLimits, reflect, share_values
from fewparse.domains.sql.rows import QueryLimits
from fewparse.domains.sql.sqlite_schema import column_type
from fewparse.domains.sql.urls import parse_url
from fewparse.errors import DatabaseError, UnknownName
from support.postgres import Cluster
from support.shop import make_duckdb, make_sqlite

SNOWMAN = 'ship to "☃"'


def connect(url: str, *schemas: str) -> Connection:
    return open_database(parse_url(url), schemas)


def reflected(url: str, *schemas: str) -> Reflected:
    connection = connect(url, *schemas)
    try:
        return reflect(connection)
    finally:
        connection.close()


@pytest.fixture(params=["sqlite", "duckdb", "postgres"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    if request.param == "postgres":
        cluster: Cluster = request.getfixturevalue("postgres")
        return reflected(cluster.url("shop")).database
    make = {"sqlite": make_sqlite, "duckdb": make_duckdb}[request.param]
    return reflected(make(tmp_path / "shop.db")).database


def test_every_engine_shows_the_same_shop(shop: Database) -> None:
    types = {table.name: {column.name: column.type for column in table.columns} for table in shop.tables}
    assert types == {
        "customer": {"id": "integer", "name": "text", "city": "text", "password_hash": "text"},
        "product": {"sku": "text", "title": "text", "price": "number", "in_stock": "boolean"},
        "order": {
            "id": "integer",
            "customer_id": "integer",
            "sku": "text",
            "quantity": "integer",
            "ordered": "date",
            SNOWMAN: "text",
        },
        "spending": {"name": "text", "items": "integer"},
    }
    assert set(shop.foreign_keys) == {
        ForeignKey("order", ("customer_id",), "customer", ("id",)),
        ForeignKey("order", ("sku",), "product", ("sku",)),
    }
    assert shop.by_name["customer"].primary_key == ("id",)
    assert shop.by_name["product"].primary_key == ("sku",)
    nullable = {column.name for column in shop.by_name["order"].columns if column.nullable}
    assert nullable == {"customer_id", "sku", "ordered", SNOWMAN}


def test_few_values_are_listed_but_never_those_of_secret_columns(shop: Database) -> None:
    values = {(t.name, c.name): c.values for t in shop.tables for c in t.columns if c.values is not None}
    assert values == {
        ("customer", "name"): ("Anna", "Bo", "Chloé", "Dan's"),
        ("customer", "city"): ("Bern", "Oslo"),
        ("product", "sku"): ("desk", "lamp", "pen"),
        ("product", "title"): ("Blue pen", "Desk lamp", "Oak desk"),
        ("order", "sku"): ("desk", "lamp", "pen"),
        ("order", SNOWMAN): ("home", "office"),
        ("spending", "name"): ("Anna", "Bo", "Chloé", "Dan's"),  # also those without an order
    }


def test_columns_that_are_related_share_their_values() -> None:
    states = tuple("abcdef")
    found: dict[tuple[str, str], tuple[str, ...]] = {
        ("state", "name"): states,
        ("city", "name"): ("a", "z"),
        ("river", "traverses"): ("a", "b", "c", "d"),
        ("lake", "inside"): ("a",),
        ("lake", "kind"): ("a", "b", "x"),
    }
    names = (*states, "z")
    assert share_values(found, 10) == found | {
        ("state", "name"): names,
        ("city", "name"): names,
        ("river", "traverses"): names,
    }
    assert share_values(found, 6)["city", "name"] == ("a", "z")  # together they are too many


def test_names_of_which_more_will_be_added_are_not_listed(tmp_path: Path) -> None:
    url = make_sqlite(tmp_path / "a.db", "CREATE TABLE t (name TEXT, kind TEXT, first TEXT);")
    with sqlite3.connect(tmp_path / "a.db") as connection:
        rows = [(f"name {i}", f"kind {i % 101}", None if i > 99 else f"first {i}") for i in range(200)]
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
    connection.close()
    columns = reflected(url).database.tables[0].columns
    assert [column.name for column in columns if column.values is not None] == ["kind", "first"]


def test_a_schema_survives_json(shop: Database) -> None:
    assert Database.from_dict(shop.as_dict()) == shop


@pytest.mark.parametrize(
    ("declared", "values", "expected"),
    [
        ("INTEGER", {1, 2}, "integer"),
        ("INTEGER", set(), "integer"),
        ("BIGINT", {"none", "many"}, "text"),
        ("", {1, 2}, "integer"),
        ("", {1, 2.5}, "number"),
        ("", {"a"}, "text"),
        ("", set(), "text"),
        ("VARCHAR(10)", {"2024-01-31"}, "date"),
        ("TEXT", {"2024-01-31 10:00:00", "2024-01-31T10:00"}, "datetime"),
        ("TEXT", {"10:30", "10:30:59.5"}, "time"),
        ("TEXT", {"2024-01-31", "soon"}, "text"),
        ("DATE", {19723}, "integer"),
        ("DATE", {"2024-01-31"}, "date"),
        ("TIMESTAMP", set(), "datetime"),
        ("BOOLEAN", {0, 1}, "boolean"),
        ("BOOLEAN", {0, 1, 2}, "integer"),
        ("DECIMAL(10, 2)", {1, 2}, "number"),
        ("NUMERIC", {1, "n/a"}, "number"),
        ("DOUBLE", {1.5}, "number"),
        ("BLOB", {"0x"}, "other"),
        ("GEOMETRY", set(), "other"),
    ],
)
def test_the_loose_types_of_sqlite_follow_the_stored_values(
    declared: str, values: set[object], expected: str
) -> None:
    assert column_type(declared, values) == expected


def test_columns_with_many_or_long_values_have_none_listed(tmp_path: Path) -> None:
    url = make_sqlite(
        tmp_path / "a.db", "CREATE TABLE t (many TEXT, long TEXT, lines TEXT, empty TEXT, few TEXT);"
    )
    with sqlite3.connect(tmp_path / "a.db") as connection:
        rows = ((f"v{i}", "x" * 61, "a\nb", "", "few") for i in range(501))
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", rows)
    connection.close()
    columns = reflected(url).database.tables[0].columns
    assert [column.name for column in columns if column.values is not None] == ["few"]


def test_the_values_in_all_are_limited_and_short_lists_come_first(tmp_path: Path) -> None:
    url = make_sqlite(tmp_path / "a.db", "CREATE TABLE t (a TEXT, b TEXT); INSERT INTO t VALUES ('aaaa', 'b');")
    limits = ValueLimits(max_total_chars=4)
    connection = connect(url)
    assert [column.values for column in reflect(connection, limits=limits).database.tables[0].columns] == [
        None,
        ("b",),
    ]
    connection.close()


def test_values_that_take_too_long_are_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fewparse.domains.sql.sqlite.REFLECTION_LIMITS", QueryLimits(1000, 0.05, 1_000_000))
    endless = (
        "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT 'a' AS slow FROM n WHERE x < 0"
    )
    url = make_sqlite(tmp_path / "a.db", f"CREATE TABLE t (a TEXT); CREATE VIEW v AS {endless};")
    connection = connect(url)
    found = reflect(connection, limits=ValueLimits(max_seconds=0.05))
    assert "took too long" in found.notes[0]
    assert "v.slow" in found.notes[0]
    connection.close()


def test_names_of_any_kind_are_read(tmp_path: Path) -> None:
    names = [
        "select",
        "two words",
        'quo"te',
        "it's",
        "semi;colon",
        "émoji 🎉",
        "back\\slash",
        "percent%s",
        "[b]",
        "`",
    ]
    columns = ", ".join('"' + name.replace('"', '""') + '" TEXT' for name in names)
    tables = "".join(f'CREATE TABLE "{name.replace(chr(34), chr(34) * 2)}" ({columns});' for name in names)
    for make, file in ((make_sqlite, "a.db"), (make_duckdb, "a.duckdb")):
        database = reflected(make(tmp_path / file, tables)).database
        assert {table.name for table in database.tables} == set(names)
        assert all([column.name for column in table.columns] == names for table in database.tables)


def test_comments_are_read(tmp_path: Path, postgres: Cluster) -> None:
    script = """
        CREATE TABLE cust (cust_id INTEGER);
        COMMENT ON TABLE cust IS 'people who buy';
        COMMENT ON COLUMN cust.cust_id IS 'customer number';
    """
    postgres.execute("CREATE DATABASE comments")
    postgres.execute(script, "comments")
    for url in (make_duckdb(tmp_path / "a.db", script), postgres.url("comments")):
        table = reflected(url).database.tables[0]
        assert (table.comment, table.columns[0].comment) == ("people who buy", "customer number")


def test_types_of_postgresql(postgres: Cluster) -> None:
    postgres.execute("CREATE DATABASE types")
    postgres.execute(
        """
        CREATE TYPE mood AS ENUM ('sad', 'it''s ok');
        CREATE DOMAIN positive AS INTEGER CHECK (VALUE > 0);
        CREATE TABLE t (
            a SMALLINT, b NUMERIC, c REAL, d TIMESTAMPTZ, e TIME, f UUID, g JSONB, h INTEGER[], i BYTEA,
            j positive, k mood, l "char", m INTERVAL
        );
        CREATE TABLE parts (x INTEGER) PARTITION BY RANGE (x);
        CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
        CREATE MATERIALIZED VIEW kept AS SELECT 1 AS one;
        """,
        "types",
    )
    database = reflected(postgres.url("types")).database
    assert {table.name for table in database.tables} == {"t", "parts", "kept"}
    types = {column.name: column.type for column in database.by_name["t"].columns}
    assert types == {
        "a": "integer",
        "b": "number",
        "c": "number",
        "d": "datetime",
        "e": "time",
        "f": "other",
        "g": "other",
        "h": "other",
        "i": "other",
        "j": "integer",
        "k": "other",
        "l": "text",
        "m": "other",
    }
    assert database.by_name["t"].by_name["k"].values == ("sad", "it's ok")


def test_types_of_duckdb(tmp_path: Path) -> None:
    columns = "a UTINYINT, b HUGEINT, c DECIMAL(5, 2), d TIMESTAMP_S, e INTEGER[], f STRUCT(x INTEGER), g UUID"
    url = make_duckdb(tmp_path / "a.db", f"CREATE TABLE t ({columns}, h ENUM ('x', 'it''s'));")
    found = reflected(url).database.tables[0].columns
    kinds = ["integer", "integer", "number", "datetime", "other", "other", "other", "other"]
    assert [column.type for column in found] == kinds
    assert found[-1].values == ("x", "it's")


SCHEMAS = """
    CREATE SCHEMA "sal es";
    CREATE TABLE "sal es".item (id INTEGER PRIMARY KEY);
    CREATE TABLE "sal es".sold (item_id INTEGER REFERENCES "sal es".item (id));
"""


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
def test_tables_of_other_schemas_are_read_on_request(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if engine == "duckdb":
        url, default = make_duckdb(tmp_path / "a.db", SCHEMAS), "main"
    else:
        cluster: Cluster = request.getfixturevalue("postgres")
        cluster.execute("CREATE DATABASE schemas")
        cluster.execute(SCHEMAS, "schemas")
        url, default = cluster.url("schemas"), "public"
    with pytest.raises(DatabaseError, match="no tables") as raised:
        reflected(url)
    assert "--schema sal es" in str(raised.value)
    database = reflected(url, default, "sal es").database
    assert {table.name for table in database.tables} == {"item", "sold"}
    assert database.foreign_keys == (ForeignKey("sold", ("item_id",), "item", ("id",)),)
    with pytest.raises(DatabaseError, match="no_such"):
        reflected(url, "no_such")


def test_of_two_tables_with_one_name_the_first_of_the_search_path_is_kept(tmp_path: Path) -> None:
    script = "CREATE TABLE t (a INTEGER); CREATE SCHEMA s; CREATE TABLE s.t (b INTEGER);"
    url = make_duckdb(tmp_path / "a.db", script)
    found = reflected(url, "s", "main")
    assert found.database.tables[0].columns == (Column("b", "integer"),)
    assert found.notes == ("the table t of main is left out: s has one of that name",)


def test_foreign_keys_of_sqlite_are_resolved(tmp_path: Path) -> None:
    script = """
        CREATE TABLE Parent (Id INTEGER PRIMARY KEY, x INTEGER, y INTEGER, UNIQUE (x, y));
        CREATE TABLE child (
            a REFERENCES parent, b REFERENCES missing (id), c, d,
            FOREIGN KEY (C, D) REFERENCES PARENT (X, Y), FOREIGN KEY (a) REFERENCES Parent (no_such)
        );
    """
    assert set(reflected(make_sqlite(tmp_path / "a.db", script)).database.foreign_keys) == {
        ForeignKey("child", ("a",), "Parent", ("Id",)),
        ForeignKey("child", ("c", "d"), "Parent", ("x", "y")),
    }


def test_full_text_tables_and_broken_views_of_sqlite(tmp_path: Path) -> None:
    script = """
        CREATE VIRTUAL TABLE notes USING fts5 (body);
        CREATE VIEW broken AS SELECT * FROM gone;
        CREATE TABLE notes_data_2 (x TEXT);
    """
    found = reflected(make_sqlite(tmp_path / "a.db", script))
    assert [table.name for table in found.database.tables] == ["notes", "notes_data_2"]
    assert found.database.tables[0].columns[0].name == "body"
    assert found.notes == ("the view broken is left out: no such table: main.gone",)


def test_some_tables_are_selected_by_patterns(tmp_path: Path) -> None:
    connection = connect(make_sqlite(tmp_path / "a.db"))
    database = reflect(connection, ["cust*", "order"]).database
    assert [table.name for table in database.tables] == ["customer", "order"]
    assert database.foreign_keys == (ForeignKey("order", ("customer_id",), "customer", ("id",)),)
    with pytest.raises(UnknownName, match="'custmer'"):
        reflect(connection, ["custmer"])
    connection.close()


def test_ten_thousand_columns_are_read(tmp_path: Path) -> None:
    columns = ", ".join(f"c{i} TEXT" for i in range(1000))
    script = "".join(f"CREATE TABLE t{i} ({columns});" for i in range(10))
    database = reflected(make_sqlite(tmp_path / "a.db", script)).database
    assert sum(len(table.columns) for table in database.tables) == 10_000


def lock_sqlite(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("BEGIN EXCLUSIVE")
    return connection


def test_a_locked_database_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fewparse.domains.sql.sqlite.BUSY_SECONDS", 0.05)
    url = make_sqlite(tmp_path / "a.db")
    writer = lock_sqlite(tmp_path / "a.db")
    try:
        with pytest.raises(DatabaseError, match="locked by another program"):
            connect(url)
    finally:
        writer.close()
    connect(url).close()


def text_file(path: Path) -> str:
    path.write_text("hello " * 100)
    return f"sqlite:///{path}"


def folder(path: Path) -> str:
    path.mkdir()
    return f"sqlite:///{path}"


def other_engine(path: Path) -> str:
    return make_duckdb(path).replace("duckdb", "sqlite")


def other_engine_for_duckdb(path: Path) -> str:
    return make_sqlite(path).replace("sqlite", "duckdb")


def text_file_for_duckdb(path: Path) -> str:
    return text_file(path).replace("sqlite", "duckdb")


def damaged(path: Path) -> str:
    url = make_sqlite(path)
    content = bytearray(path.read_bytes())
    content[100:4096] = b"\xff" * 3996
    path.write_bytes(content)
    return url


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: f"sqlite:///{path}", "No such file"),
        (lambda path: f"duckdb:///{path}", "No such file"),
        (text_file, "is not a SQLite database"),
        (text_file_for_duckdb, "is not a DuckDB database"),
        (folder, "not a regular file but a folder"),
        (other_engine, "is a DuckDB database"),
        (other_engine_for_duckdb, "is not a DuckDB database"),
        (damaged, "damaged|malformed"),
        (lambda path: make_sqlite(path, ""), "has no tables"),
        (lambda path: make_duckdb(path, ""), "has no tables"),
        (lambda path: make_sqlite(path, "CREATE VIEW v AS SELECT * FROM gone;"), "no tables that can be read"),
    ],
)
def test_what_cannot_be_reflected_is_an_error_with_the_reason(
    make: Callable[[Path], str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(DatabaseError, match=message):
        reflected(make(tmp_path / "a.db"))


def test_a_wrong_password_is_an_error_that_does_not_show_it(postgres: Cluster) -> None:
    with pytest.raises(DatabaseError, match="password authentication failed") as raised:
        connect(postgres.tcp_url("wr0ng!"))
    assert "wr0ng" not in str(raised.value)
    with pytest.raises(DatabaseError, match="no password"):
        connect(postgres.tcp_url(None))
    connect(postgres.tcp_url()).close()


def test_a_server_that_does_not_answer_is_an_error() -> None:
    with pytest.raises(DatabaseError, match="refused"):
        connect("postgresql://anna@127.0.0.1:1/shop")


@pytest.mark.parametrize("url", ["mysql://root@127.0.0.1/shop", "mysql+nosuchdriver://127.0.0.1/shop"])
def test_a_missing_driver_is_an_error_with_a_hint(url: str) -> None:
    with pytest.raises(DatabaseError, match="is not installed") as raised:
        connect(url)
    assert "Install the driver" in str(raised.value)


@pytest.mark.parametrize(("module", "url"), [("duckdb", "duckdb:///a.db"), ("psycopg", "postgresql://h/d")])
def test_the_extra_of_a_missing_driver_is_named(module: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(DatabaseError, match=r"is not installed\n  Install it: pip install 'fewparse\["):
        connect(url)
