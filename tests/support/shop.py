"""A small shop as a database of SQLite, DuckDB and PostgreSQL."""

import sqlite3
from pathlib import Path

SCHEMA = '''
CREATE TABLE customer (
    id INTEGER PRIMARY KEY,
    name VARCHAR(40) NOT NULL,
    city VARCHAR(40),
    password_hash VARCHAR(40)
);
CREATE TABLE product (
    sku VARCHAR(10) PRIMARY KEY,
    title VARCHAR(60) NOT NULL,
    price DECIMAL(10, 2),
    in_stock BOOLEAN
);
CREATE TABLE "order" (
    id INTEGER PRIMARY KEY,
    customer_id INTEGER REFERENCES customer (id),
    sku VARCHAR(10) REFERENCES product (sku),
    quantity INTEGER NOT NULL,
    ordered DATE,
    "ship to ""☃""" VARCHAR(20)
);
CREATE VIEW spending AS
    SELECT c.name, SUM(o.quantity) AS items FROM customer c JOIN "order" o ON o.customer_id = c.id GROUP BY c.name;
'''
ROWS = """
INSERT INTO customer VALUES
    (1, 'Anna', 'Bern', 'x1'), (2, 'Bo', 'Oslo', 'x2'), (3, 'Chloé', NULL, 'x3'), (4, 'Dan''s', 'Bern', 'x4');
INSERT INTO product VALUES
    ('lamp', 'Desk lamp', 19.50, TRUE), ('pen', 'Blue pen', 1.25, TRUE), ('desk', 'Oak desk', 320.00, FALSE);
INSERT INTO "order" VALUES
    (1, 1, 'lamp', 1, '2024-01-05', NULL), (2, 1, 'pen', 10, '2024-02-06', 'office'),
    (3, 2, 'desk', 1, '2024-02-07', 'home'), (4, 4, 'pen', 3, '2024-03-08', 'home');
"""


def make_sqlite(path: Path, script: str = SCHEMA + ROWS) -> str:
    """Write a SQLite database, by default the shop; return its URL."""
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()
    return f"sqlite:///{path}"


def make_duckdb(path: Path, script: str = SCHEMA + ROWS) -> str:
    """Write a DuckDB database, by default the shop; return its URL."""
    import duckdb

    with duckdb.connect(str(path)) as connection:
        connection.execute(script)
    return f"duckdb:///{path}"
