"""Read the schema of a SQLite database: its pragmas and, because its types are loose, stored values."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fewparse.domains.sql.connection import Reflected
from fewparse.domains.sql.database import Column, ColumnType, Database, ForeignKey, Table
from fewparse.domains.sql.rows import QueryTimeout
from fewparse.errors import ExecutionError

Query = Callable[[str], Sequence[tuple[Any, ...]]]
Quote = Callable[[str], str]
SAMPLE_ROWS = 100
SHADOW_TABLES = re.compile(r"(.*)_(?:content|data|idx|docsize|config|segments|segdir|stat|node|parent|rowid)")
HIDDEN = 1
"""A hidden column of a virtual table, in the result of `table_xinfo`."""
DATE = r"\d{4}-\d\d-\d\d"
TIME = r"\d\d:\d\d(?::\d\d(?:\.\d+)?)?"
FORMATS: dict[ColumnType, re.Pattern[str]] = {
    "date": re.compile(DATE),
    "time": re.compile(TIME),
    "datetime": re.compile(rf"{DATE}[ T]{TIME}(?:Z|[+-]\d\d:?\d\d)?"),
}
"""The forms in which SQLite's functions read dates and times."""
BLOB = "0x"
"""What a sample has for any value of bytes."""
DECLARATIONS: dict[str, ColumnType] = {
    "BLOB": "other",
    "REAL": "number",
    "FLOA": "number",
    "DOUB": "number",
    "DEC": "number",
    "NUM": "number",
    "MONEY": "number",
    "BOOL": "boolean",
    "DATETIME": "datetime",
    "TIMESTAMP": "datetime",
    "DATE": "date",
    "TIME": "time",
}
"""Types by a part of the declaration, the first that occurs."""


def reflect_sqlite(query: Query, quote: Quote) -> Reflected:
    """Return the schema that the queries of a connection show; tables that cannot be read are noted."""
    listed = query("SELECT name, type, sql FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY rowid")
    virtual = {name for name, _, sql in listed if re.match(r"\s*CREATE\s+VIRTUAL", sql or "", re.IGNORECASE)}
    tables: list[Table] = []
    notes: list[str] = []
    keys: list[ForeignKey] = []
    for name, kind, _ in listed:
        shadow = SHADOW_TABLES.fullmatch(name)
        if name.lower().startswith("sqlite_") or (shadow and shadow[1] in virtual):
            continue
        try:
            tables.append(read_table(name, query, quote))
            keys += read_keys(name, query, quote) if kind == "table" else ()
        except ExecutionError as error:
            notes.append(f"the {kind} {name} is left out: {error.message}")
    return Reflected(Database("sqlite", tuple(tables), tuple(resolve_keys(keys, tables))), tuple(notes))


def read_table(name: str, query: Query, quote: Quote) -> Table:
    """Return a table or a view."""
    info = [row for row in query(f"PRAGMA table_xinfo({quote(name)})") if row[6] != HIDDEN]
    samples = read_samples(name, [row[1] for row in info], query, quote)
    columns = tuple(
        Column(column, column_type(declared or "", sample), not (not_null or key))
        for (_, column, declared, not_null, _, key, _), sample in zip(info, samples, strict=True)
    )
    if not columns:
        raise ExecutionError("it has no columns")
    return Table(name, columns, tuple(column for _, column in sorted((row[5], row[1]) for row in info if row[5])))


def read_samples(table: str, columns: Sequence[str], query: Query, quote: Quote) -> list[set[Any]]:
    """Return values of the first rows for each column, long ones cut; none if a view takes too long."""
    short = "CASE typeof({0}) WHEN 'text' THEN substr({0}, 1, 40) WHEN 'blob' THEN x'' ELSE {0} END"
    shown = (short.format(quote(column)) for column in columns)
    try:
        rows = query(f"SELECT {', '.join(shown)} FROM {quote(table)} LIMIT {SAMPLE_ROWS}") if columns else ()
    except QueryTimeout:
        rows = ()
    return [{row[i] for row in rows} - {None} for i in range(len(columns))]


def column_type(declared: str, sample: set[Any]) -> ColumnType:
    """Return the type of a column by its values, and by its declaration where they leave it open.

    SQLite stores any value in any column. It has no dates, times and booleans: they are text or numbers, and a
    declaration such as DATE does not change that.
    """
    name = declared.upper()
    texts = {value for value in sample if isinstance(value, str)}
    numbers = sample - texts
    if not sample:
        return declared_type(name)
    if sample == {BLOB}:
        return "other"
    if not numbers:
        return next((kind for kind, form in FORMATS.items() if all(map(form.fullmatch, texts))), "text")
    if texts and declared_type(name) in ("text", "other"):
        return "text"
    if "BOOL" in name and sample <= {0, 1}:
        return "boolean"
    whole = all(isinstance(value, int) for value in numbers)
    return "integer" if whole and declared_type(name) != "number" else "number"


def declared_type(name: str) -> ColumnType:
    """Return the type that a declaration in upper case means: SQLite's rules of affinity, and dates by name."""
    if "INT" in name:
        return "integer"
    if any(part in name for part in ("CHAR", "CLOB", "TEXT")):
        return "text"
    for part, kind in DECLARATIONS.items():
        if part in name:
            return kind
    return "text" if not name else "other"


def read_keys(table: str, query: Query, quote: Quote) -> Iterator[ForeignKey]:
    """Yield the foreign keys of a table as declared; without columns of the other table, its key is meant."""
    parts: dict[int, list[tuple[str, str, str | None]]] = {}
    for number, _, other, column, other_column, *_ in query(f"PRAGMA foreign_key_list({quote(table)})"):
        parts.setdefault(number, []).append((other, column, other_column))
    for _, columns in sorted(parts.items()):
        named = tuple(other_column for *_, other_column in columns if other_column is not None)
        yield ForeignKey(table, tuple(column for _, column, _ in columns), columns[0][0], named)


def resolve_keys(keys: Sequence[ForeignKey], tables: Sequence[Table]) -> Iterator[ForeignKey]:
    """Yield the distinct foreign keys with existing names, which SQLite compares without case."""
    by_name = {table.name.casefold(): table for table in tables}
    found = dict[ForeignKey, None]()
    for key in keys:
        table, other = by_name[key.table.casefold()], by_name.get(key.other_table.casefold())
        if other is None:
            continue
        columns = spelled(key.columns, table)
        other_columns = spelled(key.other_columns or other.primary_key, other)
        if None not in columns + other_columns and len(columns) == len(other_columns):
            names = tuple(filter(None, columns)), tuple(filter(None, other_columns))
            found[ForeignKey(table.name, names[0], other.name, names[1])] = None
    yield from found


def spelled(columns: Sequence[str], table: Table) -> tuple[str | None, ...]:
    """Return names of columns as the table spells them; None for one that it does not have."""
    by_name = {column.name.casefold(): column.name for column in table.columns}
    return tuple(by_name.get(column.casefold()) for column in columns)
