"""Measure the grammar of SQL domains: coverage of GeoQuery, random queries executed, and a large schema.

Run: python benchmarks/sql_grammar.py; needs the data of GeoQuery (fewparse data get geoquery). Random queries are
executed in SQLite and in DuckDB, and in PostgreSQL if --postgresql gives the URL of an empty database.
"""

import argparse
import os
import random
import re
import resource
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fewparse import Domain, load_domain, open_model
from fewparse.constrain.state import State
from fewparse.domains.domain import TEST
from fewparse.domains.examples import EXAMPLES, numbered_examples
from fewparse.domains.sql.execution import DatabaseExecutor
from fewparse.domains.sql.folder import SqlDomain
from fewparse.domains.sql.judge import same_rows
from fewparse.domains.sql.urls import parse_url
from fewparse.errors import ExecutionError, InvalidProgram
from fewparse.example import TARGETS, Target
from fewparse.grammar.analysis.sampling import sample_pairs, sample_sentences
from fewparse.grammar.synchronous import SynchronousGrammar
from measure import write

TYPES = {"text": "TEXT", "int": "INTEGER", "double": "DOUBLE PRECISION", "varchar": "TEXT"}
SPLITS = {"train": EXAMPLES, "dev": "dev.jsonl", "test": TEST}
WALKS, OTHER_WALKS = 500, 100
TABLES, COLUMNS = 200, 20
KINDS = ("INTEGER", "REAL", "TEXT", "DATE")
NAMES = re.compile(r'"(?:[^"]|"")*"|\'(?:[^\']|\'\')*\'|[A-Za-z_][A-Za-z_0-9]*')
UTTERANCE = "how many things are there in bern"


def main() -> None:
    """Write a row for each measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgresql", help="URL of an empty database")
    options = parser.parse_args()
    domain = load_domain("geoquery")
    rows = [*coverage(domain), *random_queries(domain, options.postgresql), *large_schema()]
    write("sql-grammar", rows)


def coverage(domain: Domain) -> Iterator[dict[str, object]]:
    """Yield how many published queries are executed, expressible, derived, and keep their rows."""
    assert isinstance(domain.executor, DatabaseExecutor)
    assert domain.translator is not None
    for split, file in SPLITS.items():
        counts = dict.fromkeys(("queries", "executed", "expressible", "derived", "same rows"), 0)
        for _, example in numbered_examples(domain.data_file(file)):
            counts["queries"] += 1
            rows = rows_of(domain.executor, example.program)
            if rows is None:
                continue
            counts["executed"] += 1
            try:
                program = domain.constraint_kind.canonical_program(example.program)
            except InvalidProgram:
                continue
            counts["expressible"] += 1
            counts["derived"] += domain.translator.to_utterance(program).best is not None
            own = rows_of(domain.executor, program)
            counts["same rows"] += own is not None and same_rows(own, rows, ordered=False)
        yield {"measured": f"GeoQuery, {split}", **counts}


def rows_of(executor: DatabaseExecutor, sql: str) -> list[list[Any]] | None:
    """Return the rows of a query; None if it fails."""
    try:
        rows: list[list[Any]] = executor(sql)["rows"]
    except ExecutionError:
        return None
    return rows


def random_queries(domain: Domain, postgresql: str | None) -> Iterator[dict[str, object]]:
    """Yield how many random queries are executed, and how many name something that the schema does not have."""
    executor = domain.executor
    assert isinstance(executor, DatabaseExecutor)
    path = executor.url.path
    assert path is not None
    assert isinstance(domain.language, SynchronousGrammar)
    walks = {
        "programs": list(sample_sentences(domain.side("program"), WALKS, 0)),
        "translated utterances": [pair.program for pair in sample_pairs(domain.language, WALKS, 0)],
    }
    known = known_names(domain)
    with tempfile.TemporaryDirectory() as folder:
        urls = {"SQLite": (executor.url.text, WALKS)}
        urls["DuckDB"] = f"duckdb:///{folder}/geography.duckdb", OTHER_WALKS
        copy_to_duckdb(path, Path(folder) / "geography.duckdb")
        if postgresql is not None:
            copy_to_postgresql(path, postgresql)
            urls["PostgreSQL"] = postgresql, OTHER_WALKS
        for kind, (url, count) in urls.items():
            other = DatabaseExecutor(parse_url(url))
            for name, queries in walks.items():
                executed = sum(rows_of(other, query) is not None for query in queries[:count])
                unknown = sum(bool(names_in(query) - known) for query in queries[:count])
                yield {
                    "measured": f"random {name}, {kind}",
                    "queries": len(queries[:count]),
                    "executed": executed,
                    "with an unknown name": unknown,
                }


def names_in(sql: str) -> set[str]:
    """Return the names in a query, without the words of SQL, which are in upper case."""
    words = (word for word in NAMES.findall(sql) if not word.startswith("'"))
    return {word for word in words if word != word.upper()}


def known_names(domain: Domain) -> set[str]:
    """Return the names of the schema, and those that the grammar gives to occurrences of tables and results."""
    assert isinstance(domain.executor, DatabaseExecutor)
    database = SqlDomain.reflect("geoquery", domain.executor.url).database
    tables = {table.name for table in database.tables}
    columns = {column.name for table in database.tables for column in table.columns}
    aliases = {f"{table}_{number}" for table in tables for number in (2, 3, 4)}
    return tables | columns | aliases | {"item", "derived"}


def tables_of(path: Path) -> Iterator[tuple[str, list[tuple[str, str]], list[tuple[object, ...]]]]:
    """Yield the name, the columns with their types, and the rows of each table of a SQLite database."""
    with sqlite3.connect(path) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            described = connection.execute(f"PRAGMA table_info({name})").fetchall()
            columns = [
                (column, TYPES[declared.partition("(")[0].lower()]) for _, column, declared, *_ in described
            ]
            yield name, columns, connection.execute(f"SELECT * FROM {name}").fetchall()


def copy_to_duckdb(path: Path, copied: Path) -> None:
    """Copy the tables of a SQLite database into a new DuckDB database."""
    import duckdb

    with duckdb.connect(str(copied)) as connection:
        for name, columns, rows in tables_of(path):
            connection.execute(f"CREATE TABLE {name} ({', '.join(map(' '.join, columns))})")
            connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", rows)


def copy_to_postgresql(path: Path, url: str) -> None:
    """Copy the tables of a SQLite database into an empty PostgreSQL database."""
    import psycopg

    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        for name, columns, rows in tables_of(path):
            cursor.execute(f"CREATE TABLE {name} ({', '.join(map(' '.join, columns))})")
            cursor.executemany(f"INSERT INTO {name} VALUES ({', '.join(['%s'] * len(columns))})", rows)


def large_schema() -> Iterator[dict[str, object]]:
    """Yield the processor time and memory of a domain of 200 tables with 4,000 columns, made and then cached."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FEWPARSE_CACHE"] = folder
        path = Path(folder) / "large.db"
        make_large(path)
        start = time.process_time()
        SqlDomain.reflect("large", parse_url(f"sqlite:///{path}")).write(Path(folder) / "large")
        _ = load_domain(Path(folder) / "large").language
        made, start = time.process_time() - start, time.process_time()
        domain = load_domain(Path(folder) / "large")
        _ = domain.language
        loaded = time.process_time() - start
        yield {"measured": "large schema", "made, seconds": round(made, 1), "loaded, seconds": round(loaded, 1)}
        for target in TARGETS:
            yield {"measured": f"large schema, {target}", **masks(domain, target)}


def masks(domain: Domain, target: Target) -> dict[str, object]:
    """Return the time until the first mask, and that of the masks of random walks."""
    vocabulary = open_model().vocabulary
    assert vocabulary is not None
    start = time.process_time()
    constraint = domain.constraint(vocabulary, target, UTTERANCE)
    constraint.start().mask()
    first = time.process_time() - start
    rng, seconds = random.Random(0), list[float]()
    for _ in range(20):
        state: State | None = constraint.start()
        for _ in range(100):
            assert state is not None
            before = time.process_time()
            mask = state.mask()
            seconds.append(time.process_time() - before)
            allowed = np.flatnonzero(mask)
            if not len(allowed) or (state.may_end and rng.random() < 0.3):
                break
            state = state.advance(vocabulary.tokens[int(rng.choice(list(allowed)))])
    return {
        "first mask, seconds": round(first, 2),
        "masks": len(seconds),
        "mask mean, ms": round(1000 * statistics.mean(seconds), 2),
        "mask maximum, ms": round(1000 * max(seconds), 1),
        "peak memory, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def make_large(path: Path) -> None:
    """Write a database of 200 tables with 20 columns each, one of them a foreign key."""
    rng = random.Random(0)
    with sqlite3.connect(path) as connection:
        for table in range(TABLES):
            columns = [f"col_{table}_{k} {rng.choice(KINDS)}" for k in range(COLUMNS - 2)]
            other = rng.randrange(table) if table else 0
            key = f"other_{table} INTEGER REFERENCES table_{other}(id)"
            connection.execute(f"CREATE TABLE table_{table} (id INTEGER PRIMARY KEY, {key}, {', '.join(columns)})")


if __name__ == "__main__":
    main()
