"""Parse SQL with sqlglot into one SELECT statement; mistakes are reported with their position."""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from fewparse.domains.sql.database import Database
from fewparse.domains.sql.names import Text

CLAUSES = "with_ order limit offset"
READ: dict[type[exp.Expr], frozenset[str]] = {
    kind: frozenset(keys.split())
    for kind, keys in {
        exp.Select: "expressions from_ joins where distinct group having "
        f"windows qualify laterals into pivots sample locks {CLAUSES}",
        exp.Union: f"this expression distinct {CLAUSES}",
        exp.Intersect: f"this expression distinct {CLAUSES}",
        exp.Except: f"this expression distinct {CLAUSES}",
        exp.Subquery: f"this alias {CLAUSES}",
        exp.From: "this",
        exp.Table: "this alias db catalog",
        exp.TableAlias: "this",
        exp.CTE: "this alias",
        exp.Join: "this side kind method on using",
        exp.Group: "expressions rollup cube grouping_sets all",
        exp.Ordered: "this desc nulls_first",
        exp.Limit: "expression",
        exp.Fetch: "direction count limit_options",
        exp.LimitOptions: "rows",
        exp.Offset: "expression",
        exp.Like: "this expression negate",
        exp.In: "this expressions query",
        exp.Between: "this low high",
        exp.Count: "this expressions big_int",
        exp.Column: "this table",
    }.items()
}
"""The parts of clauses that are read, or refused by name."""
MISSING = re.compile(r"Required keyword: '\w+' missing for <class '[\w.]*?(\w+)'>")


def parse(sql: str, database: Database, text: Text) -> exp.Expression:
    """Return the only statement of a text, which is a SELECT."""
    try:
        with quiet():
            parsed = sqlglot.parse(sql, read=database.dialect)
    except ParseError as error:
        found = error.errors[0] if error.errors else {}
        before = found.get("start_context") or ""
        at = position(sql, found) if found else None
        message = description(str(found.get("description", error)))
        text.fail_at(f"this is not valid SQL: {message}", at if at is not None else len(before))
    except (SqlglotError, RecursionError):
        text.fail_at("this is not valid SQL: a quotation mark or bracket is not closed", unclosed(sql))
    statements = [statement for statement in parsed if statement is not None]
    if not statements:
        text.fail_at("there is no SQL here", None, "Write a SELECT statement.")
    if len(statements) > 1:
        text.fail("only one statement is allowed", statements[1])
    statement = statements[0]
    if not isinstance(statement, exp.Select | exp.SetOperation | exp.Subquery):
        name = statement.name if isinstance(statement, exp.Command) else statement.key
        text.fail_at(
            f"{name.upper()} is refused: only SELECT is allowed", 0, "SQL domains never change a database."
        )
    check_parts(statement, text)
    return statement


def check_parts(statement: exp.Expression, text: Text) -> None:
    """Raise `SqlError` for a part of a clause that is not read: it would have no effect."""
    for node in statement.walk():
        for key, value in node.args.items():
            if value and key not in READ.get(type(node), node.args):
                name = key.rstrip("_").replace("_", " ").upper()
                text.fail(f"{name} is not supported in {node.key.upper()}", node)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence sqlglot's warnings about statements that it does not know: they are refused."""
    logger = logging.getLogger("sqlglot")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def description(message: str) -> str:
    """Return a message of sqlglot without names of its classes."""
    if (missing := MISSING.match(message)) is not None:
        return f"{missing[1].upper()} is incomplete"
    message = message.split(" but got <Token")[0].rstrip(".")
    return message[:1].lower() + message[1:]


def position(sql: str, error: dict[str, object]) -> int | None:
    """Return the offset of a token that sqlglot did not expect; its column is that of the token's end."""
    line, column, highlight = error.get("line"), error.get("col"), str(error.get("highlight") or "")
    if not isinstance(line, int) or not isinstance(column, int):
        return None
    start = sum(len(text) + 1 for text in sql.split("\n")[: line - 1])
    return max(start, start + column - max(1, len(highlight)))


def unclosed(sql: str) -> int:
    """Return the offset of the quotation mark that is not closed, or the end of the text."""
    opened: int | None = None
    for at, char in enumerate(sql):
        if opened is None and char in "'\"`":
            opened = at
        elif opened is not None and char == sql[opened]:
            opened = None
    return len(sql) if opened is None else opened
