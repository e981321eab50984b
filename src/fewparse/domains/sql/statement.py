"""Check a statement before a server or DuckDB runs it: one query that calls functions of the safe list only."""

import logging
from typing import TYPE_CHECKING

from fewparse.domains.sql.functions import SAFE_FUNCTIONS, not_a_query, refused_function
from fewparse.errors import ExecutionError

if TYPE_CHECKING:
    from sqlglot import exp

MAX_SQL_CHARS = 100_000
logging.getLogger("sqlglot").addHandler(logging.NullHandler())  # its warnings are not for users of a command


def check_query(sql: str, dialect: str) -> str:
    """Return a query as sqlglot writes it, so that what was checked is what runs.

    Raises `ExecutionError` if the text is not one query of the dialect, or calls another function.
    """
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    if len(sql) > MAX_SQL_CHARS:
        raise ExecutionError(f"the query has more than {MAX_SQL_CHARS:,} characters")
    try:
        statements = [tree for tree in sqlglot.parse(sql, dialect=dialect) if tree is not None]
    except (SqlglotError, RecursionError) as error:
        raise ExecutionError(reason(error)) from None
    if len(statements) != 1:
        message = "there is more than one statement" if statements else "this is not a query"
        raise ExecutionError(message, "Write one SELECT statement.")
    tree = statements[0]
    if not isinstance(tree, exp.Query):
        raise ExecutionError(not_a_query(sql))
    for node in tree.walk():
        check_node(node)
    try:
        return tree.sql(dialect=dialect, comments=False)
    except (SqlglotError, RecursionError) as error:
        raise ExecutionError(reason(error)) from None


def check_node(node: "exp.Expr") -> None:
    """Raise `ExecutionError` for a part of a query that writes, locks or calls another function."""
    from sqlglot import exp

    if isinstance(node, exp.DML | exp.DDL | exp.Command | exp.Into | exp.Lock) and not isinstance(node, exp.Query):
        raise ExecutionError(f"{node.key.upper()} is refused: a query may only read")
    if isinstance(node, exp.Func):
        names = [node.name] if isinstance(node, exp.Anonymous) else node.sql_names()
        if not any(name.lower() in SAFE_FUNCTIONS for name in names):
            raise ExecutionError(refused_function(names[0]))
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):  # a function of some schema
        raise ExecutionError(refused_function(node.sql()))


def reason(error: Exception) -> str:
    """Return why sqlglot does not accept a text, with line and column."""
    if isinstance(error, RecursionError):
        return "the query is nested too deeply"
    details = getattr(error, "errors", None)
    if details:
        first = details[0]
        return f"not SQL: {first['description']} (line {first['line']}, column {first['col']})"
    return f"not SQL: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
