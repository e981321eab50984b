"""The normal form of SQL: the one text by which the grammar of a schema derives a query."""

from fewparse.domains.sql.database import Database
from fewparse.domains.sql.reader import read_query
from fewparse.domains.sql.simplify import simplified
from fewparse.domains.sql.writer import Writer


def canonical_sql(sql: str, database: Database) -> str:
    """Return a SELECT statement in canonical form.

    Names are resolved whatever their case, aliases and quotes; `"texas"` is text in SQLite if no column has this
    name. Raises `SqlError` for text that is not SQL, for other statements than SELECT, for unknown tables and
    columns, and for what the grammar does not express.
    """
    query, text = read_query(sql, database)
    return Writer(database, text).statement(simplified(query, database, text))
