"""Queries are executed read-only and within limits, whatever is tried; answers are JSON."""

import hashlib
import json
import math
import os
import threading
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from fewparse.domains.sql.execution import DatabaseExecutor
from fewparse.domains.sql.functions import SAFE_FUNCTIONS
from fewparse.domains.sql.inspection import ReflectedConnection
from fewparse.domains.sql.rows import QueryLimits, json_value
from fewparse.domains.sql.statement import check_query
from fewparse.domains.sql.urls import parse_url
from fewparse.errors import DatabaseError, ExecutionError
from support.postgres import Cluster
from support.shop import make_duckdb, make_sqlite

ENGINES = ["sqlite", "duckdb", "postgres"]
ENDLESS = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT MAX(x) FROM n"


class Shop:
    """The shop of one engine, and what shows whether it was changed."""

    def __init__(self, url: str, cluster: Cluster | None = None) -> None:
        self.url = parse_url(url)
        self._cluster = cluster

    def executor(self, **settings: Any) -> DatabaseExecutor:
        return DatabaseExecutor(self.url, **settings)

    def state(self) -> object:
        if self._cluster is None:
            assert self.url.path is not None
            return hashlib.sha256(self.url.path.read_bytes()).hexdigest(), sorted(os.listdir(self.url.path.parent))
        return self.executor()("SELECT c.id, c.name, p.sku FROM customer c, product p ORDER BY c.id, p.sku")


@pytest.fixture(params=ENGINES)
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Shop:
    if request.param == "postgres":
        cluster: Cluster = request.getfixturevalue("postgres")
        return Shop(cluster.url("shop"), cluster)
    make = {"sqlite": make_sqlite, "duckdb": make_duckdb}[request.param]
    return Shop(make(tmp_path / "shop.db"))


def test_an_answer_has_columns_and_rows(shop: Shop) -> None:
    answer = shop.executor()("SELECT name, city FROM customer WHERE name LIKE '%n%' ORDER BY name DESC;")
    rows = [["Dan's", "Bern"], ["Anna", "Bern"]]
    assert answer == {"columns": ["name", "city"], "rows": rows, "truncated": False}


def test_values_are_json(shop: Shop) -> None:
    answer = shop.executor()(
        'SELECT o.ordered, p.price, p.in_stock, c.city FROM "order" o JOIN product p ON o.sku = p.sku '
        "JOIN customer c ON c.id = o.customer_id WHERE o.id = 1"
    )
    in_stock = 1 if shop.url.kind == "sqlite" else True
    assert answer["rows"] == [["2024-01-05", 19.5, in_stock, "Bern"]]
    assert json.loads(json.dumps(answer)) == answer


def test_rows_beyond_the_limit_are_cut_and_that_is_said(shop: Shop) -> None:
    sql = "SELECT a.id FROM customer a, customer b ORDER BY a.id"
    assert shop.executor(max_rows=16)(sql)["truncated"] is False
    answer = shop.executor(max_rows=15)(sql)
    assert (len(answer["rows"]), answer["truncated"]) == (15, True)


def test_bytes_beyond_the_limit_are_cut(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEWPARSE_MAX_ANSWER_BYTES", "1000")
    long = "'" + "x" * 300 + "'"
    answer = shop.executor()(f"SELECT {long} FROM customer")
    assert (len(answer["rows"]), answer["truncated"]) == (3, True)
    with pytest.raises(ExecutionError, match=r"bytes|too large"):
        shop.executor()(f"SELECT {long} || {long} || {long} || {long}")


def test_a_query_that_never_ends_is_ended(shop: Shop) -> None:
    executor = shop.executor(max_seconds=0.2)
    for _ in range(2):
        with pytest.raises(ExecutionError, match=r"did not end within 0\.2 seconds"):
            executor(ENDLESS)
    assert executor("SELECT COUNT(*) FROM customer")["rows"] == [[4]]


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE customer",
        "DELETE FROM customer",
        "UPDATE customer SET name = 'x'",
        "INSERT INTO customer VALUES (9, 'x', 'y', 'z')",
        "CREATE TABLE t (a INTEGER)",
        "CREATE TEMP TABLE t (a INTEGER)",
        "ALTER TABLE customer ADD COLUMN x INTEGER",
        "TRUNCATE TABLE customer",
        "ATTACH ':memory:' AS other",
        "ATTACH DATABASE 'other.db' AS other",
        "DETACH main",
        "PRAGMA journal_mode = WAL",
        "PRAGMA query_only = OFF",
        "VACUUM",
        "VACUUM INTO 'copy.db'",
        "REINDEX",
        "ANALYZE",
        "CHECKPOINT",
        "BEGIN",
        "COMMIT",
        "SAVEPOINT s",
        "SET statement_timeout = 0",
        "SET threads = 1",
        "RESET ALL",
        "USE main",
        "COPY customer TO 'out.csv'",
        "COPY customer FROM PROGRAM 'touch pwned'",
        "EXPORT DATABASE 'out'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "CALL pragma_version()",
        "DO $$ BEGIN DROP TABLE customer; END $$",
        "LISTEN x",
        "NOTIFY x",
        "LOCK TABLE customer",
        "GRANT ALL ON customer TO PUBLIC",
        "EXECUTE p",
        "PREPARE p AS SELECT 1",
        "SELECT 1; DROP TABLE customer",
        "SELECT 1; SELECT 2",
        "SELECT * INTO t FROM customer",
        "SELECT * FROM customer FOR UPDATE",
        "WITH d AS (DELETE FROM customer RETURNING *) SELECT * FROM d",
        "SELECT pg_sleep(100)",
        'SELECT "pg_sleep"(100)',
        "SELECT pg_catalog.pg_sleep(100)",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT * FROM pg_read_file('/etc/passwd')",
        "SELECT lo_import('/etc/passwd')",
        "SELECT pg_terminate_backend(1)",
        "SELECT set_config('statement_timeout', '0', FALSE)",
        "SELECT query_to_xml('DROP TABLE customer', TRUE, TRUE, '')",
        "SELECT dblink('dbname=shop', 'DROP TABLE customer')",
        "SELECT load_extension('evil')",
        "SELECT readfile('/etc/passwd')",
        "SELECT writefile('out', 'x')",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM pragma_table_info('customer')",
        "SELECT getenv('HOME')",
        "SELECT repeat('x', 2000000000)",
        "SELECT lpad('x', 2000000000)",
        "SELECT hex(zeroblob(500000000))",
        "SELECT * FROM generate_series(1, 2000000000)",
        "",
        "-- only a comment",
        ";",
        "hello",
        "SELECT FROM WHERE",
        "SELECT no_such_column FROM customer",
        "SELECT * FROM no_such_table",
        "(" * 5000,
        "SELECT " + "(" * 3000 + "1" + ")" * 3000,
        "SELECT '\ud800'",
    ],
    ids=lambda sql: ascii(sql[:40]),
)
def test_whatever_is_not_a_harmless_query_is_refused_and_changes_nothing(
    sql: str, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    before = shop.state()
    executor = shop.executor(max_seconds=2.0)
    with pytest.raises(ExecutionError):
        executor(sql)
    assert shop.state() == before
    assert os.listdir() == []
    assert executor("SELECT COUNT(*) FROM customer")["rows"] == [[4]]


@pytest.mark.parametrize(("sql", "word"), [("drop table customer", "DROP"), ("/* x */ Update customer", "UPDATE")])
def test_statements_that_write_are_refused_by_name(sql: str, word: str, shop: Shop) -> None:
    with pytest.raises(ExecutionError, match=f"{word} is refused: a query may only read"):
        shop.executor()(sql if "Update" not in sql else f"{sql} SET id = 1")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT UPPER(name), LENGTH(name), COALESCE(city, '?') FROM customer",
        "SELECT COUNT(DISTINCT city), MIN(id), MAX(id), AVG(id), SUM(id) FROM customer",
        "SELECT name, ROW_NUMBER() OVER (ORDER BY id) FROM customer",
        "SELECT CASE WHEN id > 2 THEN 'x' END FROM customer WHERE id BETWEEN 1 AND 3 AND NOT name IN ('B')",
        "SELECT city, COUNT(*) FROM customer GROUP BY city HAVING COUNT(*) > 1 ORDER BY 2 DESC LIMIT 3",
        'SELECT name FROM customer c WHERE EXISTS (SELECT 1 FROM "order" o WHERE o.customer_id = c.id)',
        'SELECT id FROM customer EXCEPT SELECT customer_id FROM "order"',
        "SELECT CAST(id AS TEXT) || name FROM customer",
        "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 5) SELECT SUM(x) FROM n",
        "SELECT ROUND(price * 1.5, 1), ABS(price) FROM product",
        "SELECT name FROM (SELECT name FROM customer ORDER BY id LIMIT 2) AS first",
    ],
)
def test_harmless_queries_run_on_every_engine(sql: str, shop: Shop) -> None:
    assert shop.executor()(sql)["rows"]


def test_functions_of_the_list_pass_the_check() -> None:
    for name in ("lower", "strftime", "date_trunc", "extract", "string_agg", "greatest"):
        assert name in SAFE_FUNCTIONS
    assert "EXTRACT(YEAR FROM d)" in check_query("select extract(year from d) from t", "postgres")


def test_a_lost_connection_is_an_error_and_the_next_query_opens_another(postgres: Cluster) -> None:
    executor = DatabaseExecutor(parse_url(postgres.url("shop")))
    executor("SELECT 1")
    postgres.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'fewparse'")
    with pytest.raises(DatabaseError, match="was lost"):
        executor("SELECT 1")
    assert executor("SELECT 1")["rows"] == [[1]]


def test_the_session_of_postgresql_stays_as_it_was(postgres: Cluster) -> None:
    executor = DatabaseExecutor(parse_url(postgres.url("shop")), max_seconds=0.5)
    with pytest.raises(ExecutionError):
        executor("SELECT 1 / 0")
    assert executor("SELECT 1")["rows"] == [[1]]


def test_other_schemas_are_on_the_search_path(tmp_path: Path, postgres: Cluster) -> None:
    create = 'CREATE SCHEMA "my sales"; CREATE TABLE "my sales".item (id INTEGER);'
    script = create + ' INSERT INTO "my sales".item VALUES (7);'
    postgres.execute("CREATE DATABASE search_path")
    postgres.execute(script, "search_path")
    for url in (make_duckdb(tmp_path / "a.db", script), postgres.url("search_path")):
        executor = DatabaseExecutor(parse_url(url), schemas=["my sales"])
        assert executor("SELECT id FROM item")["rows"] == [[7]]


def test_a_database_of_another_kind_is_not_executed_on() -> None:
    unopened = ReflectedConnection.__new__(ReflectedConnection)
    unopened.url = parse_url("mysql://host/shop")
    with pytest.raises(ExecutionError, match="cannot make the connection read-only"):
        unopened.query("SELECT 1", QueryLimits(1, 1.0, 1))


def test_threads_share_an_executor(shop: Shop) -> None:
    executor = shop.executor()
    answers: list[Any] = []

    def ask() -> None:
        answers.append(executor("SELECT COUNT(*) FROM customer"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer["rows"] for answer in answers] == [[[4]]] * 8


def test_a_forked_process_opens_its_own_connection(tmp_path: Path) -> None:
    executor = DatabaseExecutor(parse_url(make_sqlite(tmp_path / "a.db")))
    executor("SELECT 1")
    child = os.fork()
    if child == 0:
        os._exit(0 if executor("SELECT COUNT(*) FROM customer")["rows"] == [[4]] else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_text_that_is_not_utf8_is_shown_with_replacements(tmp_path: Path) -> None:
    url = make_sqlite(tmp_path / "a.db", "CREATE TABLE t (a TEXT); INSERT INTO t VALUES (CAST(x'ff61' AS TEXT));")
    executor = DatabaseExecutor(parse_url(url))
    for _ in range(2):
        assert executor("SELECT a FROM t")["rows"] == [["\ufffda"]]


def test_a_database_with_a_write_ahead_log_in_a_folder_that_is_not_writable_can_be_read(tmp_path: Path) -> None:
    url = make_sqlite(
        tmp_path / "a.db", "PRAGMA journal_mode = WAL; CREATE TABLE t (a TEXT); INSERT INTO t VALUES ('x');"
    )
    tmp_path.chmod(0o555)
    try:
        assert DatabaseExecutor(parse_url(url))("SELECT a FROM t")["rows"] == [["x"]]
    finally:
        tmp_path.chmod(0o755)


def test_full_text_search_works_under_the_authorizer(tmp_path: Path) -> None:
    script = "CREATE VIRTUAL TABLE notes USING fts5 (body); INSERT INTO notes VALUES ('red lamp'), ('blue pen');"
    executor = DatabaseExecutor(parse_url(make_sqlite(tmp_path / "a.db", script)))
    assert executor("SELECT body FROM notes WHERE notes MATCH 'lamp'")["rows"] == [["red lamp"]]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Decimal("12.50"), 12.5),
        (Decimal("3.00"), 3),
        (Decimal("1e3"), 1000),
        (Decimal("1234567890123456789.12"), "1234567890123456789.12"),
        (Decimal("NaN"), "NaN"),
        (Decimal("-Infinity"), "-Infinity"),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (b"\x00\xff", "0x00ff"),
        (timedelta(days=1, microseconds=-500_000), "PT86399.5S"),
        ([1, (2, b"")], [1, [2, "0x"]]),
        ({"a": Decimal("1.5")}, {"a": 1.5}),
        ("lone \ud800", "lone \ufffd"),
        (10**40, 10**40),
    ],
)
def test_a_value_of_any_type_becomes_json(value: object, expected: object) -> None:
    assert json_value(value) == expected
    json.dumps(json_value(value), allow_nan=False)
